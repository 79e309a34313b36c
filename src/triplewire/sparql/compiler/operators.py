"""Operators of the algebra as relations, and row steps over solutions that exist already, as rows of the relation
`rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sqlglot import exp

from triplewire.model.errors import Unsupported
from triplewire.sparql import algebra
from triplewire.sparql.algebra import Family, Operator, Var
from triplewire.sparql.compiler.aggregates import compile_group
from triplewire.sparql.compiler.bags import compile_bag
from triplewire.sparql.compiler.contexts import Context, QueryBuild
from triplewire.sparql.compiler.filters import add_keys, extend_relation, filter_relation, find_exists
from triplewire.sparql.compiler.joins import join_relations, left_join, subtract_relation, union_relations
from triplewire.sparql.compiler.modifiers import compile_select
from triplewire.sparql.compiler.patterns import bind_nodes, compile_path, compile_values, match_patterns
from triplewire.sparql.compiler.relations import (
    BareTerm,
    Relation,
    TableSource,
    render_distinct,
    render_select,
    text_column,
)
from triplewire.sparql.compiler.terms import StoredNode
from triplewire.sparql.compiler.values import ANY, Value
from triplewire.sparql.conjunctions import Bind, RowStep
from triplewire.sparql.dialects.generators import Dialect, to_sql
from triplewire.sparql.sql import column


def compile_operator(operator: Operator, context: Context) -> Relation:
    match operator:
        case algebra.Basic(patterns):
            return match_patterns(context, patterns)
        case algebra.Reach():
            return compile_path(context, operator)
        case algebra.Join(left, right):
            return join_relations(context, context.compile(left), context.compile(right))
        case algebra.LeftJoin():
            return _optional(context, operator)
        case algebra.Union():
            return union_relations(context, operator)
        case algebra.Minus(left, right):
            return subtract_relation(context, context.compile(left), context.uncounted().compile(right))
        case algebra.Filter(inner, conditions):
            return filter_relation(context, context.compile(inner), conditions)
        case algebra.Extend(inner, name, expression):
            return extend_relation(context, context.compile(inner), name, expression)
        case algebra.Values():
            return compile_values(context, operator)
        case algebra.Graph():
            return _in_graph(context, operator)
        case algebra.Window():
            return _in_window(context, operator)
        case algebra.Group():
            return compile_group(context, operator)
        case algebra.Bag():
            return compile_bag(context, operator)
        case algebra.Select():
            return compile_select(context, operator)
        case algebra.Service(endpoint):
            raise Unsupported(f"SERVICE {getattr(endpoint, 'term', '')}")


def _optional(context: Context, operator: algebra.LeftJoin) -> Relation:
    """Compile conditions with EXISTS over the variables that both sides bind, so both sides come first."""
    left = context.compile(operator.left)
    if not any(find_exists(each) for each in operator.conditions):
        return left_join(context, left, context.compile(operator.right), operator.conditions)
    build = context.build
    whole = build.share(build.settle(left))
    names = {build.alias("e"): name for name in left.values if name not in context.fixed}
    once = build.close(add_keys(whole.read(build.alias("f")), names), render_distinct)
    pairs = join_relations(context, once, context.compile(operator.right))
    kept = filter_relation(context, pairs, operator.conditions)
    found = left_join(context, add_keys(whole.read(build.alias("f")), names), kept, ())
    return replace(found, keys={name: sql for name, sql in found.keys.items() if name not in names})


def _in_graph(context: Context, operator: algebra.Graph) -> Relation:
    """Compile the inner operator on each graph, separated by key; then the graph's name is a value like others."""
    outer = replace(context, graph=None)
    relation = outer.in_graph(operator.name).compile(operator.inner)
    name = relation.keys["name"]
    assert isinstance(name, exp.Column)
    keys = {each: sql for each, sql in relation.keys.items() if each not in ("graph", "name")}
    relation = replace(relation, keys=keys)
    if isinstance(operator.name, Var):
        relation = bind_nodes(relation, [(operator.name, StoredNode(name.table, name.name))])
        if name.name == "graph":
            relation = replace(relation, headers={**relation.headers, operator.name.name: name.table})
    return relation if context.graph is None else join_relations(context, match_patterns(context, ()), relation)


def _in_window(context: Context, operator: algebra.Window) -> Relation:
    """Compile the inner operator on the whole window, also inside of GRAPH."""
    relation = replace(context.in_window(operator.name).compile(operator.inner), headers={})
    return relation if context.graph is None else join_relations(context, match_patterns(context, ()), relation)


ROWS_RELATION = "rows"
_NO_FAMILIES: Mapping[str, Family] = MappingProxyType({})


def compile_rows(
    names: Sequence[str],
    steps: Sequence[RowStep],
    projection: Sequence[str],
    dialect: Dialect = "duckdb",
    families: Mapping[str, Family] = _NO_FAMILIES,
) -> str:
    """Compile steps, in order, over the relation `rows`: `row`, a number, and `v0`, `v1`, …, the terms of the variables
    `names` as canonical N-Triples, none of them NULL.

    It returns `row` and `v0`, `v1`, …, the terms of `projection`, for the rows that pass all checks; NULL is an unbound
    variable. `families` may state the family of all terms of a variable, which makes the plan simpler.
    """
    build = QueryBuild(compile_operator)
    relation = build.close(_rows_relation(names, families))
    for step in steps:
        relation = _apply_step(Context(build), relation, step)
    terms = [text_column(relation.values.get(name, Value())) for name in projection]
    columns = {"row": relation.keys["row"]} | {f"v{index}": term for index, term in enumerate(terms)}
    return to_sql(render_select(relation, columns), dialect)


def _rows_relation(names: Sequence[str], families: Mapping[str, Family]) -> Relation:
    """Compute facets once for each term, in a sub-query that has only those that are asked for."""
    values: dict[str, Value] = {
        name: BareTerm(ROWS_RELATION, f"v{index}", frozenset({families[name]}) if name in families else ANY)
        for index, name in enumerate(names)
    }
    relation = Relation(values=values, keys={"row": column(ROWS_RELATION, "row")}, rows="bag")
    return relation.join(TableSource(ROWS_RELATION, ROWS_RELATION))


def _apply_step(context: Context, relation: Relation, step: RowStep) -> Relation:
    if isinstance(step, Bind):
        return extend_relation(context, relation, step.name, step.expression)
    return filter_relation(context, relation, (step.condition,))
