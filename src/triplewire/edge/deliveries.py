"""`GET /subscriptions/{id}/notifications`: be told."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from triplewire.edge.doors import resumption
from triplewire.edge.lanes import Lanes
from triplewire.edge.leases import Leases
from triplewire.edge.pasts import Pasts
from triplewire.edge.receptions import Reception


class Deliveries:
    """Lets clients listen to subscriptions."""

    def __init__(self, lanes: Lanes, pasts: Pasts, reception: Reception, leases: Leases, window: float) -> None:
        self._lanes = lanes
        self._pasts = pasts
        self._reception = reception
        self._leases = leases
        self._window = window

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/subscriptions/{id}/notifications", self.deliver, allow_head=False)]

    async def deliver(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes or the subscription ends.

        Who does not say from where gets all that is kept, so nothing is lost between subscribing and listening; and
        before that the past, where the subscription asks for it.
        """
        asked = resumption(request)
        self._reception.check_space()
        resuming = isinstance(asked, int)
        subscription = await self._lanes.main.subscriptions.find(request.match_info["id"], resuming=resuming)
        after = subscription.floor
        if isinstance(asked, int):
            after = max(after, asked)
        elif asked == "now":
            after = await self._reception.head()
        earliest = await self._reception.gap(after) if resuming and subscription.begins is None else None
        versions = partial(self._lanes.main.subscriptions.versions, subscription.made)
        room, present = self._lanes.of(subscription)
        history = self._pasts.history(subscription, versions, present)
        held = None if subscription.ttl is None else self._leases.heard(subscription.id)
        return await self._reception.welcome(
            request, room, subscription.made, after, history, window=self._window, earliest=earliest, held=held
        )
