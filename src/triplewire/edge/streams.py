"""`GET /streams/{stream}`: consume."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from triplewire.access import Principal
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import consuming
from triplewire.edge.company.referrals import Referrals
from triplewire.edge.feeds.taps import Taps
from triplewire.edge.intake.doors import resumption
from triplewire.edge.past.resumptions import Asked, Resumptions
from triplewire.edge.sieves import Tap
from triplewire.edge.telling.receptions import Reception
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.ways import Ways
from triplewire.edge.telling.windows import Windows
from triplewire.storage.registry.streams import check_stream_name


class Streams:
    """Lets clients listen to streams, from a position of the past or from now on."""

    def __init__(
        self,
        taps: Taps,
        reception: Reception,
        ways: Ways,
        resumptions: Resumptions,
        windows: Windows,
        referrals: Referrals,
    ) -> None:
        self._taps = taps
        self._resumptions = resumptions
        self._reception = reception
        self._ways = ways
        self._windows = windows
        self._referrals = referrals

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/streams/{stream}", self.consume, allow_head=False)]

    @serves(consuming.CONSUME)
    async def consume(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes. Whatever is published after the answer began is among them."""
        stream, by = check_stream_name(request.match_info["stream"]), caller(request)
        arrived = None
        if await self._taps.sight(by) is None:
            # Others are not led elsewhere, where nobody knows what they see here, and do not come from there.
            await self._referrals.refer(request, stream)
            arrived = await self._referrals.arrived(request, stream)
        asked = resumption(request) if arrived is None else Asked(position=arrived)
        self._reception.check_space()
        return await self._ways.one(request, await self.subject(stream, asked, by, request.query.items()))

    async def subject(
        self, stream: str, asked: Asked | None, by: Principal, query: Iterable[tuple[str, str]] = ()
    ) -> Subject[Tap]:
        """A stream, or what of it is asked for and somebody sees, after a place in the past or from now on. Of one that
        is out of sight nothing was ever said."""
        sight = await self._taps.sight(by)
        if sight is not None and stream not in sight.streams:
            asked = None
        start = await self._resumptions.of_stream(asked, stream, sight)
        tapped = await self._taps.of(stream, query, start.told, by)
        name, window = f"streams/{stream}", self._windows.of(stream)
        return Subject(name, tapped.key, tapped.room, tapped.history, start.after, start.earliest, window=window)
