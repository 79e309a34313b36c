"""Frames: messages of an event stream (SSE) as bytes, made once and written to many."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from triplewire.model import token

COMMENT = b":\n\n"
CLOSING = b": closing\n\n"
MOVED = b": moved to another lane\n\n"


def message(event: bytes, data: bytes, position: int | None = None) -> bytes:
    """One message. `data` is JSON on one line; `position` becomes the id from which a client resumes."""
    if position is None:
        return b"event: %b\ndata: %b\n\n" % (event, data)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (token(position).encode(), event, data)


def notice(event: str, **data: object) -> bytes:
    """A message about the connection itself: `gap`, `slow`, `end`. It has no id, so that it does not move a client."""
    return message(event.encode(), orjson.dumps(data))


def resume_from(position: int) -> bytes:
    """An id without a message: a client that loses its connection before the first message knows where it was."""
    return b"id: %b\n\n" % token(position).encode()


def gap(asked: int, earliest: int) -> bytes:
    """What was asked for is gone: the first message of those who come too late."""
    return notice("gap", asked=token(asked), earliest=token(earliest), detail="what lay between was trimmed away")


def slow(limit: int) -> bytes:
    """The last message of a listener that read too slowly."""
    return notice("slow", limit=limit, detail="read faster, or come back and resume from the last id")


def end(subscription: str) -> bytes:
    """The last message of a subscription that was ended."""
    return notice("end", subscription=subscription, detail="the subscription was ended; nothing more will come")


def members(values: Mapping[str, Any]) -> bytes:
    """The members of a JSON object without its braces, to be joined with others."""
    return orjson.dumps(values)[1:-1]


@dataclass(frozen=True)
class Frames:
    """Messages in order of position, at most one for each position."""

    positions: Sequence[int]
    parts: Sequence[bytes]

    @cached_property
    def joined(self) -> bytes:
        return b"".join(self.parts)

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
