"""`GET /streams/{stream}`: consume."""

from __future__ import annotations

from aiohttp import web

from triplewire.edge.doors import resumption
from triplewire.edge.events import Events, Tap
from triplewire.edge.receptions import Reception
from triplewire.edge.windows import Windows
from triplewire.registry.streams import stream_name


class Streams:
    """Lets clients listen to streams, from a position of the past or from now on."""

    def __init__(self, events: Events, reception: Reception, windows: Windows) -> None:
        self._events = events
        self._reception = reception
        self._windows = windows

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/streams/{stream}", self.consume, allow_head=False)]

    async def consume(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes. Whatever is published after the answer began is among them."""
        stream, asked = stream_name(request.match_info["stream"]), resumption(request)
        room, history = self._events.room, self._events.history(stream)
        self._reception.check_space()
        after = asked if isinstance(asked, int) else await self._reception.head()
        earliest = await self._reception.gap(asked) if isinstance(asked, int) else None
        window = self._windows.of(stream)
        return await self._reception.welcome(
            request, room, Tap(stream), after, history, window=window, earliest=earliest
        )
