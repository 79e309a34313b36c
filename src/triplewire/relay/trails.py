"""Trails: through which streams of which edges an event has come, as it says itself in the header `Relay-Path`."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.config import limits

HEADER = "Relay-Path"


@dataclass(frozen=True)
class Trail:
    """The stations of an event, `edge/stream` each, the first one first. An edge is named by its id.

    A station is a stream and not a whole edge, because a stream may well be made from another one of the same edge.
    """

    stations: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> Trail:
        """What a header says; stations that are none are left out."""
        return cls(tuple(each for each in (text or "").split() if "/" in each))

    def __str__(self) -> str:
        return " ".join(self.stations)

    def then(self, edge: str, stream: str) -> Trail:
        """The path with one station more."""
        return Trail((*self.stations, f"{edge}/{stream}"))

    def visits(self, edge: str, stream: str) -> bool:
        return f"{edge}/{stream}" in self.stations

    @property
    def long(self) -> bool:
        """Whether it has more stations, or is a longer header, than an event is carried on with."""
        return len(self.stations) > limits.RELAY_HOPS or len(str(self)) > limits.HEADER_CHARACTERS
