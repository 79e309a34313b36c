"""Beginnings: from where on a subscription asks for the past, as a client says it and as a position."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from triplewire.matching.event_history import EventReader, find_position
from triplewire.model import START, format_position, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, InvalidField

EARLIEST = "earliest"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ACCEPTED = (
    "`earliest`, a position, which is 16 hexadecimal digits such as the `id` of a message, "
    "or a time with its zone such as 2026-11-15T08:30:00Z"
)


@dataclass(frozen=True)
class Beginning:
    """A position, or a moment in microseconds since the epoch: one of the two."""

    position: int | None = None
    moment: int | None = None

    @classmethod
    def from_json(cls, given: object) -> Beginning:
        """Raises Unfit for what is neither."""
        if isinstance(given, str) and _MOMENT.fullmatch(given):
            return cls(moment=_moment(given))
        try:
            return cls(position=parse_position(given if isinstance(given, str) else ""))
        except BadRequest:
            raise _unfit(given) from None


def written(position: int) -> str:
    """How a client is told of the position that it asked for, or that its time came to."""
    return EARLIEST if position == START else format_position(position)


class Beginnings:
    """Finds positions. It blocks; any thread may use it."""

    def __init__(self, events: EventReader, clock: Clock) -> None:
        self._events = events
        self._clock = clock
        self._first = lru_cache(maxsize=64)(self._sought)

    def position(self, beginning: Beginning) -> int:
        """The first position that is meant. Of a time it is one from which on every event was taken in then or later,
        and before which none was. Raises Unfit for what lies in the future."""
        if beginning.moment is not None:
            if beginning.moment > self._clock.now():
                raise InvalidField("from", "from must be a time of the past; what is to come needs no from")
            return self._first(beginning.moment)
        position, head = beginning.position or START, self._events.head()
        if position > head:
            raise InvalidField(
                "from",
                f"from must be a position that there is, up to {format_position(head)}, not {format_position(position)}",
            )
        return position

    def _sought(self, moment: int) -> int:
        """Remembered, since what was taken in later is later: a bulk may ask a thousand times."""
        return find_position(self._events, moment, self._events.head()) + 1


def _moment(text: str) -> int:
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise _unfit(text) from None


def _unfit(given: object) -> InvalidField:
    return InvalidField("from", f"from must be {_ACCEPTED}, not {given!r}")
