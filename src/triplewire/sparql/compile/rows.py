"""Rows: what is computed of solutions that are there already, each of them a row of the relation `rows`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.contexts import Build, Context
from triplewire.sparql.compile.expressions import filtered, valued
from triplewire.sparql.compile.operators import operated
from triplewire.sparql.compile.relations import Bare, Joined, Relation, Table, rendered, text_of
from triplewire.sparql.compile.sql import column
from triplewire.sparql.compile.values import ANY, Value
from triplewire.sparql.dialects import Dialect, to_sql
from triplewire.sparql.unbounded import Bind, RowStep

ROWS = "rows"
_NOTHING: Mapping[str, Family] = MappingProxyType({})


def compile_rows(
    names: Sequence[str],
    steps: Sequence[RowStep],
    projection: Sequence[str],
    dialect: Dialect = "duckdb",
    families: Mapping[str, Family] = _NOTHING,
) -> str:
    """The steps, in order, over the relation `rows`: `row`, a number, and `v0`, `v1`, …, the terms of the variables
    `names` as canonical N-Triples, none of them NULL.

    Gives `row` and `v0`, `v1`, …, the terms of `projection`, of those rows that pass all checks; NULL is a variable
    without a value. `families` may say what all terms of a variable are, which makes the plan simpler.
    """
    build = Build(operated)
    relation = build.closed(_given(names, families))
    for step in steps:
        relation = _taken(Context(build), relation, step)
    terms = [text_of(relation.values.get(name, Value())) for name in projection]
    columns = {"row": relation.keys["row"]} | {f"v{place}": term for place, term in enumerate(terms)}
    return to_sql(rendered(relation, columns), dialect)


def _given(names: Sequence[str], families: Mapping[str, Family]) -> Relation:
    """Facets are computed once for each term, in a sub-query, which has those that are asked for."""
    values: dict[str, Value] = {
        name: Bare(ROWS, f"v{place}", frozenset({families[name]}) if name in families else ANY)
        for place, name in enumerate(names)
    }
    return Relation((Joined(Table(ROWS, ROWS)),), values=values, keys={"row": column(ROWS, "row")}, rows="bag")


def _taken(context: Context, relation: Relation, step: RowStep) -> Relation:
    if isinstance(step, Bind):
        return valued(context, relation, step.name, step.expression)
    return filtered(context, relation, (step.condition,))
