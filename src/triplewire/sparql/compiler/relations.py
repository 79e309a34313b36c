"""Relations: SELECTs under construction.

A relation has a value for each variable and is open: sources and conditions can be added. To be read as a whole, by an
outer join or after DISTINCT, it is closed: it becomes a sub-query with only the columns that are asked for, so that
nothing is computed in vain. SQL has no `let`: a value that is used several times becomes a column of a derived table
around the join, so that nested arithmetic grows with its size and not with the product of its uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from sqlglot import exp

from triplewire.sparql.compiler.facets import FACETS, facets_of
from triplewire.sparql.compiler.terms import ConstantValue, StoredTerm
from triplewire.sparql.compiler.values import Value, facet_of
from triplewire.sparql.sql import VARCHAR, Sql, cast, column, every, is_null, null, number

COMPUTED = "x"
"""The alias of the derived table that holds computed values."""


class Lets:
    """Computed values by name, in an order in which each refers only to earlier ones."""

    def __init__(self) -> None:
        self.values: dict[str, Sql] = {}
        self._names: dict[Sql, str] = {}
        self._levels: dict[str, int] = {}

    def bind(self, sql: Sql) -> Sql:
        """A column that holds the value; what is a column or a constant already stays as it is."""
        if isinstance(sql, exp.Column | exp.Literal | exp.Null | exp.Boolean):
            return sql
        if sql not in self._names:
            name = f"x{len(self.values)}"
            self._names[sql] = name
            self.values[name] = sql
            self._levels[name] = 1 + max((self._levels[each] for each in _computed_names(sql)), default=-1)
        return column(COMPUTED, self._names[sql])

    def levels(self) -> list[list[str]]:
        """The names, those of each level referring only to those of earlier levels."""
        count = max(self._levels.values(), default=-1) + 1
        return [[name for name, at in self._levels.items() if at == level] for level in range(count)]


class InlineLets(Lets):
    """Bindings that stay inline, for conditions that cannot reach a derived table."""

    def bind(self, sql: Sql) -> Sql:
        return sql


def _computed_names(sql: Sql) -> list[str]:
    return [each.name for each in sql.find_all(exp.Column) if each.table == COMPUTED]


def uses_computed(sql: Sql) -> bool:
    return bool(_computed_names(sql))


def rename_outside(sql: Sql) -> Sql:
    """Rename columns to those of the derived table around the relations."""
    return sql.transform(_rename_column)


def _rename_column(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Column) and node.table != COMPUTED:
        return column(COMPUTED, f"{node.table}_{node.name}")
    return node


Multiplicity: TypeAlias = Literal["set", "repeats", "bag"]
JoinKind: TypeAlias = Literal["cross", "left", "semi", "anti"]
"""How a source is joined to those before it: as a product, or as SQL's LEFT, SEMI and ANTI joins."""


class RelationSource(Protocol):
    """A source in FROM."""

    def sql(self) -> exp.Expr:
        """The table or sub-query with its alias; asked for last, when all columns are known."""


@dataclass(frozen=True)
class TableSource:
    name: str
    alias: str

    def sql(self) -> exp.Expr:
        return exp.to_table(self.name, alias=self.alias)


@dataclass(frozen=True)
class UnitSource:
    """A source with one row."""

    alias: str

    def sql(self) -> exp.Expr:
        return exp.select(exp.alias_(number(1), "unit")).subquery(self.alias)


@dataclass(frozen=True)
class JoinedSource:
    source: RelationSource
    kind: JoinKind = "cross"
    on: Sql | None = None


