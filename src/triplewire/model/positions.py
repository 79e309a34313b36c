"""A position is the place of an event in the log: an integer that only grows.

Clients see an opaque token of fixed width whose order as text is the order of positions, so that clients and stores may
compare and sort tokens.
"""

from __future__ import annotations

from typing import NewType

from triplewire.model.errors import BadRequest

Position = NewType("Position", int)

START = Position(0)
"""Before everything: reading after START reads all."""

END = Position(2**63 - 1)
"""After everything: the end of a subscription that was not ended."""

_WIDTH = 16


def format_position(position: int) -> str:
    """The text that clients see and send back."""
    return format(position, f"0{_WIDTH}x")


def parse_position(text: str) -> Position:
    """The position that a client sent. `earliest` is the start."""
    if text == "earliest":
        return START
    try:
        position = Position(int(text, 16))
        if not START <= position <= END or format_position(position) != text:
            raise ValueError
        return position
    except ValueError:
        raise BadRequest(
            f"{text!r} is not a position; use `earliest`, or the `id` of something you received, "
            f"which is {_WIDTH} hexadecimal digits"
        ) from None
