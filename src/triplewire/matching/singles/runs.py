"""Runs: one subscription on one event, while it is looked at.

A solution is a list of terms: one place for each variable, None where it has no value, and one for each constant, so
that patterns and expressions need not tell them apart. Lists are never changed once they are handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from triplewire.matching.singles.events import Parsed
from triplewire.matching.singles.facts import Fact, Undecided, text_of
from triplewire.sparql.algebra import Const, Expression, Extend, Group, Node, Param, Var
from triplewire.sparql.traversal import iterate_parts

Row: TypeAlias = list[str | None]


class Known(Protocol):
    """What ontologies say."""

    def say(self, relation: str, lower: str, upper: str) -> bool:
        """Whether two terms are in a relation, or in that of a property."""


class Run:
    """The event, the steps that are left, what ontologies say if that is known, and the numbers that were computed and
    written, by their text."""

    __slots__ = ("event", "left", "made", "ontologies")

    def __init__(self, event: Parsed, steps: int, ontologies: Known | None = None) -> None:
        self.event = event
        self.left = steps
        self.ontologies = ontologies
        self.made = dict[str, Fact]()

    @property
    def known(self) -> Known:
        if self.ontologies is None:
            raise Undecided
        return self.ontologies

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Undecided

    def written(self, given: Fact | None) -> str | None:
        """The text of a value as a solution holds it."""
        if given is None:
            return None
        text = text_of(given)
        if given.rough:
            self.made[text] = given
        return text


Operate: TypeAlias = Callable[[Run, Row], list[Row]]
"""The solutions of an operator that are compatible with one that is given, each with what that binds."""
Evaluate: TypeAlias = Callable[[Run, Row], Fact | None]
"""The value of an expression; None is an error."""
Test: TypeAlias = Callable[[Run, Row], bool | None]


class Unknown(Exception):
    """A query that has parts which are not known here."""


@dataclass
class Slots:
    """Where variables and constants lie in a solution."""

    places: dict[Var | Const | Param, int] = field(default_factory=dict)
    made: frozenset[str] = frozenset()
    """Variables that may hold what was computed."""

    @classmethod
    def of(cls, query: object) -> Slots:
        names = set[str]()
        for part in iterate_parts(query):
            if isinstance(part, Extend):
                names.add(part.name)
            elif isinstance(part, Group):
                names |= {name for name, _ in (*part.keys, *part.aggregates)}
        return cls(made=frozenset(names))

    def place(self, node: Node) -> int:
        """A parameter is the same whatever family it is known to be of."""
        key = Param(node.index) if isinstance(node, Param) else node
        return self.places.setdefault(key, len(self.places))

    def variable(self, name: str) -> int:
        return self.place(Var(name))

    def leaf(self, node: Expression) -> int:
        if not isinstance(node, Var | Const | Param):
            raise Unknown(node)
        return self.place(node)


class Seeds:
    """The empty solution, with the constants in their places. Made when all places are known."""

    def __init__(self, slots: Slots) -> None:
        self._empty: Row = [each.term if isinstance(each, Const) else None for each in slots.places]
        self._params = [(place, each.index) for each, place in slots.places.items() if isinstance(each, Param)]

    def seed(self, constants: Sequence[str]) -> Row:
        row = self._empty.copy()
        for place, index in self._params:
            row[place] = constants[index]
        return row
