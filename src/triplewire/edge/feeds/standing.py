"""Standing questions, as the feed of what was found for them knows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from triplewire.edge.feeds.notifications import Showing, Wanted
from triplewire.edge.telling.rooms import Last, Room


@dataclass(frozen=True)
class Ended:
    """One that ended at a position, and what its listeners are told at last."""

    made: int
    until: int
    last: Last


class Standing(Protocol):
    """Those that are listened to here, by the positions at which they were made."""

    rooms: list[Room[int]]
    """Where somebody may listen to them: those in there are not forgotten."""

    async def refresh(self) -> bool:
        """Take in what changed; whether one that is known here ended."""

    def wanted(self, made: Iterable[int], *, slow: bool = False) -> list[Wanted]:
        """How the matches of those are told, in one of the lanes, that were made at these positions."""

    def shown(self, since: int) -> Showing | None:
        """How matches are put into words of what began at a position; None where it is not known here."""

    def leaving(self, room: Room[int], *, slow: bool) -> Sequence[int]:
        """Those in the room of a lane that are to come back, because their matches come by another from here on."""

    def ended(self) -> Sequence[Ended]:
        """Those that have ended."""
