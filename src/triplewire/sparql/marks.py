"""Marks: where in the text of a query a construct stands for the first time, for whoever refuses it later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triplewire.model.errors import TextPosition, Unsupported


@dataclass(frozen=True)
class Mark:
    construct: str
    place: TextPosition
    excerpt: str


def unsupported(construct: str, marks: Iterable[Mark], hint: str = "") -> Unsupported:
    """The refusal of a construct, with its place where there is a mark of it."""
    found = next((each for each in marks if each.construct == construct), None)
    if found is None:
        return Unsupported(construct, hint=hint)
    return Unsupported(construct, place=found.place, hint=hint, excerpt=found.excerpt)
