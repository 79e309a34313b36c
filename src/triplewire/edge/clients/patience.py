"""Patience: how long a client may keep an edge waiting that has begun to say something, or to be told something.

A head, a body and the reading of an answer cost a client nothing when they trickle, but a connection and its memory
here. What is kept open on purpose is not waited for: listeners, WebSockets and those who keep publishing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from aiohttp import web

from triplewire.config import limits

LASTING = web.RequestKey("lasting", bool)
"""Of a request whose body may take as long as its client likes."""


class Lapse(Enum):
    """What did not come in time."""

    HEAD = f"the head of the request did not come within {limits.HEAD_SECONDS:g} seconds"
    BODY = (
        f"the body of the request came too slowly: it has {limits.BODY_SECONDS:g} seconds, and one more for each "
        f"{limits.BODY_RATE} bytes"
    )
    READING = f"nothing of the answer was read for {limits.READING_SECONDS:g} seconds"


@dataclass(frozen=True)
class Sight:
    """What can be seen of a connection at one moment."""

    heads: int
    """Requests that came by it so far."""
    head: bool
    """The head of another is waited for, and was begun, or is the first."""
    body: int | None
    """Bytes of a body that came so far; None where none is waited for."""
    written: int
    """Bytes of the answer that were made so far."""
    waiting: int
    """Those of them that the other side has not taken."""


NOTHING = Sight(0, False, None, 0, 0)


class Patience:
    """Of one connection. It is asked from time to time, and knows no more than what it saw then."""

    __slots__ = ("_asked", "_moved", "_seen")

    def __init__(self, now: float) -> None:
        self._seen = NOTHING
        self._asked = now
        self._moved = now

    def lapsed(self, seen: Sight, now: float) -> Lapse | None:
        """What has taken too long by now, if anything has."""
        before, self._seen = self._seen, seen
        if (seen.heads, seen.head, seen.body is None) != (before.heads, before.head, before.body is None):
            self._asked = now
        if (seen.written, seen.waiting) != (before.written, before.waiting):
            self._moved = now
        if seen.head and now - self._asked > limits.HEAD_SECONDS:
            return Lapse.HEAD
        if seen.body is not None and now - self._asked > limits.BODY_SECONDS + seen.body / limits.BODY_RATE:
            return Lapse.BODY
        return Lapse.READING if seen.waiting and now - self._moved > limits.READING_SECONDS else None
