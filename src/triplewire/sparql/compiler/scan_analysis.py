"""Scan analysis: predicate pushdown over compiled SQL, to find which rows of `quads` and `events` each scan can use.

Conditions are followed from a SELECT into its sources, out of these, and along equalities between columns. The
condition of an outer join, semi-join or anti-join says something about the joined side alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from sqlglot import exp

from triplewire.sparql.compiler.scan_predicates import (
    ColumnBound,
    ColumnBounds,
    ColumnKey,
    DerivedBounds,
    ScanPredicate,
    SemiJoinTie,
    ValueIntervals,
    column_key,
    conjoin_bounds,
    derive_bounds,
    point_intervals,
    read_constant,
)
from triplewire.sparql.sql import Sql, is_null

_EVENT_COLUMNS = ("graph", "stream", "source", "application", "time", "received")
"""Columns whose value is the same in all rows of one event."""


class ColumnClasses:
    """Equivalence classes of the columns of one SELECT that have the same value in every row. They grow by conditions
    that hold."""

    def __init__(self, tables: Iterable[str], *, single: bool) -> None:
        """`tables` are the aliases under which `quads` and `events` are read; with `single` the graph tells the
        event."""
        self._tables = tuple(tables)
        self._single = single
        self._parents: dict[ColumnKey, ColumnKey] = {}

    def copy(self) -> ColumnClasses:
        made = ColumnClasses(self._tables, single=self._single)
        made._parents = dict(self._parents)
        return made

    def join(self, conditions: Iterable[Sql]) -> None:
        for each in conditions:
            match each:
                case exp.EQ(this=exp.Column() as one, expression=exp.Column() as other):
                    self._unite(column_key(one), column_key(other))
        self._join_events()

    def _join_events(self) -> None:
        """Rows of one event have the same headers."""
        for tie in ("graph", "position") if self._single else ("position",):
            first: dict[ColumnKey, str] = {}
            for alias in self._tables:
                other = first.setdefault(self.root((alias, tie)), alias)
                for name in ("position", *_EVENT_COLUMNS) if other != alias else ():
                    self._unite((alias, name), (other, name))

    def root(self, key: ColumnKey) -> ColumnKey:
        while (above := self._parents.get(key, key)) != key:
            key = above
        return key

    def _unite(self, one: ColumnKey, other: ColumnKey) -> None:
        one, other = self.root(one), self.root(other)
        if one != other:
            self._parents[one] = other

    def spread(self, found: ColumnBounds) -> dict[ColumnKey, tuple[ValueIntervals, ...]]:
        """The bounds of whole classes, by their roots."""
        return dict(conjoin_bounds({self.root(key): each} for key, each in found.items()) or {})


OutputIntervals: TypeAlias = Mapping[str, tuple[ValueIntervals, ...]]
"""Intervals that are required, or known, of a query's columns, by name."""

OutputFacts = TypeVar("OutputFacts")

_OPAQUE = ("group", "having", "limit", "offset", "qualify")


def is_opaque(query: exp.Query) -> bool:
    """Tell whether a row may affect other rows; then no condition may be pushed into the query."""
    return any(query.args.get(name) for name in _OPAQUE) or any(each.find(exp.Window) for each in query.selects)


def output_names(query: exp.Expr) -> list[str]:
    """Return the output columns in order, without those that are passed on by `*`."""
    match query:
        case exp.Subquery():
            return output_names(query.this)
        case exp.SetOperation():
            return output_names(query.left)
        case exp.Select():
            return [each.alias_or_name for each in query.expressions if not isinstance(each, exp.Star)] + _passed(query)
    return []


def _passed(select: exp.Select) -> list[str]:
    start = select.args.get("from_")
    starred = any(isinstance(each, exp.Star) for each in select.expressions)
    return output_names(start.this) if starred and start is not None else []


