"""GROUP BY and the aggregates of SPARQL as aggregate functions of SQL.

An error or a missing value in the argument makes SUM, AVG, MIN, MAX and GROUP_CONCAT an error; COUNT and SAMPLE skip
it. GROUP_CONCAT joins the results of STR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from triplewire.model.terms import XSD
from triplewire.sparql import sql
from triplewire.sparql.algebra import Aggregate, Family, Group
from triplewire.sparql.compiler.comparisons import total_order_keys
from triplewire.sparql.compiler.contexts import Context
from triplewire.sparql.compiler.filters import extend_relation
from triplewire.sparql.compiler.joins import is_certain, join_relations, left_join
from triplewire.sparql.compiler.patterns import match_patterns
from triplewire.sparql.compiler.relations import OutputColumns, Relation, Rendering, SqlValue, render_select
from triplewire.sparql.compiler.terms import ConstantValue, DerivedTerm, StoredTerm
from triplewire.sparql.compiler.values import NUMERIC, ComputedNumber, ComputedString, Value, facet_of
from triplewire.sparql.constants import parse_constant
from triplewire.sparql.sql import Sql, call, case, cast, equal, every, is_null, null, number, text

_FLOATING = frozenset({Family.FLOAT, Family.DOUBLE})


def aggregate(
    op: str, value: Value | None, *, separator: str = " ", among: Sql | None = None, steady: bool = False
) -> Value:
    """The value of a set function over a group; of all rows if there is no value, which only COUNT allows.

    `among` is a condition for the rows that count. If `steady`, nothing depends on the order of rows.
    """
    rows = _Rows(sql.truth(True) if among is None else among, steady)
    if value is None:
        return _whole(rows.all())
    match op:
        case "count":
            return _whole(rows.count(value))
        case "sum" | "avg":
            return _numeric(op, value, rows)
        case "group_concat":
            return _group_concat(value, separator, rows)
    return _pick_term(op, value, rows)


@dataclass(frozen=True)
class _Rows:
    """The rows of a group that count."""

    among: Sql
    steady: bool = False

    def keep(self, value: Sql) -> Sql:
        return case((self.among, value))

    def all(self) -> Sql:
        return exp.Count(this=exp.Star() if sql.is_true(self.among) else self.keep(number(1)))

    def count_bound(self, value: Sql) -> Sql:
        """Count the values that are not NULL."""
        return number(0) if is_null(value) else exp.Count(this=self.keep(value))

    def count(self, value: Value) -> Sql:
        if sql.is_true(value.bound()):
            return self.all()
        return exp.Count(this=case((every(self.among, value.bound()), number(1))))


def _whole(count: Sql) -> Value:
    return ComputedNumber(number(1), cast(count, sql.DECIMAL), cast(count, sql.DOUBLE), frozenset({Family.EXACT}))


@dataclass(frozen=True)
class SumValue(ComputedNumber):
    """A sum or mean: `floating` is its value where it is not exact, which is all that its text needs then."""

    floating: Sql = field(default_factory=null)

    def _digits(self, name: str) -> Sql:
        return ComputedNumber(self.rank_sql, self.exact_sql, self.floating, self.families)._digits(name)


def _numeric(op: str, value: Value, rows: _Rows) -> Value:
    """Compile SUM and AVG: in the highest type of the group; exactly, if that is a decimal."""
    count = rows.all()
    families = (value.families & NUMERIC) | {Family.EXACT}
    rank = _rank(op, value, rows, count)
    exact = _check_numeric(value, rows, _exact(op, value, rows, count))
    floating = _check_numeric(value, rows, _floating(op, value, rows, rank))
    both = case((sql.compare("<=", rank, number(2)), cast(exact, sql.DOUBLE)), default=floating)
    return SumValue(rank, exact, both if value.families & _FLOATING else cast(exact, sql.DOUBLE), families, floating)


def _check_numeric(value: Value, rows: _Rows, made: Sql) -> Sql:
    """Make the result an error if a value of the group is no number."""
    if is_null(made) or (value.families <= NUMERIC and sql.is_true(value.bound())):
        return made
    return case((equal(rows.count_bound(value.number()), rows.all()), made))


def _rank(op: str, value: Value, rows: _Rows, count: Sql) -> Sql:
    """Return the rank of the result: the highest type; an average of integers is a decimal, and an empty sum is an
    integer."""
    kinds = [(name, rank) for name, rank, family in _KINDS if family in value.families]
    candidates = kinds if op == "sum" else [(name, rank) for name, rank in kinds if rank > 2]
    branches = [(_any(rows, _has_type(value, name)), number(rank)) for name, rank in candidates]
    if len(kinds) == 1 and value.families <= NUMERIC and (op == "avg" or kinds[0][1] > 2):
        branches = [(sql.compare(">", count, number(0)), number(kinds[0][1]))]
    elif op == "avg":
        branches.append((sql.compare(">", count, number(0)), number(2)))
    return case(*branches, default=number(1))


_KINDS = (("double", 4, Family.DOUBLE), ("float", 3, Family.FLOAT), ("decimal", 2, Family.EXACT))


def _any(rows: _Rows, condition: Sql) -> Sql:
    return condition if is_null(condition) else call("BOOL_OR", every(rows.among, condition))


def _has_type(value: Value, name: str) -> Sql:
    """Test the datatype by its column, if there is one."""
    if isinstance(value, ComputedNumber):
        return equal(value.rank(), number({kind: rank for kind, rank, _ in _KINDS}[name]))
    return equal(value.facet("datatype") if isinstance(value, StoredTerm) else value.datatype(), text(XSD + name))


def _exact(op: str, value: Value, rows: _Rows, count: Sql) -> Sql:
    zero = cast(number(0), sql.DECIMAL)
    if Family.EXACT not in value.families:
        return zero
    total = call("TW_SUM", rows.keep(_digits(value)))
    # a number with more digits than are held makes no exact sum
    complete = equal(rows.count_bound(_digits(value)), count)
    made = call("TW_MEAN", total, count) if op == "avg" else total
    return case((equal(count, number(0)), zero), (complete, made))


def _digits(value: Value) -> Sql:
    """The exact value. Types are told apart by their column, which is shorter than the text."""
    if not isinstance(value, StoredTerm) or not value.families & _FLOATING:
        return value.exact()
    names = [text(XSD + name) for name in ("double", "float")]
    floating = exp.In(this=value.facet("datatype"), expressions=names)
    inner = value.narrow(Family.EXACT).exact()
    return case((every(sql.present(value.number()), exp.Not(this=floating)), inner))


def _floating(op: str, value: Value, rows: _Rows, rank: Sql) -> Sql:
    if not value.families & _FLOATING:
        return null()
    name = op.upper()
    made = call(f"TW_{name}_STEADY" if rows.steady else name, rows.keep(value.number()))
    if Family.FLOAT not in value.families:
        return made
    return case((equal(rank, number(3)), cast(sql.try_cast(made, sql.FLOAT), sql.DOUBLE)), default=made)


def _group_concat(value: Value, separator: str, rows: _Rows) -> Value:
    strings = value.string()
    if is_null(strings):
        return ComputedString(case((equal(rows.all(), number(0)), text(""))))
    name = "TW_JOINED_STEADY" if rows.steady else "TW_JOINED"
    joined = sql.coalesce(call(name, rows.keep(strings), text(separator)), text(""))
    return ComputedString(case((equal(rows.count_bound(strings), rows.all()), joined)))


def _pick_term(op: str, value: Value, rows: _Rows) -> Value:
    """MIN, MAX and SAMPLE: one of the terms, as it is."""
    if not value.families:
        return Value()
    keys = [value.text()] if op == "sample" else total_order_keys(value)
    key = call("TW_ROW", *keys) if len(keys) > 1 else keys[0]
    taken = case((every(rows.among, value.bound()), key))
    best = "TW_AT_MOST" if op == "max" else "TW_AT_LEAST"
    right = sql.truth(True) if op == "sample" or sql.is_true(value.bound()) else equal(rows.count(value), rows.all())

    def pick(facet: Sql) -> Sql:
        return facet if is_null(facet) else case((right, call(best, facet, taken)))

    return DerivedTerm(
        families=value.families, made=pick(value.text()), facet_sql=lambda name: pick(facet_of(value, name))
    )


_UNTOUCHED = frozenset({"min", "max", "sample"})
"""Aggregates that do not depend on how often a value comes."""

_ROW = ".row"
"""A column with a value for every solution, and none for a group without solutions."""


def compile_group(context: Context, group: Group) -> Relation:
    """Compile GROUP BY: one solution for each group."""
    counted = any(each.op not in _UNTOUCHED for _, each in group.aggregates)
    inner = replace(context, counted=counted).compile(group.inner)
    arguments = {name: f".a{name}" for name, each in group.aggregates if each.argument is not None}
    relation = context.build.settle(inner)
    for name, key in group.keys:
        relation = extend_relation(context, relation, name, key)
    for name, each in group.aggregates:
        if each.argument is not None:
            relation = extend_relation(context, relation, arguments[name], each.argument)
    relation = relation if group.keys else _with_empty(context, relation)
    flags = _firsts(relation, group, arguments)
    relation = context.build.close(relation.with_values(**flags) if flags else relation)
    return _close_group(context, relation, group, arguments)


def _with_empty(context: Context, relation: Relation) -> Relation:
    """Add an empty row for each row of the frame: without keys there is a group even if there is no solution."""
    if not (context.frame or context.graph is not None):
        return relation
    marked = relation.with_values(**{_ROW: ConstantValue(parse_constant('"1"'))})
    return left_join(context, match_patterns(context, ()), context.build.close(marked, constants=False), ())


def _firsts(relation: Relation, group: Group, arguments: Mapping[str, str]) -> dict[str, Value]:
    """Return the condition that a row is the first of its group with this value, for DISTINCT aggregates."""
    flags: dict[str, Value] = {}
    for name, each in group.aggregates:
        if each.distinct and each.op not in _UNTOUCHED:
            compared = _texts(relation, _solution(relation) if each.argument is None else [arguments[name]])
            parts = [*_texts(relation, [key for key, _ in group.keys]), *relation.keys.values(), *compared]
            flags[f".f{name}"] = SqlValue(equal(sql.row_number(parts), number(1)))
    return flags


def _solution(relation: Relation) -> list[str]:
    """The variables of the query: blank nodes and what lies between the ends of a path are no part of a solution."""
    return [name for name in relation.values if not name.startswith(("_:", "."))]


def _texts(relation: Relation, names: list[str]) -> list[Sql]:
    texts = [relation.values[name].text() for name in names if name in relation.values]
    return [each for each in texts if not is_null(each) and not isinstance(each, exp.Literal)]


@dataclass(frozen=True, kw_only=True)
class _Key(StoredTerm):
    """A key of a group: its text tells groups apart, and any facet of it is that of all."""

    inner: Value

    def text(self) -> Sql:
        return self.inner.text()

    def facet(self, name: str) -> Sql:
        found = facet_of(self.inner, name)
        return found if is_null(found) else exp.AnyValue(this=found)


def _close_group(context: Context, relation: Relation, group: Group, arguments: Mapping[str, str]) -> Relation:
    keys = {name: relation.values.get(name, Value()) for name, _ in group.keys}
    values = {name: _key(value) for name, value in keys.items()} | {
        name: _compute_aggregate(relation, name, each, arguments.get(name), steady=context.build.steady)
        for name, each in group.aggregates
    }
    texts = [value.text() for value in keys.values() if not isinstance(value, ConstantValue)]
    by = [*(each for each in texts if not is_null(each)), *relation.keys.values()]

    found = context.build.close(replace(relation, values=values, rows="set"), _grouping(by, bool(group.keys)))
    return join_relations(context, context.start(), found) if context.frame else found


def _grouping(by: list[Sql], keyed: bool) -> Rendering:
    def grouping(relation: Relation, columns: OutputColumns) -> exp.Query:
        select = render_select(relation, columns)
        if by:
            return select.group_by(*by, copy=False)
        # Keys that are all constants make one group, but none if there is no solution. Without keys there is one group
        # in any case.
        least = exp.GTE(this=exp.Count(this=exp.Star()), expression=number(1 if keyed else 0))
        return select.having(least, copy=False)

    return grouping


def _key(value: Value) -> Value:
    if isinstance(value, ConstantValue):
        return value
    return _Key("", "", value.families, certain=is_certain(value), inner=value)


def _compute_aggregate(relation: Relation, name: str, each: Aggregate, argument: str | None, *, steady: bool) -> Value:
    among = None
    if f".f{name}" in relation.values:
        among = relation.values[f".f{name}"].text()
    if _ROW in relation.values:
        there = sql.present(relation.values[_ROW].text())
        among = there if among is None else exp.and_(there, among)
    value = None if argument is None else relation.values[argument]
    return aggregate(each.op, value, separator=each.separator, among=among, steady=steady)
