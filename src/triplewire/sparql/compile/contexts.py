"""Contexts: where an operator is evaluated, and what is shared by all of one query.

A frame is a relation whose rows are what the evaluation is repeated for, all at once: the events of a batch with the
constants of each subscription, or the solutions that EXISTS looks at. Whatever is computed inside of a frame has the
frame's keys as columns and is joined on them, so that one row's solutions never meet another's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from sqlglot import exp

from triplewire.sparql.algebra import Dataset, Node, Operator
from triplewire.sparql.compile.conditions import Scope
from triplewire.sparql.compile.relations import (
    Closed,
    Exports,
    Joined,
    Relation,
    Rendering,
    Source,
    Table,
    carried,
    distinct,
    plain,
)
from triplewire.sparql.compile.sql import Sql, is_true
from triplewire.sparql.compile.values import Value
from triplewire.sparql.compile.windows import Headers, relation_of
from triplewire.sparql.statistics import Statistics


class Definition(Protocol):
    """What a named relation is."""

    def sql(self) -> exp.Query:
        """Asked for last, when all columns are known."""


Making: TypeAlias = Callable[[Operator, "Context"], Relation]

_NOTHING = Statistics()
"""What is known of windows before they close."""


@dataclass
class Build:
    """What all operators of one query share: names, and relations that are read more than once."""

    making: Making
    statistics: Statistics = field(default_factory=Statistics)
    now: Value = field(default_factory=Value)
    names: dict[str, int] = field(default_factory=dict)
    shared: dict[str, Definition] = field(default_factory=dict)
    """Named relations, in an order in which each reads only earlier ones."""
    steady: bool = False
    """Is every order that is left open to be that of texts?"""
    windows: tuple[str, ...] = ()
    """The names of the windows, each at the number of its relation."""
    _count: int = 0

    def alias(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def closed(self, relation: Relation, rendering: Rendering = plain, *, constants: bool = True) -> Relation:
        """The relation as a sub-query, with its constants as they are or as columns of it."""
        exports = Exports(relation, self.names, rendering)
        alias = self.alias("s")
        return Relation(
            sources=(Joined(Closed(exports, alias)),),
            values=carried(exports, alias, constants=constants),
            keys={name: exports.key(alias, name) for name in relation.keys},
            rows="set" if rendering is distinct else relation.rows,
        )

    def settled(self, relation: Relation) -> Relation:
        """The relation with every solution as often as it counts."""
        return self.closed(relation, distinct) if relation.rows == "repeats" else relation

    def simple(self, relation: Relation) -> Relation:
        """The relation without values that are computed under names of their own."""
        return self.closed(relation) if relation.lets.values else relation

    def share(self, relation: Relation, rendering: Rendering = plain) -> Frame:
        """The relation under a name, to be read by many."""
        exports = Exports(relation, self.names, rendering)
        return Frame(self.define(exports), exports)

    def define(self, definition: Definition) -> str:
        """The name of a relation that is to be read by many."""
        name = self.alias("r")
        self.shared[name] = definition
        return name


@dataclass(frozen=True)
class Frame:
    """A named relation. Reading it gives an open relation with its values and keys."""

    name: str
    exports: Exports

    def read(self, alias: str) -> Relation:
        keys = {name: self.exports.key(alias, name) for name in self.exports.relation.keys}
        rows = self.exports.relation.rows
        return Relation((Joined(Table(self.name, alias)),), values=carried(self.exports, alias), keys=keys, rows=rows)


@dataclass(frozen=True)
class Context:
    """`counted` says whether it matters how often a solution comes. `graph` is set inside of GRAPH. In a `frame`,
    `substituted` are the variables that it gives values to: they are constants to all that is evaluated in it."""

    build: Build
    dataset: Dataset = field(default_factory=Dataset)
    counted: bool = True
    graph: Node | None = None
    frame: Frame | None = None
    events: bool = False
    """Is each row of the frame one event, whose quads are all there is?"""
    window: int | None = None
    """The number of the window that is asked; None for everything that was published."""

    def compile(self, operator: Operator) -> Relation:
        return self.build.making(operator, self)

    def uncounted(self) -> Context:
        return replace(self, counted=False)

    def inside(self, graph: Node) -> Context:
        return replace(self, graph=graph)

    def framed(self, frame: Frame) -> Context:
        return replace(self, frame=frame)

    def within(self, window: str) -> Context:
        """All of a window, whatever graphs the query is asked of."""
        return replace(self, dataset=Dataset(), graph=None, window=self.build.windows.index(window))

    def quads(self, alias: str) -> Source:
        return Table("quads" if self.window is None else relation_of(self.window), alias)

    def headers(self, alias: str) -> Source:
        """A row for each event."""
        return Table("events", alias) if self.window is None else Headers(self.window, alias)

    @property
    def statistics(self) -> Statistics:
        return self.build.statistics if self.window is None else _NOTHING

    def start(self) -> Relation:
        """The one empty solution, once for each row of the frame."""
        return Relation() if self.frame is None else self.frame.read(self.build.alias("f"))

    @property
    def keyed(self) -> bool:
        """Is what is computed told apart by event?"""
        return self.events or self.graph is not None

    @property
    def fixed(self) -> frozenset[str]:
        """The variables to which every row of the frame gives a value; others may yet be bound inside of it."""
        if self.frame is None:
            return frozenset()
        values = self.frame.exports.relation.values
        return frozenset(name for name, value in values.items() if is_true(value.bound()))

    def repeats(self, relation: Relation) -> bool:
        """Was it computed for each row of the frame, and can these be told apart in it? What has other keys alone, as
        those of its graph, was not."""
        keys = {} if self.frame is None else self.frame.exports.relation.keys
        return bool(keys) and keys.keys() <= relation.keys.keys()

    @property
    def substituted(self) -> frozenset[str]:
        return frozenset() if self.frame is None else frozenset(self.frame.exports.relation.values)

    def scope(self, relation: Relation, exists: Callable[..., Sql] | None = None) -> Scope:
        return Scope(relation.values, relation.lets, exists=exists, now=self.build.now)


def same_keys(left: Mapping[str, Sql], right: Mapping[str, Sql]) -> list[Sql]:
    """Two relations meet only where their keys agree. A variable without a value agrees with itself."""
    return [_agree(name, left[name], right[name]) for name in left if name in right]


def _agree(name: str, left: Sql, right: Sql) -> Sql:
    if left == right:
        return exp.true()
    kind = exp.EQ if name in ("position", "subscription", "graph") else exp.NullSafeEQ
    return kind(this=left, expression=right)
