"""Readings: which rows of `quads` and `events` each scan in a compiled query can use.

Conditions are followed from a SELECT into its sources, out of these, and from one side of an equality to the other. The
condition of an outer join, of a semi-join or of its opposite says something about the joined side alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from triplewire.sparql.compile.bounds import Bounds, Found, bounds, conjoined
from triplewire.sparql.compile.classes import Classes
from triplewire.sparql.compile.outputs import Outside, columns, is_opaque, listed, names, renamed
from triplewire.sparql.compile.sql import Sql
from triplewire.sparql.readings import Bound, Intervals, Reading, Tie

Wanted: TypeAlias = Callable[[str], tuple[Intervals, ...]]

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
    walk = _Walk(single)
    for query in queries:
        walk.query(query, {})
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
class _Walk:
    single: bool
    found: dict[tuple[str, str], list[tuple[Bound, ...]]] = field(default_factory=dict)
    ties: dict[tuple[str, str], dict[Tie, None]] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def query(self, query: exp.Expr, outside: Outside) -> None:
        match query:
            case exp.Select():
                self._select(query, {} if is_opaque(query) else outside)
            case exp.SetOperation():
                wanted = outside if type(query) is exp.Union and not is_opaque(query) else {}
                self.query(query.left, wanted)
                self.query(query.right, renamed(wanted, query.left, query.right))
            case exp.Subquery():
                self.query(query.this, outside)
        for each in query.ctes if isinstance(query, exp.Query) else ():
            self.query(each.this, {})

    def sweep(self, query: exp.Query) -> None:
        """Scans in places that are not followed can use any row."""
        for table in query.find_all(exp.Table):
            if id(table) not in self._seen and table.name in TABLES and table.alias:
                self.found.setdefault((table.name, table.alias), []).append(())
                self.ties[table.name, table.alias] = {}

    def _select(self, select: exp.Select, outside: Outside) -> None:
        sources, held, classes = _parts(select, self.single)
        inside = conjoined([held, *({key: outside[name]} for name, key in columns(select) if name in outside)])
        for way in _ways(select):
            for source in sources:
                self._take(source, _wanted(source, classes, conjoined([inside, way])))
        for source in sources:
            if source.is_scan:
                self._tie(source, _ties(source, sources, classes))

    def _tie(self, source: _Source, found: Iterable[Tie]) -> None:
        """What takes part in several ways has the ties alone that it has in all of them."""
        named, ties = (source.relation.name, source.alias), dict.fromkeys(found)
        known = self.ties.get(named, ties)
        self.ties[named] = {each: None for each in known if each in ties}

    def _take(self, source: _Source, wanted: Wanted) -> None:
        relation = source.relation
        self._seen.add(id(relation))
        if source.is_scan and relation.alias:
            way = tuple(Bound(name, each) for name in COLUMNS for each in wanted(name))
            self.found.setdefault((relation.name, source.alias), []).append(way)
        elif not isinstance(relation, exp.Table):
            self.query(relation, {name: each for name in names(relation) if (each := wanted(name))})


def _parts(select: exp.Select, single: bool) -> tuple[list[_Source], Found, Classes]:
    """The sources of a SELECT, and what its conditions say of these."""
    sources, conditions = [*_sources(select)], _conditions(select)
    classes = Classes((each.alias for each in sources if each.is_scan), single=single)
    classes.join(conditions)
    facts = (_known(each, single) for each in sources if each.on is None)
    return sources, conjoined([*facts, *map(bounds, conditions)]), classes


def _ways(select: exp.Select) -> list[Found]:
    """What a disjunction says of columns that differ from part to part: each part by itself. One is enough."""
    for each in _conditions(select):
        parts = [bounds(part) for part in _parted(each, exp.Or)]
        if 1 < len(parts) <= _MOST_WAYS and bounds(each) == {} and all(part != {} for part in parts):
            return parts
    return [{}]


def _known(source: _Source, single: bool) -> Bounds:
    """What holds for the columns of a source whatever is asked of it."""
    return {(source.alias, name): each for name, each in _facts(source.relation, single).items()}


def _facts(query: exp.Expr, single: bool) -> Outside:
    match query:
        case exp.Subquery():
            return _facts(query.this, single)
        case exp.Values():
            return listed(query)
        case exp.Select():
            return _selected(query, single)
    return {}


def _selected(select: exp.Select, single: bool) -> Outside:
    _, held, classes = _parts(select, single)
    if held is None:
        return dict.fromkeys(names(select), ((),))
    spread = classes.spread(held)
    made = ((name, spread.get(classes.root(key), ())) for name, key in columns(select))
    return {name: each for name, each in made if each}


def _ties(source: _Source, sources: Iterable[_Source], classes: Classes) -> Iterator[Tie]:
    """With the scans that every row of the SELECT has a row of."""
    classes = _joined(source, classes)
    roots = {classes.root((source.alias, name)): name for name in _TIED}
    for each in sources:
        if each.is_scan and each.on is None and each.alias != source.alias:
            for name in _TIED:
                if (own := roots.get(classes.root((each.alias, name)))) is not None:
                    yield Tie(own, each.alias, name)


def _joined(source: _Source, classes: Classes) -> Classes:
    """With what the condition of its own says of a source."""
    if source.on is None:
        return classes
    made = classes.copied()
    made.join(_parted(source.on, exp.And))
    return made


def _wanted(source: _Source, classes: Classes, base: Found) -> Wanted:
    classes = _joined(source, classes)
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
