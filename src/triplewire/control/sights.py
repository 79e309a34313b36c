"""Sights: what the owners of subscriptions see, from version to version of the policy.

A subscription is compiled for what its owner sees when it is made, and again whenever the policy changes that: then
it
is put anew under its id, in the transaction of the change, so that each event is matched by what was in sight at its
position.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triplewire.access import Policy, Principal, Verb, sight_of
from triplewire.access.owners import principal_of
from triplewire.access.sights import BLIND, Sight
from triplewire.config import limits
from triplewire.control.entailments import Entailments, asked_by
from triplewire.matching.canonical_form import ConstantSymmetries
from triplewire.matching.prepared_queries import PreparedShapes
from triplewire.matching.shapes import LiftedShape, Shape
from triplewire.model import START, Subscription
from triplewire.model.errors import TriplewireError
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import VISIBILITY, PolicyStore, VisibilityStore, visibility_name
from triplewire.storage.registry.subscriptions import (
    SHAPE,
    SUBSCRIPTION,
    revise_subscription,
    subscription_from_change,
    subscription_to_value,
)

Entry = tuple[str, str, Mapping[str, Any] | None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seen:
    """What somebody sees by a version of the policy."""

    sight: Sight | None
    version: int

    @property
    def name(self) -> str | None:
        return None if self.sight is None else visibility_name(self.sight)


class Sightings:
    """What is in sight by the registry's policy. It blocks; any thread may use it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._policies = PolicyStore(registry)
        self._sights = VisibilityStore(registry)
        self._entailments = Entailments(registry)
        self._texts = PreparedShapes()
        self._symmetries = ConstantSymmetries()

    def version(self) -> int:
        """Where the policy was changed last."""
        return self._policies.current().version

    def of(self, principal: Principal) -> Seen:
        """What somebody is told of who subscribes now."""
        enacted = self._policies.current()
        return Seen(sight_of(principal, Verb.SUBSCRIBE, enacted.policy), enacted.version)

    def shown_by(self, subscription: Subscription) -> Sight | None:
        """What a subscription, as it is now, shows of events."""
        return self._sights.find(subscription.sight)

    def missing(self, sights: Sequence[Sight | None]) -> Iterator[Entry]:
        """What is to be put for those of which the registry does not know."""
        for sight in dict.fromkeys(sights):
            if sight is not None and self._sights.missing(sight):
                yield VISIBILITY, visibility_name(sight), sight.to_json()

    def following(self, policy: Policy | None) -> list[Entry]:
        """What is to be put with a change of policy, so that the subscriptions follow it."""
        sights, shapes, revisions = list[Sight | None](), dict[str, Shape](), list[Entry]()
        for found in self._all():
            seen = Seen(sight_of(principal_of(found.owner), Verb.SUBSCRIBE, policy), START)
            if seen.name != found.sight:
                seen, lifted = self._lifted(found, seen)
                sights.append(seen.sight)
                shapes |= {} if lifted is None else {lifted.shape.key: lifted.shape}
                shape, constants = (found.shape, found.constants) if lifted is None else _asking(lifted)
                revisions.append(
                    (
                        SUBSCRIPTION,
                        found.id,
                        subscription_to_value(revise_subscription(found, shape, constants, seen.name)),
                    )
                )
        fresh = ((key, each) for key, each in shapes.items() if self._registry.get(SHAPE, key) is None)
        return [*self.missing(sights), *((SHAPE, key, each.to_value()) for key, each in fresh), *revisions]

    def settle(self) -> int:
        """Bring those up to date that were made while the policy changed; the position from which on all are."""
        enacted = self._policies.current()
        return max([enacted.version, *self._registry.put(self.following(enacted.policy))])

    def _lifted(self, found: Subscription, seen: Seen) -> tuple[Seen, LiftedShape | None]:
        """What a subscription asks of what is in sight. A policy does not wait for one that cannot be asked so: nothing
        is in its sight any more."""
        asked = replace(asked_by(found), sight=seen.sight)
        try:
            if found.entailment is None:
                return seen, self._symmetries.settled(self._texts.lift(asked))
            return seen, self._entailments.lift(asked, self._entailments.version())
        except TriplewireError:
            logger.warning("subscription %s cannot follow the policy and is told of nothing", found.id, exc_info=True)
            return replace(seen, sight=BLIND), None

    def _all(self) -> Iterator[Subscription]:
        after: int = START
        while changes := self._registry.list(SUBSCRIPTION, after=after, limit=limits.BULK_LINES):
            yield from map(subscription_from_change, changes)
            after = changes[-1].position


def _asking(lifted: LiftedShape) -> tuple[str, tuple[str, ...]]:
    return lifted.shape.key, lifted.constants