def output_columns(select: exp.Select) -> Iterator[tuple[str, ColumnKey]]:
    """The names of those that are columns of a source, with these."""
    for each in select.expressions:
        inner = each.unalias()
        if isinstance(inner, exp.Cast) and inner.to.is_type("text", "varchar", "double", "timestamp"):
            inner = inner.this if _is_listed(select) else inner
        if isinstance(inner, exp.Column):
            yield each.alias_or_name, column_key(inner)
    start = select.args.get("from_")
    for name in _passed(select):
        yield name, (start.this.alias_or_name, name)  # type: ignore[union-attr]


def _is_listed(select: exp.Select) -> bool:
    """Tell whether a query reads literal rows, which are only cast to the types that they have."""
    start = select.args.get("from_")
    return start is not None and isinstance(start.this, exp.Values)


def listed_intervals(values: exp.Values) -> OutputIntervals:
    """Return the values that the columns of literal rows have. NULL is none of them."""
    rows = [each.expressions for each in values.expressions]
    held = {name: [row[index] for row in rows] for index, name in enumerate(values.args["alias"].columns)}
    found = {name.name: _cell_intervals(cells) for name, cells in held.items()}
    return {name: (each,) for name, each in found.items() if each is not None}


def _cell_intervals(cells: list[Sql]) -> ValueIntervals | None:
    known = [read_constant(each) for each in cells if not is_null(each)]
    return None if None in known else point_intervals(each for each in known if each is not None)


def rename_outputs(wanted: Mapping[str, OutputFacts], left: exp.Expr, right: exp.Expr) -> Mapping[str, OutputFacts]:
    """Rename outputs to those of the other side of a union, whose columns correspond by position."""
    pairs = dict(zip(output_names(left), output_names(right), strict=False))
    return {pairs[name]: each for name, each in wanted.items() if name in pairs}


WantedIntervals: TypeAlias = Callable[[str], tuple[ValueIntervals, ...]]

ColumnReach: TypeAlias = Mapping[str, list[ColumnKey]]
"""For each column of a query, columns of scans: a row is of use only if its value occurs there in a row of use."""

_MOST_WAYS = 8
"""The most parts of a disjunction that are followed one by one: each is a further list of files to find."""

SCANNED_TABLES = ("quads", "events")
PREDICATE_COLUMNS = (
    *("graph", "subject", "predicate", "object", "object_number", "object_time"),
    *("stream", "source", "application", "time", "received"),
)
_TIED = ("position", "graph", "subject", "object")
"""Columns by which scans are joined and by which files are sorted."""


def find_scan_predicates(queries: Iterable[exp.Query], *, single: bool = False) -> tuple[ScanPredicate, ...]:
    """Return a predicate for each scan in these queries that has an alias. With `single`, no two events have one
    graph."""
    walk = _Walk(_Memory(single))
    for query in queries:
        walk.query(query, {}, {})
        walk.sweep(query)
    return tuple(
        ScanPredicate(*named, tuple(dict.fromkeys(ways)), tuple(walk.ties.get(named, ())))
        for named, ways in walk.found.items()
    )


@dataclass(frozen=True)
class _Source:
    """A source in FROM, with the condition of its own by which it is joined, if any."""

    relation: exp.Expr
    on: Sql | None = None

    @property
    def alias(self) -> str:
        return str(self.relation.alias_or_name)

    @property
    def is_scan(self) -> bool:
        return isinstance(self.relation, exp.Table) and self.relation.name in SCANNED_TABLES


@dataclass
class _Parts:
    """The parts of a SELECT: its sources, what its conditions say of these, and which columns are equal."""

    sources: list[_Source]
    held: DerivedBounds
    classes: ColumnClasses


@dataclass
class _Memory:
    """A memo of each SELECT and each source. Sub-queries are nested, and a condition on one concerns all inside it:
    without the memo the time grows with the cube of the depth."""

    single: bool
    parts: dict[int, _Parts] = field(default_factory=dict)
    supplied: dict[int, ColumnReach] = field(default_factory=dict)


