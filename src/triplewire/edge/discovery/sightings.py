"""Sightings: what somebody who asks sees of streams, by the policy that holds now."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.access import Principal, Sight, Verb, sight_of
from triplewire.storage.registry.security import PolicyStore


@dataclass(frozen=True)
class Sightings:
    """It waits for the disk: ask it in a thread."""

    policies: PolicyStore

    def of(self, principal: Principal, verb: Verb = Verb.CONSUME) -> Sight | None:
        """None: everything."""
        return sight_of(principal, verb, self.policies.current().policy)
