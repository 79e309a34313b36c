"""Ids of events: absolute IRIs, which name the graph of the event's quads.

Those that are made here are in the order of time (UUID version 7, RFC 9562), so that files which hold a stretch of
time
hold a stretch of ids, and a look-up by id passes over the others.
"""

from __future__ import annotations

import re
from secrets import randbits
from threading import Lock
from uuid import UUID

import pyoxigraph as ox

from triplewire.config import limits
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import BadRequest

_VERSION, _VARIANT = 0x7 << 76, 0b10 << 62
_FRACTIONS = 1 << 12
"""Parts of a millisecond that an id tells apart."""
_TIMED = re.compile(r"urn:uuid:([0-9a-f]{8})-([0-9a-f]{4})-7")


class Ids:
    """Gives ids that no other event has, each after the one before, also where the clock stands still or is set back.
    Any thread may ask."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._last = 0
        self._lock = Lock()

    def new(self) -> str:
        millisecond, rest = divmod(self._clock.now(), 1_000)
        with self._lock:
            self._last = max(self._last + 1, millisecond * _FRACTIONS + rest * _FRACTIONS // 1_000)
            told, fraction = divmod(self._last, _FRACTIONS)
        return f"urn:uuid:{UUID(int=told << 80 | _VERSION | fraction << 64 | _VARIANT | randbits(62))}"


new_id = Ids().new
"""The ids of this process."""


def moment(text: str) -> str:
    """The millisecond in which an id was made, as twelve digits that sort by time. Of other ids, nothing."""
    found = _TIMED.match(text)
    return found[1] + found[2] if found else ""


def check_id(text: str) -> str:
    """The id, if it is one: an absolute IRI of bounded length. Raises BadRequest."""
    if len(text) > limits.HEADER_CHARACTERS:
        raise BadRequest(f"the event id {text[:60]}… is longer than the limit of {limits.HEADER_CHARACTERS} characters")
    try:
        return ox.NamedNode(text).value
    except ValueError as error:
        raise BadRequest(
            f"{text!r} is no event id ({error}); use an absolute IRI such as urn:uuid:… or https://example.org/event/1"
        ) from None
