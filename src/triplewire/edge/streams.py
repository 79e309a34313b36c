"""`GET /streams/{stream}`: consume."""

from __future__ import annotations

from aiohttp import web

from triplewire.edge.doors import resumption
from triplewire.edge.receptions import Reception
from triplewire.edge.referrals import Referrals
from triplewire.edge.taps import Taps
from triplewire.edge.windows import Windows
from triplewire.registry.streams import stream_name


class Streams:
    """Lets clients listen to streams, from a position of the past or from now on."""

    def __init__(self, taps: Taps, reception: Reception, windows: Windows, referrals: Referrals) -> None:
        self._taps = taps
        self._reception = reception
        self._windows = windows
        self._referrals = referrals

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/streams/{stream}", self.consume, allow_head=False)]

    async def consume(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes. Whatever is published after the answer began is among them."""
        stream = stream_name(request.match_info["stream"])
        await self._referrals.refer(request, stream)
        asked = await self._referrals.arrived(request, stream) or resumption(request)
        self._reception.check_space()
        tapped = await self._taps.of(stream, request.query.items())
        after = asked if isinstance(asked, int) else await self._reception.head()
        earliest = await self._reception.gap(asked) if isinstance(asked, int) else None
        window = self._windows.of(stream)
        return await self._reception.welcome(
            request, tapped.room, tapped.key, after, tapped.history, window=window, earliest=earliest
        )
