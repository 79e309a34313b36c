"""Operators: each of the algebra's as a relation made of those inside it."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from triplewire.model.errors import Unsupported
from triplewire.sparql.algebra import (
    Bag,
    Basic,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Operator,
    Reach,
    Select,
    Service,
    Union,
    Values,
    Var,
    Window,
)
from triplewire.sparql.compile.bags import bagged
from triplewire.sparql.compile.columns import Named
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.existence import existences, with_keys
from triplewire.sparql.compile.expressions import filtered, valued
from triplewire.sparql.compile.groups import grouped
from triplewire.sparql.compile.joins import joined, left_joined, minus
from triplewire.sparql.compile.leaves import matched, placed, stated
from triplewire.sparql.compile.modifiers import modified
from triplewire.sparql.compile.paths import reached
from triplewire.sparql.compile.relations import Relation, distinct
from triplewire.sparql.compile.unions import united


def operated(operator: Operator, context: Context) -> Relation:
    """The relation of an operator's solutions."""
    match operator:
        case Basic(patterns):
            return matched(context, patterns)
        case Reach():
            return reached(context, operator)
        case Join(left, right):
            return joined(context, context.compile(left), context.compile(right))
        case LeftJoin():
            return _optional(context, operator)
        case Union():
            return united(context, operator)
        case Minus(left, right):
            return minus(context, context.compile(left), context.uncounted().compile(right))
        case Filter(inner, conditions):
            return filtered(context, context.compile(inner), conditions)
        case Extend(inner, name, expression):
            return valued(context, context.compile(inner), name, expression)
        case Values():
            return stated(context, operator)
        case Graph():
            return _in_graph(context, operator)
        case Window():
            return _in_window(context, operator)
        case Group():
            return grouped(context, operator)
        case Bag():
            return bagged(context, operator)
        case Select():
            return modified(context, operator)
        case Service(endpoint):
            raise Unsupported(f"SERVICE {getattr(endpoint, 'term', '')}")


def _optional(context: Context, operator: LeftJoin) -> Relation:
    """Conditions with EXISTS look at what both sides together bind, so these are made first."""
    left = context.compile(operator.left)
    if not any(existences(each) for each in operator.conditions):
        return left_joined(context, left, context.compile(operator.right), operator.conditions)
    build = context.build
    whole = build.share(build.settled(left))
    names = {build.alias("e"): name for name in left.values if name not in context.fixed}
    once = build.closed(with_keys(whole.read(build.alias("f")), names), distinct)
    pairs = joined(context, once, context.compile(operator.right))
    kept = filtered(context, pairs, operator.conditions)
    found = left_joined(context, with_keys(whole.read(build.alias("f")), names), kept, ())
    return replace(found, keys={name: sql for name, sql in found.keys.items() if name not in names})


def _in_graph(context: Context, operator: Graph) -> Relation:
    """The inner operator on each graph, told apart by key; then the name of the graph is a value like others."""
    outer = replace(context, graph=None)
    relation = outer.inside(operator.name).compile(operator.inner)
    name = relation.keys["name"]
    assert isinstance(name, exp.Column)
    keys = {each: sql for each, sql in relation.keys.items() if each not in ("graph", "name")}
    relation = replace(relation, keys=keys)
    if isinstance(operator.name, Var):
        relation = placed(relation, [(operator.name, Named(name.table, name.name))])
        if name.name == "graph":
            relation = replace(relation, headers={**relation.headers, operator.name.name: name.table})
    return relation if context.graph is None else joined(context, matched(context, ()), relation)


def _in_window(context: Context, operator: Window) -> Relation:
    """The inner operator on the window as a whole, also where that stands inside of GRAPH."""
    relation = replace(context.within(operator.name).compile(operator.inner), headers={})
    return relation if context.graph is None else joined(context, matched(context, ()), relation)
