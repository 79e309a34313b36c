"""Frames: messages as bytes in one format, made once and written to many."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson


@dataclass(frozen=True)
class Frames:
    """Messages in order of position, at most one for each position."""

    positions: Sequence[int]
    parts: Sequence[bytes]

    @cached_property
    def joined(self) -> bytes:
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    def after(self, cursor: int) -> Frames:
        """Those at positions above the cursor: all of them, in the usual case, without a copy."""
        if not self.positions or self.positions[0] > cursor:
            return self
        first = bisect_right(self.positions, cursor)
        return Frames(self.positions[first:], self.parts[first:])

    def upto(self, position: int) -> Frames:
        """Those at positions up to one."""
        if not self.positions or self.positions[-1] <= position:
            return self
        last = bisect_right(self.positions, position)
        return Frames(self.positions[:last], self.parts[:last])


NOTHING = Frames((), ())


def together(frames: Sequence[Frames]) -> Frames:
    """Frames that follow each other as one."""
    if len(frames) == 1:
        return frames[0]
    positions = [position for each in frames for position in each.positions]
    return Frames(positions, [part for each in frames for part in each.parts])


def members(values: Mapping[str, Any]) -> bytes:
    """The members of a JSON object without its braces, to be joined with others."""
    return orjson.dumps(values)[1:-1]
