"""Relations: SELECTs under construction.

A relation has a value for each variable and is open: more sources and conditions can be added. To be read as a whole,
by a join that is not an inner one or after DISTINCT, it is closed: it becomes a sub-query, and its values become
columns of that. A sub-query has only the columns that somebody asks for, so nothing is computed that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from sqlglot import exp

from triplewire.sparql.compile.columns import Stored
from triplewire.sparql.compile.facets import FACETS, facets_of
from triplewire.sparql.compile.lets import COMPUTED, Lets, outside, uses_computed
from triplewire.sparql.compile.sql import VARCHAR, Sql, cast, column, every, is_null, null, number
from triplewire.sparql.compile.statics import Known
from triplewire.sparql.compile.values import Value, facet_of

Rows: TypeAlias = Literal["set", "repeats", "bag"]
Kind: TypeAlias = Literal["cross", "left", "semi", "anti"]
"""How a source is joined to those before it: as a product, or as SQL's LEFT, SEMI and ANTI joins."""


class Source(Protocol):
    """Something that stands in FROM."""

    def sql(self) -> exp.Expr:
        """The table or sub-query with its alias; asked for last, when all columns are known."""


@dataclass(frozen=True)
class Table:
    name: str
    alias: str

    def sql(self) -> exp.Expr:
        return exp.to_table(self.name, alias=self.alias)


@dataclass(frozen=True)
class Unit:
    """One row."""

    alias: str

    def sql(self) -> exp.Expr:
        return exp.select(exp.alias_(number(1), "unit")).subquery(self.alias)


@dataclass(frozen=True)
class Joined:
    source: Source
    kind: Kind = "cross"
    on: Sql | None = None


