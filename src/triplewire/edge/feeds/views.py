"""Views: what those who listen here see, by the policy as it is in force.

A listener is told by what it saw when it came. Where the policy changes that, what comes before the change is told
as
it was, and then all who listen to the same are sent back to where they are, to come in again by the new policy.
"""

from __future__ import annotations

from collections.abc import Iterable

from triplewire.access import Permit, Principal, Sight, Verb, permit_of, sight_of
from triplewire.config import limits
from triplewire.edge.formats.ports import renewed
from triplewire.edge.sieves import Tap
from triplewire.edge.telling.rooms import Addressee, Over
from triplewire.storage.registry.security import NO_POLICY, PolicyStore, PolicyVersion


class Renewed(Over):
    """A listener no longer sees what it is told: it is to come back."""

    def __init__(self) -> None:
        super().__init__("the policy has changed")

    def last(self, listener: Addressee) -> bytes:
        return come_in_again(listener)


def come_in_again(listener: Addressee) -> bytes:
    """The last message of those who see something else from now on."""
    return renewed(listener.manner.format, listener.cursor, limits.RETRY_MILLISECONDS)


class Views:
    """The policy as it is known here, and who listens. Any thread may look; the rest is for the event loop."""

    def __init__(self, policies: PolicyStore | None = None) -> None:
        """Without policies everybody sees what is granted to them."""
        self._policies = policies
        self._known = NO_POLICY
        self._viewers: dict[Tap, set[Principal] | None] = {}
        """Who listens to a tap, or has; None for too many to be told apart."""

    def look(self) -> PolicyVersion:
        """What is in force. It reads, in some microseconds, as long as nothing changes."""
        if self._policies is not None:
            self._known = self._policies.current()
        return self._known

    def turn(self, after: int, upto: int) -> int | None:
        """The first position p with `after < p <= upto` at which the policy changes."""
        if self.look().version <= after or self._policies is None:
            return None
        turns = list[int]()
        for each in self._policies.versions():
            if each.version <= after:
                break
            turns.append(each.version)
        return next((each for each in reversed(turns) if each <= upto), None)

    def sight(self, principal: Principal) -> Sight | None:
        """What somebody sees of streams, by what is known. None is everything."""
        return sight_of(principal, Verb.CONSUME, self._known.policy)

    def permit(self, principal: Principal) -> Permit | None:
        """What somebody may publish, by what is in force. None is everything."""
        return permit_of(principal, self.look().policy)

    def enter(self, tap: Tap, principal: Principal) -> None:
        """Somebody is about to listen."""
        if len(self._viewers) > limits.VIEWERS:
            # Who is not known any more comes in again at the next change.
            self._viewers.clear()
        here = self._viewers.setdefault(tap, set())
        if here is not None:
            here.add(principal)
            if len(here) > limits.VIEWERS:
                self._viewers[tap] = None

    def check(self, tap: Tap, principal: Principal) -> None:
        """Raises Renewed where somebody does not see any more what a tap shows."""
        if self.sight(principal) != tap.sight:
            raise Renewed

    def outdated(self, taps: Iterable[Tap]) -> list[Tap]:
        """Those among the taps that somebody may listen to who sees something else by now."""
        return [tap for tap in taps if self._differs(tap)]

    def _differs(self, tap: Tap) -> bool:
        here = self._viewers.get(tap)
        return here is None or any(self.sight(each) != tap.sight for each in here)