@dataclass(frozen=True)
class Relation:
    """`keys` are columns that distinguish evaluations that are computed at once; all joins are on them, too.

    `rows` says how often solutions come. In a `set` each comes once, or the number does not matter. One that `repeats`
    has solutions that come several times and count once: DISTINCT over all values makes it a set. In a `bag` they count
    as often as they come. `headers` names, for a variable that holds an event, an alias that has the event's headers.
    """

    sources: tuple[JoinedSource, ...] = ()
    conditions: tuple[Sql, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    keys: Mapping[str, Sql] = field(default_factory=dict)
    lets: Lets = field(default_factory=Lets)
    rows: Multiplicity = "set"
    headers: Mapping[str, str] = field(default_factory=dict)

    def where(self, *conditions: Sql) -> Relation:
        known = set(self.conditions)
        return replace(self, conditions=(*self.conditions, *(each for each in conditions if each not in known)))

    def join(self, source: RelationSource, kind: JoinKind = "cross", on: Sql | None = None) -> Relation:
        return replace(self, sources=(*self.sources, JoinedSource(source, kind, on)))

    def with_values(self, **values: Value) -> Relation:
        return replace(self, values={**self.values, **values})

    def project(self, names: Sequence[str]) -> Relation:
        return replace(self, values={name: self.values[name] for name in names if name in self.values})


OutputColumns: TypeAlias = Mapping[str, Sql]
Rendering: TypeAlias = Callable[[Relation, OutputColumns], exp.Query]


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


@dataclass(frozen=True, kw_only=True)
class CarriedTerm(StoredTerm):
    """A variable of a closed relation; text and facets become columns when they are asked for."""

    exports: Exports

    def text(self) -> Sql:
        return self.exports.column(self.alias, self.name)

    def facet(self, name: str) -> Sql:
        return self.exports.column(self.alias, self.name, name)


@dataclass(frozen=True)
class SqlValue(Value):
    """SQL that crosses sub-queries under the name of a variable: no term, but a condition, or what is sorted by."""

    made: Sql

    def text(self) -> Sql:
        return self.made

    def bound(self) -> Sql:
        return exp.true()


@dataclass(frozen=True)
class BareTerm(StoredTerm):
    """A term that a column holds, with nothing beside it: its facets are computed from its text."""

    def facet(self, name: str) -> Sql:
        return facets_of(self.text(), [name])[name]


@dataclass(frozen=True)
class SubquerySource:
    """A closed relation as a source."""

    exports: Exports
    alias: str

    def sql(self) -> exp.Expr:
        return self.exports.sql().subquery(self.alias, copy=False)


def carry_values(exports: Exports, alias: str, *, constants: bool = True) -> dict[str, Value]:
    """The values of a closed relation as its columns. Constants stay what they are, unless they are wanted as columns,
    too: where there is no row, they have no value."""
    return {
        name: value if constants and isinstance(value, ConstantValue) else _carry_value(exports, alias, name, value)
        for name, value in exports.relation.values.items()
    }


def _carry_value(exports: Exports, alias: str, name: str, value: Value) -> Value:
    made = CarriedTerm(alias, name, value.families, certain=value.bound() == exp.true(), exports=exports)
    if isinstance(value, StoredTerm):
        return replace(made, short=value.short, always_zoned=value.always_zoned)
    return made


def render_distinct(relation: Relation, columns: OutputColumns) -> exp.Query:
    """Render each solution once. Facets follow from the text, so they need no comparison."""
    texts = {f"t{index}": text for index, text in enumerate(_texts(relation)) if text not in columns.values()}
    select = render_select(relation, {**columns, **texts})
    return select.distinct(copy=False)


def _texts(relation: Relation) -> list[Sql]:
    texts = [value.text() for value in relation.values.values() if not isinstance(value, ConstantValue)]
    return [*(each for each in texts if not is_null(each)), *relation.keys.values()]


def render_select(relation: Relation, columns: OutputColumns) -> exp.Select:
    """SELECT the columns FROM the sources WHERE the conditions hold, with what is computed once in between."""
    outputs = [exp.alias_(sql, name) for name, sql in columns.items()] or [exp.alias_(number(1), "unit")]
    lets = relation.lets
    if not lets.values:
        return _select(outputs, relation.sources, relation.conditions)
    early = [each for each in relation.conditions if not uses_computed(each)]
    late = [each for each in relation.conditions if uses_computed(each)]
    read = _columns_read([*outputs, *late, *lets.values.values()])
    kept = [exp.alias_(each, f"{each.table}_{each.name}") for each in read] or [exp.alias_(number(1), "unit")]
    inner = _select(kept, relation.sources, early)
    for names in lets.levels():
        made = [exp.alias_(rename_outside(lets.values[name]), name) for name in names]
        inner = exp.Select(expressions=[exp.Star(), *made]).from_(inner.subquery(COMPUTED, copy=False), copy=False)
    around = exp.Select(expressions=[rename_outside(each) for each in outputs])
    around.from_(inner.subquery(COMPUTED, copy=False), copy=False)
    return around.where(_all_conditions(map(rename_outside, late)), copy=False) if late else around


def _columns_read(parts: Sequence[Sql]) -> list[exp.Column]:
    found = (each for part in parts for each in part.find_all(exp.Column))
    return list({(each.table, each.name): each for each in found if each.table != COMPUTED}.values())


def _select(outputs: Sequence[Sql], sources: Sequence[JoinedSource], conditions: Sequence[Sql]) -> exp.Select:
    select = exp.Select(expressions=list(outputs))
    for index, joined in enumerate(sources):
        if index == 0:
            select.from_(joined.source.sql(), copy=False)
        else:
            select.append("joins", _join(joined))
    return select.where(_all_conditions(conditions), copy=False) if conditions else select


def _all_conditions(conditions: Iterable[Sql]) -> Sql:
    """Join conditions by AND. A condition that is always NULL becomes FALSE: Spark refuses an untyped NULL."""
    made = every(*conditions)
    return exp.false() if is_null(made) else made


def _join(joined: JoinedSource) -> exp.Join:
    if joined.kind == "cross":
        return exp.Join(this=joined.source.sql(), kind="CROSS")
    on = _all_conditions([joined.on]) if joined.on is not None else exp.true()
    if joined.kind == "left":
        return exp.Join(this=joined.source.sql(), side="LEFT", on=on)
    return exp.Join(this=joined.source.sql(), kind=joined.kind.upper(), on=on)


def column_type(facet: str | None) -> exp.DataType:
    """The type of a column with the text of terms, or with a facet of them."""
    return exp.DataType.build(FACETS[facet]) if facet else VARCHAR


def text_column(value: Value) -> Sql:
    """The text of a term as a column, which has a type also where it is known that there is none."""
    made = value.text()
    return typed_null(None) if is_null(made) else made


def typed_null(facet: str | None) -> Sql:
    return cast(null(), column_type(facet))
