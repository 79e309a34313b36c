"""The ledger of hooks: what must be known after whatever ended the process that delivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from triplewire.model import START


@dataclass(frozen=True)
class Letter:
    """A message that was not taken, whatever was tried. What it said is not kept here but read again from history, so
    that what is erased there is nowhere."""

    hook: str
    position: int
    attempts: int
    reason: str
    status: int | None
    """Of the last answer; None where there was none."""
    parked: int
    """When, in microseconds of the wall clock."""


@dataclass(frozen=True)
class Place:
    """How far a hook is: everything up to `position` was taken or parked."""

    position: int
    failures: int = 0
    """How often the message after that was tried in vain so far."""
    reason: str = ""
    """Why, the last time."""
    parked: int = 0
    """How many letters it has; counted, not noted."""


class Ledger(Protocol):
    """Places, letters and secrets of hooks by their ids. Called from any thread, by several processes at once.

    Every twin passes the same contract suite (`tests/hooks/test_contract.py`).
    """

    def note(self, places: Mapping[str, Place], parked: Sequence[Letter] = ()) -> None:
        """How far hooks are, and what of that was parked, in one durable transaction. Raises StorageFull, and then
        nothing is noted."""

    def places(self) -> Mapping[str, Place]:
        """Of all hooks of which something was noted, or something is parked."""

    def letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[Letter]:
        """Those of a hook at positions above one, in order, so many at most."""

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        """Letters of a hook."""


class Wishes(Protocol):
    """What whoever is asked to has delivered again, and whoever delivers does."""

    def ask(self, hook: str, positions: Sequence[int] | None = None) -> int:
        """To deliver letters of a hook again, all or those at positions; how many they are."""

    def asked(self) -> Mapping[str, Sequence[int]]:
        """The positions of letters that are to be delivered again, in order."""

    def done(self, hook: str, positions: Sequence[int]) -> None:
        """They were, or they are not going to be."""


class Secrets(Protocol):
    """What hooks are signed with. It never leaves but to sign."""

    def keep(self, secrets: Mapping[str, str]) -> None:
        """Durably, in the place of what hooks had before."""

    def secret(self, hook: str) -> str | None: ...

    def forget(self, hook: str) -> None:
        """Everything about a hook: its letters, its place and its secret, which is written over."""


class Turn(Protocol):
    """Who delivers: one process at a time over one directory."""

    def take(self) -> bool:
        """Whether it is this one's turn, from now on until it is left, or the process ends in whatever way."""

    def leave(self) -> None: ...


class Books(Ledger, Wishes, Secrets, Turn, Protocol):
    """All of them in one."""