@dataclass
class _Walk:
    memory: _Memory
    found: dict[tuple[str, str], list[tuple[ColumnBound, ...]]] = field(default_factory=dict)
    ties: dict[tuple[str, str], dict[SemiJoinTie, None]] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def query(self, query: exp.Expr, outside: OutputIntervals, reach: ColumnReach) -> None:
        match query:
            case exp.Select():
                self._select(query, *(({}, {}) if is_opaque(query) else (outside, reach)))
            case exp.SetOperation():
                followed = type(query) is exp.Union and not is_opaque(query)
                wanted, reached = (outside, reach) if followed else ({}, {})
                self.query(query.left, wanted, reached)
                sides = query.left, query.right
                self.query(query.right, rename_outputs(wanted, *sides), rename_outputs(reached, *sides))
            case exp.Subquery():
                self.query(query.this, outside, reach)
        for each in query.ctes if isinstance(query, exp.Query) else ():
            self.query(each.this, {}, {})

    def sweep(self, query: exp.Query) -> None:
        """Let scans in sub-queries that are not followed use any row."""
        for table in query.find_all(exp.Table):
            if id(table) not in self._seen and table.name in SCANNED_TABLES and table.alias:
                self.found.setdefault((table.name, table.alias), []).append(())
                self.ties[table.name, table.alias] = {}

    def _select(self, select: exp.Select, outside: OutputIntervals, reach: ColumnReach) -> None:
        parts = _parts(select, self.memory)
        sources, classes = parts.sources, parts.classes
        inside = conjoin_bounds(
            [parts.held, *({key: outside[name]} for name, key in output_columns(select) if name in outside)]
        )
        known = _scan_columns_held(parts, self.memory)
        for name, key in output_columns(select):
            known.setdefault(classes.root(key), []).extend(reach.get(name, ()))
        for source in sources:
            joined = _join_classes(source, classes)
            reached = _reached(source, known, joined)
            for way in _ways(select):
                self._take(source, _wanted_intervals(source, joined, conjoin_bounds([inside, way])), reached)

    def _take(self, source: _Source, wanted: WantedIntervals, reached: ColumnReach) -> None:
        relation = source.relation
        self._seen.add(id(relation))
        if source.is_scan and relation.alias:
            way = tuple(ColumnBound(name, each) for name in PREDICATE_COLUMNS for each in wanted(name))
            self.found.setdefault((relation.name, source.alias), []).append(way)
            self._tie((relation.name, source.alias), reached)
        elif not isinstance(relation, exp.Table):
            outside = {name: each for name in output_names(relation) if (each := wanted(name))}
            self.query(relation, outside, reached)

    def _tie(self, named: tuple[str, str], reached: ColumnReach) -> None:
        """Keep only the ties that a scan has in all of its ways."""
        ties = {SemiJoinTie(name, *key): None for name, keys in reached.items() for key in keys if key[0] != named[1]}
        known = self.ties.get(named, ties)
        self.ties[named] = {each: None for each in known if each in ties}


def _parts(select: exp.Select, memory: _Memory) -> _Parts:
    found = memory.parts.get(id(select))
    if found is None:
        sources, conditions = [*_sources(select)], _conditions(select)
        classes = ColumnClasses((each.alias for each in sources if each.is_scan), single=memory.single)
        classes.join(conditions)
        facts = (_known(each, memory) for each in sources if each.on is None)
        held = conjoin_bounds([*facts, *map(derive_bounds, conditions)])
        found = memory.parts[id(select)] = _Parts(sources, held, classes)
    return found


def _ways(select: exp.Select) -> list[DerivedBounds]:
    """Split a disjunction that restricts different columns in its parts into these parts. One disjunction is enough."""
    for each in _conditions(select):
        parts = [derive_bounds(part) for part in _split_condition(each, exp.Or)]
        if 1 < len(parts) <= _MOST_WAYS and derive_bounds(each) == {} and all(part != {} for part in parts):
            return parts
    return [{}]


