"""Programs: what the index does for a shape, as numbers in arrays.

A program is the patterns of a conjunction, slot by slot, and its filters as code for a small machine that works on
true, false, error and not decided. One comparison with a constant may be left out of the code: it becomes the
threshold, by which the subscriptions of one group differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from triplewire.sparql.algebra import Family

MOST_PATTERNS = 16
"""Patterns of a shape that the index takes."""

EQUAL, BEGINS, EQUAL_NUMBER, RELATED = 0, 1, 2, 3
"""Ways in which a hint names an object; relations, by their numbers, are the last and those after it."""


class Slot(IntEnum):
    """What stands in one place of a pattern."""

    VARIABLE = 0
    FIXED = 1
    """A constant of the shape."""
    PARAMETER = 2
    """A constant of the group."""
    NOTHING = 3


class Op(IntEnum):
    """What the machine does. Tests take a variable and push; the last three take what was pushed."""

    EQUAL = 0
    NOT_EQUAL = 1
    LESS = 2
    LESS_EQUAL = 3
    GREATER = 4
    GREATER_EQUAL = 5
    PREFIX = 6
    """Of the text of a string."""
    STR_PREFIX = 7
    """Of what STR() gives."""
    IS_IRI = 8
    IS_BLANK = 9
    IS_LITERAL = 10
    LANG = 11
    DATATYPE = 12
    SAME = 13
    """The very same term."""
    TRUE = 14
    FALSE = 15
    AND = 16
    OR = 17
    NOT = 18
    RELATED = 19
    """What ontologies say of two names. This one and those after it are the relations, by their numbers."""


@dataclass(frozen=True)
class Threshold:
    """`variable op parameter`, by which the members of a group differ."""

    variable: int
    op: Op
    parameter: int
    family: Family


@dataclass(frozen=True)
class Place:
    """A slot of a pattern, with the number of its variable, fixed constant or parameter."""

    slot: Slot
    number: int = 0


@dataclass(frozen=True)
class Row:
    """A pattern of a program. `header` is the number of the virtual quad that it is about, 0 for stored ones."""

    places: tuple[Place, Place, Place]
    header: int = 0

    def again(self, place: int) -> int:
        """The place before that has the same variable; -1 for none."""
        there = self.places[place]
        return self.places.index(there) if there.slot is Slot.VARIABLE and there in self.places[:place] else -1


@dataclass(frozen=True)
class Step:
    """One step of the machine: a test of a variable against a constant, or a connective."""

    op: int
    variable: int = -1
    constant: Place = Place(Slot.NOTHING)


@dataclass(frozen=True)
class Hint:
    """What a filter says of the object of a row: it is one of these parameters; or it begins with the only one, or is
    in a relation with it."""

    row: int
    parameters: tuple[int, ...]
    way: int = EQUAL


@dataclass(frozen=True)
class Program:
    """What the index does for a shape. `fixed` are the constants that its slots and steps number."""

    rows: tuple[Row, ...]
    variables: int
    steps: tuple[Step, ...]
    fixed: tuple[str, ...]
    threshold: Threshold | None
    solutions: bool
    hints: tuple[Hint, ...] = ()

    @property
    def parameters(self) -> set[int]:
        """Those that its rows and steps name."""
        named = (*(place for row in self.rows for place in row.places), *(step.constant for step in self.steps))
        return {place.number for place in named if place.slot is Slot.PARAMETER}
