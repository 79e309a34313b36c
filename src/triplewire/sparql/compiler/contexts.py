"""Compile contexts: where an operator is evaluated, and the named relations (CTEs) that one query shares.

A frame is a relation for whose rows the evaluation is repeated, all at once: the events of a batch with the constants
of each subscription, or the solutions that EXISTS looks at. Relations computed inside a frame have its keys as columns
and are joined on them, so that one row's solutions never meet another's. Closures are the named relations of repeated
paths; `keyed` ones tell pairs apart by event, with the columns `graph` (its position) and `name` (its term). Windows
of a continuous query are relations named `window_0`, `window_1`, ….
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from sqlglot import exp

from triplewire.sparql.algebra import Dataset, Node, Operator
from triplewire.sparql.compiler.expressions import ExpressionScope
from triplewire.sparql.compiler.relations import (
    Exports,
    Relation,
    RelationSource,
    Rendering,
    SubquerySource,
    TableSource,
    carry_values,
    render_distinct,
    render_select,
)
from triplewire.sparql.compiler.values import Value
from triplewire.sparql.sql import Sql, column, equal, every, is_true, text
from triplewire.sparql.statistics import Statistics

HEADER_COLUMNS = ("position", "graph", "stream", "source", "application", "time", "received")
"""The columns of `events`."""


def window_relation(window: int) -> str:
    """The name of the relation that has the columns of `quads` and a row for each quad in the window."""
    return f"window_{window}"


@dataclass(frozen=True)
class WindowHeaders:
    """The events of a window as a source, whichever of their quads are in the window."""

    window: int
    alias: str

    def sql(self) -> exp.Expr:
        events = exp.select(*(exp.column(name) for name in HEADER_COLUMNS)).from_(window_relation(self.window))
        return events.distinct(copy=False).subquery(self.alias, copy=False)


class RelationDefinition(Protocol):
    """The definition of a named relation (CTE)."""

    def sql(self) -> exp.Query:
        """Asked for last, when all columns are known."""


OperatorCompiler: TypeAlias = Callable[[Operator, "Context"], Relation]

_NO_STATISTICS = Statistics()
"""The statistics of windows, of which nothing is known before they close."""


@dataclass
class QueryBuild:
    """The state that all operators of one query share: names, and relations that are read more than once."""

    compiler: OperatorCompiler
    statistics: Statistics = field(default_factory=Statistics)
    now: Value = field(default_factory=Value)
    names: dict[str, int] = field(default_factory=dict)
    shared: dict[str, RelationDefinition | PathClosure] = field(default_factory=dict)
    """Named relations, in an order in which each reads only earlier ones."""
    steady: bool = False
    """Whether results must be deterministic: wherever SPARQL leaves an order open, texts are ordered."""
    windows: tuple[str, ...] = ()
    """The names of the windows, each at the number of its relation."""
    _count: int = 0

    def alias(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def close(self, relation: Relation, rendering: Rendering = render_select, *, constants: bool = True) -> Relation:
        """Close a relation: make it a sub-query, with its constants as they are or as columns."""
        exports = Exports(relation, self.names, rendering)
        alias = self.alias("s")
        keys = {name: exports.key(alias, name) for name in relation.keys}
        values = carry_values(exports, alias, constants=constants)
        rows = "set" if rendering is render_distinct else relation.rows
        return Relation(values=values, keys=keys, rows=rows).join(SubquerySource(exports, alias))

    def settle(self, relation: Relation) -> Relation:
        """Return the relation with every solution as often as it counts."""
        return self.close(relation, render_distinct) if relation.rows == "repeats" else relation

    def without_lets(self, relation: Relation) -> Relation:
        """Return the relation without computed columns; they become columns of a sub-query."""
        return self.close(relation) if relation.lets.values else relation

    def share(self, relation: Relation, rendering: Rendering = render_select) -> EvaluationFrame:
        """Name a relation, to be read several times."""
        exports = Exports(relation, self.names, rendering)
        return EvaluationFrame(self.define(exports), exports)

    def define(self, definition: RelationDefinition | PathClosure) -> str:
        """Define a named relation and return its name."""
        name = self.alias("r")
        self.shared[name] = definition
        return name


@dataclass(frozen=True)
class EvaluationFrame:
    """A named relation. Reading it gives an open relation with its values and keys."""

    name: str
    exports: Exports

    def read(self, alias: str) -> Relation:
        keys = {name: self.exports.key(alias, name) for name in self.exports.relation.keys}
        values = carry_values(self.exports, alias)
        return Relation(values=values, keys=keys, rows=self.exports.relation.rows).join(TableSource(self.name, alias))


@dataclass(frozen=True)
class Context:
    """The place in a query at which an operator is evaluated. `counted` says whether it matters how often a solution
    comes. `graph` is set inside of GRAPH. In a `frame`, `substituted` are the variables that it binds: they are
    constants to everything that is evaluated in it."""

    build: QueryBuild
    dataset: Dataset = field(default_factory=Dataset)
    counted: bool = True
    graph: Node | None = None
    frame: EvaluationFrame | None = None
    events: bool = False
    """Whether each row of the frame is one event, whose quads are all the data."""
    window: int | None = None
    """The number of the window that is asked; None for everything that was published."""

    def compile(self, operator: Operator) -> Relation:
        return self.build.compiler(operator, self)

    def uncounted(self) -> Context:
        return replace(self, counted=False)

    def in_graph(self, graph: Node) -> Context:
        return replace(self, graph=graph)

    def in_frame(self, frame: EvaluationFrame) -> Context:
        return replace(self, frame=frame)

    def in_window(self, window: str) -> Context:
        """Return the context of a whole window, whatever the dataset of the query."""
        return replace(self, dataset=Dataset(), graph=None, window=self.build.windows.index(window))

    def quads(self, alias: str) -> RelationSource:
        return TableSource("quads" if self.window is None else window_relation(self.window), alias)

    def headers(self, alias: str) -> RelationSource:
        """A row for each event."""
        return TableSource("events", alias) if self.window is None else WindowHeaders(self.window, alias)

    @property
    def statistics(self) -> Statistics:
        return self.build.statistics if self.window is None else _NO_STATISTICS

    def start(self) -> Relation:
        """The one empty solution, once for each row of the frame."""
        return Relation() if self.frame is None else self.frame.read(self.build.alias("f"))

    @property
    def keyed(self) -> bool:
        """Whether relations are keyed by event."""
        return self.events or self.graph is not None

    @property
    def fixed(self) -> frozenset[str]:
        """The variables that every row of the frame binds; others may yet be bound inside of it."""
        if self.frame is None:
            return frozenset()
        values = self.frame.exports.relation.values
        return frozenset(name for name, value in values.items() if is_true(value.bound()))

    def repeats(self, relation: Relation) -> bool:
        """Tell whether a relation was computed for each row of the frame, and has its keys. One with other keys alone,
        as those of its graph, was not."""
        keys = {} if self.frame is None else self.frame.exports.relation.keys
        return bool(keys) and keys.keys() <= relation.keys.keys()

    @property
    def substituted(self) -> frozenset[str]:
        return frozenset() if self.frame is None else frozenset(self.frame.exports.relation.values)

    def scope(self, relation: Relation, exists: Callable[..., Sql] | None = None) -> ExpressionScope:
        return ExpressionScope(relation.values, relation.lets, exists=exists, now=self.build.now)


def same_keys(left: Mapping[str, Sql], right: Mapping[str, Sql]) -> list[Sql]:
    """Return the conditions that keys agree. A variable without a value agrees with itself."""
    return [_agree(name, left[name], right[name]) for name in left if name in right]


def _agree(name: str, left: Sql, right: Sql) -> Sql:
    if left == right:
        return exp.true()
    kind = exp.EQ if name in ("position", "subscription", "graph") else exp.NullSafeEQ
    return kind(this=left, expression=right)


PATH_KEYS = ("graph", "name")


@dataclass(frozen=True)
class PathSteps:
    """The pairs that one repetition of a path connects, each once."""

    relation: Relation
    keyed: bool

    def sql(self) -> exp.Query:
        values, keys = self.relation.values, self.relation.keys
        columns = {"s": values["s"].text(), "o": values["o"].text()}
        named = {name: keys[name] for name in PATH_KEYS} if self.keyed else {}
        return render_select(self.relation, {**columns, **named}).distinct(copy=False)


@dataclass(frozen=True)
class PathClosure:
    """The pairs that one or more steps connect. Starts at the term `start`, if there is one, else anywhere.

    Engines with recursion over sets run `recursive`; for others there are the parts."""

    steps: str
    start: str | None
    keyed: bool

    def recursive(self, name: str) -> exp.Query:
        """Return the recursive definition, which refers to itself by this name."""
        return exp.union(self.first(), self.next(name), distinct=True, copy=False)

    def first(self) -> exp.Select:
        """Return the pairs of one step."""
        select = exp.select(*self._columns("d", "d")).from_(exp.to_table(self.steps, alias="d"))
        return select if self.start is None else select.where(equal(column("d", "s"), text(self.start)))

    def next(self, known: str) -> exp.Select:
        """Extend the pairs of a relation by one step."""
        same = [equal(column("c", "graph"), column("d", "graph"))] if self.keyed else []
        on: Sql = every(equal(column("c", "o"), column("d", "s")), *same)
        select = exp.select(*self._columns("c", "d")).from_(exp.to_table(known, alias="c"))
        return select.join(exp.to_table(self.steps, alias="d"), on=on)

    def _columns(self, start: str, end: str) -> list[exp.Expr]:
        keys = [column(end, name) for name in PATH_KEYS] if self.keyed else []
        return [column(start, "s"), column(end, "o"), *keys]


@dataclass(frozen=True)
class PathPairs:
    """The pairs of a named relation and those of paths of no length."""

    named: str
    zero: exp.Query
    keyed: bool

    def sql(self) -> exp.Query:
        columns = [exp.column(name) for name in ("s", "o", *(PATH_KEYS if self.keyed else ()))]
        return exp.union(exp.select(*columns).from_(self.named), self.zero, distinct=True, copy=False)


def with_shared_relations(build: QueryBuild, query: exp.Query) -> exp.Query:
    """Add the named relations that a query reads, for an engine with recursion over sets."""
    return with_definitions(query, render_definitions(build))


def render_definitions(build: QueryBuild) -> dict[str, exp.Query]:
    """Render named relations from the last to the first, because each asks earlier ones for columns."""
    made = {name: _render_definition(name, each) for name, each in reversed([*build.shared.items()])}
    return dict(reversed([*made.items()]))


def _render_definition(name: str, definition: RelationDefinition | PathClosure) -> exp.Query:
    return definition.recursive(name) if isinstance(definition, PathClosure) else definition.sql()


def with_definitions(query: exp.Query, relations: dict[str, exp.Query]) -> exp.Query:
    if not relations:
        return query
    named = [exp.CTE(this=each, alias=exp.TableAlias(this=exp.to_identifier(name))) for name, each in relations.items()]
    query.set("with_", exp.With(expressions=named, recursive=True))
    return query
