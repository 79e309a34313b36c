"""`GET /subscriptions/{id}/notifications`: be told."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from triplewire.access import Principal
from triplewire.access.owners import may_see
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import subscribing
from triplewire.edge.feeds.lanes import Lanes
from triplewire.edge.feeds.leases import Leases
from triplewire.edge.intake.doors import resumption
from triplewire.edge.past.pasts import Pasts
from triplewire.edge.past.resumptions import Asked, Resumptions
from triplewire.edge.telling.receptions import Reception
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.ways import Ways
from triplewire.model.errors import NotFound


class Deliveries:
    """Lets clients listen to subscriptions."""

    def __init__(
        self,
        lanes: Lanes,
        pasts: Pasts,
        reception: Reception,
        ways: Ways,
        resumptions: Resumptions,
        leases: Leases,
        window: float,
    ) -> None:
        self._lanes = lanes
        self._pasts = pasts
        self._reception = reception
        self._ways = ways
        self._resumptions = resumptions
        self._leases = leases
        self._window = window

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/subscriptions/{id}/notifications", self.deliver, allow_head=False)]

    @serves(subscribing.DELIVER)
    async def deliver(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes or the subscription ends."""
        asked = resumption(request)
        self._reception.check_space()
        return await self._ways.one(request, await self.subject(request.match_info["id"], asked, caller(request)))

    async def subject(self, id: str, asked: Asked | None, by: Principal) -> Subject[int]:
        """A subscription. Raises NotFound, also for one of somebody else.

        Who does not say from where gets all that is kept, so nothing is lost between subscribing and listening; and
        before that the past, where the subscription asks for it.
        """
        resuming = asked is not None and asked != Asked()
        known = self._lanes.main.standing
        subscription = await known.find(id, resuming=resuming)
        if not may_see(by, subscription.owner):
            raise NotFound(f"there is no subscription {id}")
        start = await self._resumptions.of_subscription(asked, subscription, known.sight(subscription))
        versions = partial(known.versions, subscription.made)
        room, present = self._lanes.of(subscription)
        return Subject(
            f"subscriptions/{id}",
            subscription.made,
            room,
            self._pasts.history(subscription, versions, present),
            start.after,
            start.earliest,
            order=subscription.made,
            window=self._window,
            held=None if subscription.ttl is None else partial(self._leases.heard, id),
            ended=partial(known.is_ended, id),
        )
