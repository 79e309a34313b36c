"""`GET /streams/{stream}`: consume."""

from __future__ import annotations

from aiohttp import web

from triplewire.edge.doors import resumption
from triplewire.edge.events import Events
from triplewire.edge.receptions import Reception
from triplewire.registry.streams import stream_name


class Streams:
    """Lets clients listen to streams, from a position of the past or from now on."""

    def __init__(self, events: Events, reception: Reception) -> None:
        self._events = events
        self._reception = reception

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/streams/{stream}", self.consume, allow_head=False)]

    async def consume(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes. Whatever is published after the answer began is among them."""
        stream, asked = stream_name(request.match_info["stream"]), resumption(request)
        room, history = self._events.room, self._events.history(stream)
        self._reception.check_space()
        if not isinstance(asked, int):
            return await self._reception.welcome(request, room, stream, await self._reception.head(), history)
        first = await self._reception.gap(asked)
        return await self._reception.welcome(request, room, stream, asked, history, first)
