"""An interpreter run: one subscription on one parsed event, with a budget of steps.

A solution is a list of terms: one slot for each variable, None where it is unbound, and one for each constant, so
that patterns and expressions need not tell them apart. A list is never changed once it is handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeAlias

from triplewire.matching.interpreter.values import TermValue, Undecided, term_text
from triplewire.model.terms import XSD
from triplewire.sparql.algebra import HEADER_PREDICATES, Const, Expression, Extend, Group, Node, Param, Var
from triplewire.sparql.entailment.owl_rl import ClosureRow
from triplewire.sparql.traversal import iterate_parts

Quad: TypeAlias = tuple[str, str, str, int]
"""Subject, predicate, object, and its number."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ParsedEvent:
    """One event, given as a row of an `ENTRIES` table, parsed on demand and cached. Not thread-safe."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self._entry = entry
        self.position: int = entry["position"]
        self.graph = f"<{entry['event']}>"
        lines = entry["text"].split("\n")
        self.quads: list[Quad] = [(*_triple(line), number) for number, line in enumerate(lines)]
        self.whole = len(set(lines)) == len(lines)
        """Whether no triple occurs twice; duplicates would change the number of solutions."""
        self.by: dict[str, list[Quad]] = {}
        for quad in self.quads:
            self.by.setdefault(quad[1], []).append(quad)

    def header(self, predicate: str) -> Sequence[Quad]:
        """The triple of a header, if the event has it."""
        if predicate not in self._headers:
            self._headers[predicate] = self._headed(predicate)
        return self._headers[predicate]

    @cached_property
    def _headers(self) -> dict[str, Sequence[Quad]]:
        return {}

    def _headed(self, predicate: str) -> Sequence[Quad]:
        name, number = HEADER_PREDICATES[predicate]
        value = self._entry[name]
        if value is None:
            return ()
        term = _moment(value) if name in ("time", "received") else _name(value)
        return ((self.graph, predicate, term, number),)


def _triple(line: str) -> tuple[str, str, str]:
    subject, predicate, obj = line.split("\t")
    return subject, predicate, obj


def _name(value: str) -> str:
    if '"' in value or "\\" in value or not value.isprintable():
        raise Undecided
    return f'"{value}"'


def _moment(microseconds: int) -> str:
    """The form in which DuckDB writes an instant: a fraction without trailing zeros."""
    try:
        at = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError as error:
        raise Undecided from error
    written = at.replace(tzinfo=None).isoformat()
    return f'"{written.rstrip("0") if "." in written else written}Z"^^<{XSD}dateTime>'


Row: TypeAlias = list[str | None]


class OntologyRows:
    """All loaded ontologies, as rows of relation, lower and upper term (see `sparql.compiler.ontologies`). The set
    for look-ups, 40 MB at the most, is made on first use."""

    def __init__(self, rows: Sequence[ClosureRow] = ()) -> None:
        self._rows = rows

    @cached_property
    def _known(self) -> frozenset[ClosureRow]:
        return frozenset(self._rows)

    def holds(self, relation: str, lower: str, upper: str) -> bool:
        """Are two terms in a relation, or in that of a property?"""
        return (relation, lower, upper) in self._known


class InterpreterRun:
    """One event, the steps that are left, the ontologies if they are known, and the computed numbers by their text."""

    __slots__ = ("event", "left", "made", "ontologies")

    def __init__(self, event: ParsedEvent, steps: int, ontologies: OntologyRows | None = None) -> None:
        self.event = event
        self.left = steps
        self.ontologies = ontologies
        self.made = dict[str, TermValue]()

    @property
    def known(self) -> OntologyRows:
        if self.ontologies is None:
            raise Undecided
        return self.ontologies

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Undecided

    def written(self, given: TermValue | None) -> str | None:
        """The text of a value as a solution holds it."""
        if given is None:
            return None
        text = term_text(given)
        if given.rough:
            self.made[text] = given
        return text


OperatorFunction: TypeAlias = Callable[[InterpreterRun, Row], list[Row]]
"""The solutions of an operator that are compatible with a given one, each with its bindings."""
ExpressionFunction: TypeAlias = Callable[[InterpreterRun, Row], TermValue | None]
"""The value of an expression; None is an error."""
TestFunction: TypeAlias = Callable[[InterpreterRun, Row], bool | None]


class NotInterpretable(Exception):
    """The query has parts that the interpreter does not know."""


@dataclass
class RowLayout:
    """The slots of variables and constants in a solution."""

    slots: dict[Var | Const | Param, int] = field(default_factory=dict)
    made: frozenset[str] = frozenset()
    """Variables that may hold computed values."""

    @classmethod
    def of(cls, query: object) -> RowLayout:
        names = set[str]()
        for part in iterate_parts(query):
            if isinstance(part, Extend):
                names.add(part.name)
            elif isinstance(part, Group):
                names |= {name for name, _ in (*part.keys, *part.aggregates)}
        return cls(made=frozenset(names))

    def slot(self, node: Node) -> int:
        """The slot of a node. A parameter has the same slot whatever its family."""
        key = Param(node.index) if isinstance(node, Param) else node
        return self.slots.setdefault(key, len(self.slots))

    def variable(self, name: str) -> int:
        return self.slot(Var(name))

    def leaf(self, node: Expression) -> int:
        if not isinstance(node, Var | Const | Param):
            raise NotInterpretable(node)
        return self.slot(node)


class InitialRows:
    """The empty solution with the constants in their slots. Made when all slots are known."""

    def __init__(self, layout: RowLayout) -> None:
        self._empty: Row = [each.term if isinstance(each, Const) else None for each in layout.slots]
        self._params = [(slot, each.index) for each, slot in layout.slots.items() if isinstance(each, Param)]

    def seed(self, constants: Sequence[str]) -> Row:
        row = self._empty.copy()
        for slot, index in self._params:
            row[slot] = constants[index]
        return row
