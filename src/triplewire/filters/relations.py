"""Relations: the operators between a value of an event and a value of a filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, TypeAlias

from triplewire.sparql import Apply, Const, Expression


class Operand(StrEnum):
    """What a filter may hold a value against."""

    TERM = "an IRI or a literal"
    ORDERED = "a number, a string, a date or a time"
    TEXT = "a string"
    NAME = "an IRI"
    FACT = "a property and an individual or value, as a list of two"


@dataclass(frozen=True)
class Relation:
    """One operator. `function` is the algebra's name for it; its arguments are the value of the event and that of the
    filter, or the other way round where it is `turned`."""

    symbol: str
    word: str
    operand: Operand
    function: str
    turned: bool = False
    negated: bool = False
    strict: str | None = None
    """The function in place of the other where a name is not to count for itself, nor for its equivalents."""

    def strictly(self) -> Relation:
        """The strict variant. Raises ValueError where there is none."""
        if self.strict is None:
            raise ValueError(self.symbol)
        return replace(self, function=self.strict)

    def between(self, value: Expression, operand: tuple[str, ...]) -> Expression:
        """The condition on a value of the event."""
        terms = tuple(Const(term) for term in operand)
        found = Apply(self.function, (*terms, value) if self.turned else (value, *terms))
        return Apply("!", (found,)) if self.negated else found


_CONTENT = (
    Relation("=", "equal", Operand.TERM, "="),
    Relation("!=", "not_equal", Operand.TERM, "!="),
    Relation("<", "less", Operand.ORDERED, "<"),
    Relation("<=", "less_or_equal", Operand.ORDERED, "<="),
    Relation(">", "greater", Operand.ORDERED, ">"),
    Relation(">=", "greater_or_equal", Operand.ORDERED, ">="),
    Relation(">*", "starts_with", Operand.TEXT, "strstarts"),
    Relation("*<", "ends_with", Operand.TEXT, "strends"),
    Relation("*", "contains", Operand.TEXT, "contains"),
)

_ONTOLOGICAL = (
    Relation("@>", "more_specific", Operand.NAME, "below", strict="strictly"),
    Relation("@<", "less_specific", Operand.NAME, "below", turned=True, strict="strictly"),
    Relation("@~", "equivalent", Operand.NAME, "equivalent"),
    Relation("@!~", "not_equivalent", Operand.NAME, "equivalent", negated=True),
    Relation("@=", "is_a", Operand.NAME, "is_a"),
    Relation("@!=", "is_not_a", Operand.NAME, "is_a", negated=True),
    Relation("@*", "has_property", Operand.FACT, "has"),
)

RELATIONS: Mapping[str, Relation] = {
    name: each for each in (*_CONTENT, *_ONTOLOGICAL) for name in (each.symbol, each.word)
}
"""By symbol and by word."""

Bagged: TypeAlias = Literal["#=", "#<", "#>"]

BAGS: Mapping[str, Bagged] = {
    "#=": "#=",
    "#<": "#<",
    "#>": "#>",
    "equal_bag": "#=",
    "sub_bag": "#<",
    "super_bag": "#>",
}
"""The symbols of operators on bags, by symbol and by word."""