@dataclass(frozen=True)
class Relation:
    """`keys` are columns by which whoever asks tells apart what is computed at once: all joins are on them, too.

    Of a `set` every solution comes once, or it does not matter how often. One that `repeats` has solutions that come
    several times and count once: DISTINCT over all values makes it a set. In a `bag` they count as often as they come.
    `headers` names, for a variable that holds an event, an alias that has the event's headers.
    """

    sources: tuple[Joined, ...] = ()
    conditions: tuple[Sql, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    keys: Mapping[str, Sql] = field(default_factory=dict)
    lets: Lets = field(default_factory=Lets)
    rows: Rows = "set"
    headers: Mapping[str, str] = field(default_factory=dict)

    def where(self, *conditions: Sql) -> Relation:
        known = set(self.conditions)
        return replace(self, conditions=(*self.conditions, *(each for each in conditions if each not in known)))

    def having(self, **values: Value) -> Relation:
        return replace(self, values={**self.values, **values})

    def only(self, names: Sequence[str]) -> Relation:
        return replace(self, values={name: self.values[name] for name in names if name in self.values})


Columns: TypeAlias = Mapping[str, Sql]
Rendering: TypeAlias = Callable[[Relation, Columns], exp.Query]


class Exports:
    """The columns of a closed relation. `names` numbers the variables of the whole query."""

    def __init__(self, relation: Relation, names: dict[str, int], rendering: Rendering) -> None:
        self.relation = relation
        self._names = names
        self._rendering = rendering
        self._columns: dict[str, Sql] = {}

    def named(self, variable: str, facet: str | None) -> str:
        return f"v{self._names.setdefault(variable, len(self._names))}" + (f"_{facet}" if facet else "")

    def key(self, alias: str, name: str) -> Sql:
        self._columns.setdefault(name, self.relation.keys[name])
        return column(alias, name)

    def column(self, alias: str, variable: str, facet: str | None = None) -> Sql:
        """The column for a variable's text or for a facet of it; NULL where there is none."""
        name = self.named(variable, facet)
        if name not in self._columns:
            value = self.relation.values[variable]
            made = value.text() if facet is None else facet_of(value, facet)
            if is_null(made):
                return null()
            self._columns[name] = made
        return column(alias, name)

    def sql(self) -> exp.Query:
        return self._rendering(self.relation, self._columns)


@dataclass(frozen=True)
class Carried(Stored):
    """A variable of a closed relation."""

    exports: Exports | None = None

    def text(self) -> Sql:
        assert self.exports is not None
        return self.exports.column(self.alias, self.name)

    def facet(self, name: str) -> Sql:
        assert self.exports is not None
        return self.exports.column(self.alias, self.name, name)


@dataclass(frozen=True)
class Crossing(Value):
    """SQL that crosses sub-queries under the name of a variable: no term, but a condition, or what is sorted by."""

    made: Sql

    def text(self) -> Sql:
        return self.made

    def bound(self) -> Sql:
        return exp.true()


@dataclass(frozen=True)
class Bare(Stored):
    """A term that a column holds, with nothing beside it: its facets are computed from its text."""

    def facet(self, name: str) -> Sql:
        return facets_of(self.text(), [name])[name]


@dataclass(frozen=True)
class Closed:
    """A closed relation as a source."""

    exports: Exports
    alias: str

    def sql(self) -> exp.Expr:
        return self.exports.sql().subquery(self.alias, copy=False)


def carried(exports: Exports, alias: str, *, constants: bool = True) -> dict[str, Value]:
    """The values of a closed relation as its columns. Constants stay what they are, unless they are wanted as columns,
    too: where there is no row, they have no value."""
    return {
        name: value if constants and isinstance(value, Known) else _carried(exports, alias, name, value)
        for name, value in exports.relation.values.items()
    }


def _carried(exports: Exports, alias: str, name: str, value: Value) -> Value:
    made = Carried(alias, name, value.families, certain=value.bound() == exp.true(), exports=exports)
    if isinstance(value, Stored):
        return replace(made, short=value.short, always_zoned=value.always_zoned)
    return made


def plain(relation: Relation, columns: Columns) -> exp.Query:
    """All rows."""
    return rendered(relation, columns)


def distinct(relation: Relation, columns: Columns) -> exp.Query:
    """Each solution once. Facets follow from the text, so they tell nothing apart."""
    texts = {f"t{index}": text for index, text in enumerate(_texts(relation)) if text not in columns.values()}
    select = rendered(relation, {**columns, **texts})
    return select.distinct(copy=False)


def _texts(relation: Relation) -> list[Sql]:
    texts = [value.text() for value in relation.values.values() if not isinstance(value, Known)]
    return [*(each for each in texts if not is_null(each)), *relation.keys.values()]


def rendered(relation: Relation, columns: Columns) -> exp.Select:
    """SELECT the columns FROM the sources WHERE the conditions hold, with what is computed once in between."""
    outputs = [exp.alias_(sql, name) for name, sql in columns.items()] or [exp.alias_(number(1), "unit")]
    lets = relation.lets
    if not lets.values:
        return _select(outputs, relation.sources, relation.conditions)
    early = [each for each in relation.conditions if not uses_computed(each)]
    late = [each for each in relation.conditions if uses_computed(each)]
    read = _read([*outputs, *late, *lets.values.values()])
    kept = [exp.alias_(each, f"{each.table}_{each.name}") for each in read] or [exp.alias_(number(1), "unit")]
    inner = _select(kept, relation.sources, early)
    for names in lets.levels():
        made = [exp.alias_(outside(lets.values[name]), name) for name in names]
        inner = exp.Select(expressions=[exp.Star(), *made]).from_(inner.subquery(COMPUTED, copy=False), copy=False)
    around = exp.Select(expressions=[outside(each) for each in outputs])
    around.from_(inner.subquery(COMPUTED, copy=False), copy=False)
    return around.where(_kept(map(outside, late)), copy=False) if late else around


def _read(parts: Sequence[Sql]) -> list[exp.Column]:
    found = (each for part in parts for each in part.find_all(exp.Column))
    return list({(each.table, each.name): each for each in found if each.table != COMPUTED}.values())


def _select(outputs: Sequence[Sql], sources: Sequence[Joined], conditions: Sequence[Sql]) -> exp.Select:
    select = exp.Select(expressions=list(outputs))
    for index, joined in enumerate(sources):
        if index == 0:
            select.from_(joined.source.sql(), copy=False)
        else:
            select.append("joins", _join(joined))
    return select.where(_kept(conditions), copy=False) if conditions else select


def _kept(conditions: Iterable[Sql]) -> Sql:
    """What is always an error keeps no row; NULL by itself is of no type, which Spark does not take."""
    made = every(*conditions)
    return exp.false() if is_null(made) else made


def _join(joined: Joined) -> exp.Join:
    if joined.kind == "cross":
        return exp.Join(this=joined.source.sql(), kind="CROSS")
    on = _kept([joined.on]) if joined.on is not None else exp.true()
    if joined.kind == "left":
        return exp.Join(this=joined.source.sql(), side="LEFT", on=on)
    return exp.Join(this=joined.source.sql(), kind=joined.kind.upper(), on=on)


def type_of(facet: str | None) -> exp.DataType:
    """The type of a column with the text of terms, or with a facet of them."""
    return exp.DataType.build(FACETS[facet]) if facet else VARCHAR


def text_of(value: Value) -> Sql:
    """The text of a term as a column, which has a type also where it is known that there is none."""
    made = value.text()
    return typed_null(None) if is_null(made) else made


def typed_null(facet: str | None) -> Sql:
    """No value, of the type that a column has."""
    return cast(null(), type_of(facet))
