"""Tellings: what a feed hands to a room, not yet written in any format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats import Format
from triplewire.edge.telling.frames import Frames


class Telling(Protocol):
    """Messages in order of position."""

    def frames(self, format: Format) -> Frames:
        """The messages in a format; made once for each."""


class Once:
    """A telling whose frames are written by a function, once for each format that is asked for."""

    def __init__(self, write: Callable[[Format], Frames]) -> None:
        self._write = write
        self._written: dict[Format, Frames] = {}

    def frames(self, format: Format) -> Frames:
        found = self._written.get(format)
        if found is None:
            found = self._written[format] = self._write(format)
        return found


def events(pieces: Pieces, format: Format) -> Frames:
    """Every entry of a table as a message of its stream."""
    positions = list(pieces.rows)
    return Frames(positions, [format.event(pieces, position) for position in positions])