def _known(source: _Source, memory: _Memory) -> ColumnBounds:
    """Return intervals that hold for the columns of a source whatever is required of it."""
    return {(source.alias, name): each for name, each in _facts(source.relation, memory).items()}


def _facts(query: exp.Expr, memory: _Memory) -> OutputIntervals:
    match query:
        case exp.Subquery():
            return _facts(query.this, memory)
        case exp.Values():
            return listed_intervals(query)
        case exp.Select():
            return _selected(query, memory)
    return {}


def _selected(select: exp.Select, memory: _Memory) -> OutputIntervals:
    parts = _parts(select, memory)
    if parts.held is None:
        return dict.fromkeys(output_names(select), ((),))
    spread = parts.classes.spread(parts.held)
    made = ((name, spread.get(parts.classes.root(key), ())) for name, key in output_columns(select))
    return {name: each for name, each in made if each}


def _scan_columns_held(parts: _Parts, memory: _Memory) -> dict[ColumnKey, list[ColumnKey]]:
    """For each class, return the columns of scans that have its value in every row of a SELECT."""
    made: dict[ColumnKey, list[ColumnKey]] = {}
    for each in parts.sources:
        if each.on is None:
            for name, keys in _supplied(each, memory).items():
                made.setdefault(parts.classes.root((each.alias, name)), []).extend(keys)
    return made


def _supplied(source: _Source, memory: _Memory) -> ColumnReach:
    """For each column of a source, return the columns of scans in it that have its value in every row."""
    if source.is_scan:
        return {name: [(source.alias, name)] for name in _TIED}
    inner = source.relation.unnest()
    if not isinstance(inner, exp.Select):
        return {}
    found = memory.supplied.get(id(inner))
    if found is None:
        parts = _parts(inner, memory)
        held = _scan_columns_held(parts, memory)
        found = {name: held.get(parts.classes.root(key), []) for name, key in output_columns(inner)}
        memory.supplied[id(inner)] = found
    return found


def _reached(source: _Source, known: Mapping[ColumnKey, list[ColumnKey]], joined: ColumnClasses) -> ColumnReach:
    """Return the scan columns that restrict a source of a SELECT, through the classes that it is joined by."""
    made: dict[ColumnKey, list[ColumnKey]] = {}
    for key, found in known.items():
        made.setdefault(joined.root(key), []).extend(found)
    inside = _TIED if source.is_scan else output_names(source.relation)
    return {name: each for name in inside if (each := made.get(joined.root((source.alias, name))))}


def _join_classes(source: _Source, classes: ColumnClasses) -> ColumnClasses:
    """Add what a source's own join condition says of it."""
    if source.on is None:
        return classes
    made = classes.copy()
    made.join(_split_condition(source.on, exp.And))
    return made


def _wanted_intervals(source: _Source, classes: ColumnClasses, base: DerivedBounds) -> WantedIntervals:
    if source.on is not None:
        base = conjoin_bounds([base, *map(derive_bounds, _split_condition(source.on, exp.And))])
    if base is None:
        return lambda name: ((),)
    spread = classes.spread(base)
    return lambda name: spread.get(classes.root((source.alias, name)), ())


def _sources(select: exp.Select) -> Iterator[_Source]:
    start = select.args.get("from_")
    if start is not None:
        yield _Source(start.this)
    for join in select.args.get("joins") or ():
        on = join.args.get("on")
        yield _Source(join.this, None if join.kind == "CROSS" else on if on is not None else exp.true())


def _conditions(select: exp.Select) -> list[Sql]:
    where = select.args.get("where")
    return [*_split_condition(where.this, exp.And)] if where else []


def _split_condition(condition: Sql, by: type[exp.Connector]) -> Iterator[Sql]:
    if isinstance(condition, exp.Paren):
        yield from _split_condition(condition.this, by)
    elif isinstance(condition, by):
        yield from _split_condition(condition.left, by)
        yield from _split_condition(condition.right, by)
    else:
        yield condition
