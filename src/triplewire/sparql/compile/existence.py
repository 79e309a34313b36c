"""Existence: EXISTS and NOT EXISTS.

SPARQL asks whether the pattern has a solution once the values of this solution are put into it. Most patterns can be
evaluated by themselves and held against the solutions by a semi-join. Where putting in values earlier makes a
difference (a variable that stands only in an OPTIONAL, in a nested filter, in a sub-query), the pattern is evaluated
in a frame: for all different values at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triplewire.sparql.algebra import (
    Apply,
    Basic,
    Exists,
    Expression,
    Filter,
    Graph,
    Join,
    Operator,
    Reach,
    Union,
    Window,
)
from triplewire.sparql.compile.contexts import Context, same_keys
from triplewire.sparql.compile.joins import certain, kept, unified
from triplewire.sparql.compile.lets import Inline
from triplewire.sparql.compile.relations import Crossing, Joined, Relation, distinct
from triplewire.sparql.compile.sql import Sql, every, number, present
from triplewire.sparql.variables import bound_by, mentioned

FOUND = "found"
"""The column that is there only where the pattern has a solution."""


def existing(context: Context, relation: Relation, exists: Exists, *, wanted: bool) -> Relation:
    """The solutions for which the pattern has (or has not) a solution."""
    relation = context.build.simple(relation)
    inner, conditions = _split(exists.inner)
    if not _separable(inner) or any(existences(each) for each in conditions):
        return _in_frame(context, relation, exists, wanted=wanted)
    right = context.build.closed(context.uncounted().compile(inner))
    if not all(certain(value) for name, value in right.values.items() if name in relation.values):
        return _in_frame(context, relation, exists, wanted=wanted)
    values, compatible = unified(context, relation, right)
    scope = replace(context.scope(relation), values={**values, **relation.values}, lets=Inline())
    on = [*compatible, *(scope.holds(each) for each in conditions)]
    return kept(context, relation, right, on, wanted=wanted)


def flagged(context: Context, relation: Relation, exists: Exists) -> tuple[Relation, str]:
    """The same solutions, and the name of a value of theirs: the condition that the pattern has a solution. It is a
    value, because the relation may be read again under another name before the condition is."""
    relation, keys, right = _framed(context, context.build.simple(relation), exists)
    (source,) = right.sources
    joined = Joined(source.source, "left", every(*same_keys(keys, right.keys)))
    name = context.build.alias(".exists")
    found = Crossing(present(right.keys[FOUND]))
    return replace(relation, sources=(*relation.sources, joined)).having(**{name: found}), name


def _split(operator: Operator) -> tuple[Operator, tuple[Expression, ...]]:
    """The pattern and the filters around it, which may use the solution's own values."""
    if isinstance(operator, Filter):
        inner, conditions = _split(operator.inner)
        return inner, (*conditions, *operator.conditions)
    return operator, ()


def _separable(operator: Operator) -> bool:
    """Does it not matter when the values are put in?"""
    match operator:
        case Basic() | Reach():
            return True
        case Join(left, right) | Union(left, right):
            return _separable(left) and _separable(right)
        case Graph(_, inner) | Window(_, inner):
            return _separable(inner)
        case Filter(inner, conditions):
            used = frozenset().union(*(mentioned(each) for each in conditions))
            plain = not any(existences(each) for each in conditions)
            return plain and used <= bound_by(inner) and _separable(inner)
    return False


def existences(expression: Expression) -> list[Exists]:
    """Every EXISTS of an expression, once each; those inside of one are its own."""
    match expression:
        case Exists():
            return [expression]
        case Apply(_, args):
            return list(dict.fromkeys(each for part in args for each in existences(part)))
    return []


def _in_frame(context: Context, relation: Relation, exists: Exists, *, wanted: bool) -> Relation:
    relation, keys, right = _framed(context, relation, exists)
    return kept(context, relation, right, same_keys(keys, right.keys), wanted=wanted)


def _framed(context: Context, relation: Relation, exists: Exists) -> tuple[Relation, dict[str, Sql], Relation]:
    """The relation, read again under a name; the keys of its solutions; and a relation of those keys for which the
    pattern has a solution."""
    build = context.build
    whole = build.share(build.settled(relation))
    relation, asked = whole.read(build.alias("f")), whole.read(build.alias("f"))
    used = mentioned(exists.inner)
    names = {build.alias("e"): name for name in relation.values if name in used or name in context.substituted}
    frame = build.share(with_keys(asked.only([*names.values()]), names), distinct)
    found = context.uncounted().framed(frame).compile(exists.inner)
    keys = {name: sql for name, sql in found.keys.items() if name in frame.exports.relation.keys}
    right = build.closed(replace(found, values={}, keys={**keys, FOUND: number(1)}, rows="set"), distinct)
    return relation, dict(with_keys(relation, names).keys), right


def with_keys(relation: Relation, names: Mapping[str, str]) -> Relation:
    """With variables as keys, under other names."""
    return replace(
        relation, keys={**relation.keys, **{key: relation.values[name].text() for key, name in names.items()}}
    )
