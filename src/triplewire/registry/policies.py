"""Policies as registry entries: one document is in force, and every version that ever was is kept.

Each version is put at a position, and holds for events from there on until the next. It names the position of the one
before, so that the way back does not lead through all other changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from triplewire.access import Policy, parse_policy
from triplewire.errors import NotFound
from triplewire.registry.ports import Change, Registry

Entry = tuple[str, str, Mapping[str, Any] | None]

POLICY = "policy"
IN_FORCE = "in-force"
"""The one key of its kind."""


@dataclass(frozen=True)
class Enacted:
    """A policy from a position on. Without a text there is none from there on: `policy` is None, and everybody sees
    what is granted to them."""

    version: int
    text: str | None = None
    policy: Policy | None = None
    before: int = 0
    """The version that it took the place of; 0 for the first."""


NONE = Enacted(0)
"""What holds before there ever was one."""


class Followers(Protocol):
    """What is to change with the policy."""

    def following(self, policy: Policy | None) -> Sequence[Entry]:
        """What is to be put with it, in one transaction."""

    def settle(self) -> int:
        """Have those follow that came while it was put; the position from which on all do."""


@dataclass(frozen=True)
class Together:
    """Several that are to change."""

    each: Sequence[Followers]

    def following(self, policy: Policy | None) -> list[Entry]:
        return [entry for one in self.each for entry in one.following(policy)]

    def settle(self) -> int:
        return max(one.settle() for one in self.each)


class Policies:
    """What the registry holds. Any thread may ask; it waits for the disk. A version is read once."""

    def __init__(self, registry: Registry, followers: Followers | None = None) -> None:
        self._registry = registry
        self._followers = followers
        self._newest = NONE

    def current(self) -> Enacted:
        """What holds now."""
        newest = self._newest
        # Mostly there is nothing newer, and then nothing of it is read.
        for change in self._registry.list(POLICY, after=newest.version, limit=1):
            newest = self._newest = from_change(change)
        return newest

    def at(self, position: int) -> Enacted:
        """What holds for the event at a position."""
        return next((each for each in self.versions() if each.version <= position), NONE)

    def versions(self) -> Iterator[Enacted]:
        """All of them, the newest first."""
        enacted = self.current()
        while enacted.version:
            yield enacted
            change = next(iter(self._registry.changes(enacted.before - 1, enacted.before)), None)
            enacted = NONE if change is None else from_change(change)

    def version(self, position: int) -> Enacted:
        """Raises NotFound for a position at which none was put."""
        found = next((each for each in self.versions() if each.version == position), None)
        if found is None:
            raise NotFound("there is no such version of the policy")
        return found

    def load(self, text: str) -> Enacted:
        """In place of what was in force. Raises what `parse_policy` does; then that stays."""
        parse_policy(text)
        return self._put(text)

    def remove(self) -> Enacted:
        """From now on there is none. Raises NotFound where there was none."""
        if self.current().text is None:
            raise NotFound("there is no policy in force")
        return self._put(None)

    def _put(self, text: str | None) -> Enacted:
        value = {"text": text, "before": self.current().version}
        following = () if self._followers is None else self._followers.following(_policy(text))
        position, *_ = self._registry.put([(POLICY, IN_FORCE, value), *following])
        if self._followers is not None:
            self._followers.settle()
        return from_change(Change(position, POLICY, IN_FORCE, value))


def from_change(change: Change) -> Enacted:
    """The version that a change put."""
    assert change.value is not None, "a policy that goes is a version, too"
    text = change.value["text"]
    return Enacted(change.position, text, _policy(text), change.value["before"])


def _policy(text: str | None) -> Policy | None:
    return None if text is None else parse_policy(text)
