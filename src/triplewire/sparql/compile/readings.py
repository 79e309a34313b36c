"""Readings: which rows of `quads` and `events` each scan in a compiled query can use.

Conditions are followed from a SELECT into its sources, out of these, and from one side of an equality to the other. The
condition of an outer join, of a semi-join or of its opposite says something about the joined side alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from triplewire.sparql.compile.bounds import Bounds, Found, Key, bounds, conjoined
from triplewire.sparql.compile.classes import Classes
from triplewire.sparql.compile.outputs import Outside, columns, is_opaque, listed, names, renamed
from triplewire.sparql.compile.sql import Sql
from triplewire.sparql.readings import Bound, Intervals, Reading, Tie

Wanted: TypeAlias = Callable[[str], tuple[Intervals, ...]]

Reach: TypeAlias = Mapping[str, list[Key]]
"""By column of a query, columns of scans: a row is of no use unless one that is of use to such a scan has its value."""

_MOST_WAYS = 8
"""Parts of a disjunction that are looked at one by one: each is a list of files more to be found."""

TABLES = ("quads", "events")
COLUMNS = (
    *("graph", "subject", "predicate", "object", "object_number", "object_time"),
    *("stream", "source", "application", "time", "received"),
)
_TIED = ("position", "graph", "subject", "object")
"""Columns by which scans are joined, and that say of a file where it lies."""


def readings(queries: Iterable[exp.Query], *, single: bool = False) -> tuple[Reading, ...]:
    """Of all scans in these that have an alias. With `single` no two events have one graph."""
    walk = _Walk(_Memory(single))
    for query in queries:
        walk.query(query, {}, {})
        walk.sweep(query)
    return tuple(
        Reading(*named, tuple(dict.fromkeys(ways)), tuple(walk.ties.get(named, ())))
        for named, ways in walk.found.items()
    )


@dataclass(frozen=True)
class _Source:
    """What stands in FROM, and where it is joined by a condition of its own, that."""

    relation: exp.Expr
    on: Sql | None = None

    @property
    def alias(self) -> str:
        return str(self.relation.alias_or_name)

    @property
    def is_scan(self) -> bool:
        return isinstance(self.relation, exp.Table) and self.relation.name in TABLES


@dataclass
class _Parts:
    """What a SELECT is made of: its sources, what its conditions say of these, and which columns are equal."""

    sources: list[_Source]
    held: Found
    classes: Classes


@dataclass
class _Memory:
    """What was found out about each SELECT and each source. Sub-queries lie in each other, and what is asked of one is
    asked of all inside of it, so that without it the time grows with the cube of the depth."""

    single: bool
    parts: dict[int, _Parts] = field(default_factory=dict)
    supplied: dict[int, Reach] = field(default_factory=dict)


@dataclass
class _Walk:
    memory: _Memory
    found: dict[tuple[str, str], list[tuple[Bound, ...]]] = field(default_factory=dict)
    ties: dict[tuple[str, str], dict[Tie, None]] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def query(self, query: exp.Expr, outside: Outside, reach: Reach) -> None:
        match query:
            case exp.Select():
                self._select(query, *(({}, {}) if is_opaque(query) else (outside, reach)))
            case exp.SetOperation():
                followed = type(query) is exp.Union and not is_opaque(query)
                wanted, reached = (outside, reach) if followed else ({}, {})
                self.query(query.left, wanted, reached)
                sides = query.left, query.right
                self.query(query.right, renamed(wanted, *sides), renamed(reached, *sides))
            case exp.Subquery():
                self.query(query.this, outside, reach)
        for each in query.ctes if isinstance(query, exp.Query) else ():
            self.query(each.this, {}, {})

    def sweep(self, query: exp.Query) -> None:
        """Scans in places that are not followed can use any row."""
        for table in query.find_all(exp.Table):
            if id(table) not in self._seen and table.name in TABLES and table.alias:
                self.found.setdefault((table.name, table.alias), []).append(())
                self.ties[table.name, table.alias] = {}

    def _select(self, select: exp.Select, outside: Outside, reach: Reach) -> None:
        parts = _parts(select, self.memory)
        sources, classes = parts.sources, parts.classes
        inside = conjoined([parts.held, *({key: outside[name]} for name, key in columns(select) if name in outside)])
        known = _held(parts, self.memory)
        for name, key in columns(select):
            known.setdefault(classes.root(key), []).extend(reach.get(name, ()))
        for source in sources:
            joined = _joined(source, classes)
            reached = _reached(source, known, joined)
            for way in _ways(select):
                self._take(source, _wanted(source, joined, conjoined([inside, way])), reached)

    def _take(self, source: _Source, wanted: Wanted, reached: Reach) -> None:
        relation = source.relation
        self._seen.add(id(relation))
        if source.is_scan and relation.alias:
            way = tuple(Bound(name, each) for name in COLUMNS for each in wanted(name))
            self.found.setdefault((relation.name, source.alias), []).append(way)
            self._tie((relation.name, source.alias), reached)
        elif not isinstance(relation, exp.Table):
            outside = {name: each for name in names(relation) if (each := wanted(name))}
            self.query(relation, outside, reached)

    def _tie(self, named: tuple[str, str], reached: Reach) -> None:
        """What takes part in several ways has the ties alone that it has in all of them."""
        ties = {Tie(name, *key): None for name, keys in reached.items() for key in keys if key[0] != named[1]}
        known = self.ties.get(named, ties)
        self.ties[named] = {each: None for each in known if each in ties}


def _parts(select: exp.Select, memory: _Memory) -> _Parts:
    found = memory.parts.get(id(select))
    if found is None:
        sources, conditions = [*_sources(select)], _conditions(select)
        classes = Classes((each.alias for each in sources if each.is_scan), single=memory.single)
        classes.join(conditions)
        facts = (_known(each, memory) for each in sources if each.on is None)
        held = conjoined([*facts, *map(bounds, conditions)])
        found = memory.parts[id(select)] = _Parts(sources, held, classes)
    return found


def _ways(select: exp.Select) -> list[Found]:
    """What a disjunction says of columns that differ from part to part: each part by itself. One is enough."""
    for each in _conditions(select):
        parts = [bounds(part) for part in _parted(each, exp.Or)]
        if 1 < len(parts) <= _MOST_WAYS and bounds(each) == {} and all(part != {} for part in parts):
            return parts
    return [{}]


def _known(source: _Source, memory: _Memory) -> Bounds:
    """What holds for the columns of a source whatever is asked of it."""
    return {(source.alias, name): each for name, each in _facts(source.relation, memory).items()}


def _facts(query: exp.Expr, memory: _Memory) -> Outside:
    match query:
        case exp.Subquery():
            return _facts(query.this, memory)
        case exp.Values():
            return listed(query)
        case exp.Select():
            return _selected(query, memory)
    return {}


def _selected(select: exp.Select, memory: _Memory) -> Outside:
    parts = _parts(select, memory)
    if parts.held is None:
        return dict.fromkeys(names(select), ((),))
    spread = parts.classes.spread(parts.held)
    made = ((name, spread.get(parts.classes.root(key), ())) for name, key in columns(select))
    return {name: each for name, each in made if each}


def _held(parts: _Parts, memory: _Memory) -> dict[Key, list[Key]]:
    """By class, the columns of scans that hold its value in every row of a SELECT."""
    made: dict[Key, list[Key]] = {}
    for each in parts.sources:
        if each.on is None:
            for name, keys in _supplied(each, memory).items():
                made.setdefault(parts.classes.root((each.alias, name)), []).extend(keys)
    return made


def _supplied(source: _Source, memory: _Memory) -> Reach:
    """By column of a source, the columns of scans in it that hold its value in every row."""
    if source.is_scan:
        return {name: [(source.alias, name)] for name in _TIED}
    inner = source.relation.unnest()
    if not isinstance(inner, exp.Select):
        return {}
    found = memory.supplied.get(id(inner))
    if found is None:
        parts = _parts(inner, memory)
        held = _held(parts, memory)
        found = {name: held.get(parts.classes.root(key), []) for name, key in columns(inner)}
        memory.supplied[id(inner)] = found
    return found


def _reached(source: _Source, known: Mapping[Key, list[Key]], joined: Classes) -> Reach:
    """What reaches the columns of a source of a SELECT, by the classes that it is joined with."""
    made: dict[Key, list[Key]] = {}
    for key, found in known.items():
        made.setdefault(joined.root(key), []).extend(found)
    inside = _TIED if source.is_scan else names(source.relation)
    return {name: each for name in inside if (each := made.get(joined.root((source.alias, name))))}


def _joined(source: _Source, classes: Classes) -> Classes:
    """With what the condition of its own says of a source."""
    if source.on is None:
        return classes
    made = classes.copied()
    made.join(_parted(source.on, exp.And))
    return made


def _wanted(source: _Source, classes: Classes, base: Found) -> Wanted:
    if source.on is not None:
        base = conjoined([base, *map(bounds, _parted(source.on, exp.And))])
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
    return [*_parted(where.this, exp.And)] if where else []


def _parted(condition: Sql, by: type[exp.Connector]) -> Iterator[Sql]:
    if isinstance(condition, exp.Paren):
        yield from _parted(condition.this, by)
    elif isinstance(condition, by):
        yield from _parted(condition.left, by)
        yield from _parted(condition.right, by)
    else:
        yield condition
