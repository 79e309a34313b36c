"""Marks: places in what several subscriptions, and streams, are told over one connection.

The order is that of positions, and at one position that in which the subscriptions were made; an event of a stream
comes before what it matched. It depends on nothing but the events and the registry, so a mark means the same to
every
edge, and also when others are listened to beside it than before.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.model import END, START, format_position, parse_position
from triplewire.model.errors import BadRequest

_BETWEEN = "~"


@dataclass(frozen=True, order=True)
class Mark:
    """Everything was told up to a position, there included, but of those at that position only what concerns
    subscriptions that were made up to `made`: all, unless it says otherwise."""

    position: int
    made: int = END

    def __str__(self) -> str:
        """The text from which a client resumes; where all was told it is that of the position alone."""
        return (
            format_position(self.position)
            if self.made == END
            else f"{format_position(self.position)}{_BETWEEN}{format_position(self.made)}"
        )

    @property
    def cursor(self) -> int:
        """The position up to which all was told."""
        return self.position if self.made == END else max(START, self.position - 1)

    @classmethod
    def parse(cls, text: str) -> Mark:
        """Raises BadRequest for what is no mark."""
        position, between, made = text.partition(_BETWEEN)
        if not between:
            return cls(parse_position(position))
        if "earliest" in (position, made):
            raise BadRequest(f"{text!r} is not an id; use `earliest` alone, or the `id` of something you received")
        return cls(parse_position(position), parse_position(made))
