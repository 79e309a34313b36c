"""FILTER, BIND and EXISTS over a relation.

EXISTS asks whether its pattern has a solution once the values of the current solution are substituted. Most patterns
are evaluated by themselves and semi-joined. Where early substitution makes a difference (a variable only in an
OPTIONAL, in a nested filter, in a sub-query), the pattern is evaluated in a frame, for all distinct values at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Const, Expression, Operator, Var
from triplewire.sparql.compiler.contexts import Context, same_keys
from triplewire.sparql.compiler.expressions import ExpressionScope
from triplewire.sparql.compiler.joins import is_certain, semi_join, unify_relations
from triplewire.sparql.compiler.relations import BareTerm, InlineLets, Relation, SqlValue, render_distinct
from triplewire.sparql.compiler.values import ANY
from triplewire.sparql.sql import Sql, every, number, present
from triplewire.sparql.traversal import bound_variables, mentioned_variables

FOUND_COLUMN = "found"
"""The column that is there only where the pattern has a solution."""


def filter_exists(context: Context, relation: Relation, exists: algebra.Exists, *, wanted: bool) -> Relation:
    """Keep the solutions for which the pattern has (or has not) a solution."""
    relation = context.build.without_lets(relation)
    inner, conditions = _split(exists.inner)
    if not _separable(inner) or any(find_exists(each) for each in conditions):
        return _in_frame(context, relation, exists, wanted=wanted)
    right = context.build.close(context.uncounted().compile(inner))
    if not all(is_certain(value) for name, value in right.values.items() if name in relation.values):
        return _in_frame(context, relation, exists, wanted=wanted)
    values, compatible = unify_relations(context, relation, right)
    scope = replace(context.scope(relation), values={**values, **relation.values}, lets=InlineLets())
    on = [*compatible, *(scope.holds(each) for each in conditions)]
    return semi_join(context, relation, right, on, wanted=wanted)


def flag_exists(context: Context, relation: Relation, exists: algebra.Exists) -> tuple[Relation, str]:
    """Return the same solutions with a further value, and its name: the condition that the pattern has a solution. It
    is a value, because the relation may be read again under another name before the condition is."""
    relation, keys, right = _evaluate_in_frame(context, context.build.without_lets(relation), exists)
    (source,) = right.sources
    joined = relation.join(source.source, "left", every(*same_keys(keys, right.keys)))
    name = context.build.alias(".exists")
    found = SqlValue(present(right.keys[FOUND_COLUMN]))
    return joined.with_values(**{name: found}), name


def _split(operator: Operator) -> tuple[Operator, tuple[Expression, ...]]:
    """The pattern and the filters around it, which may use the solution's own values."""
    if isinstance(operator, algebra.Filter):
        inner, conditions = _split(operator.inner)
        return inner, (*conditions, *operator.conditions)
    return operator, ()


def _separable(operator: Operator) -> bool:
    """Tell whether the time of substitution makes no difference."""
    match operator:
        case algebra.Basic() | algebra.Reach():
            return True
        case algebra.Join(left, right) | algebra.Union(left, right):
            return _separable(left) and _separable(right)
        case algebra.Graph(_, inner) | algebra.Window(_, inner):
            return _separable(inner)
        case algebra.Filter(inner, conditions):
            used = frozenset().union(*(mentioned_variables(each) for each in conditions))
            plain = not any(find_exists(each) for each in conditions)
            return plain and used <= bound_variables(inner) and _separable(inner)
    return False


def find_exists(expression: Expression) -> list[algebra.Exists]:
    """Every EXISTS of an expression, once each; those inside of one are its own."""
    match expression:
        case algebra.Exists():
            return [expression]
        case Apply(_, args):
            return list(dict.fromkeys(each for part in args for each in find_exists(part)))
    return []


def _in_frame(context: Context, relation: Relation, exists: algebra.Exists, *, wanted: bool) -> Relation:
    relation, keys, right = _evaluate_in_frame(context, relation, exists)
    return semi_join(context, relation, right, same_keys(keys, right.keys), wanted=wanted)


def _evaluate_in_frame(
    context: Context, relation: Relation, exists: algebra.Exists
) -> tuple[Relation, dict[str, Sql], Relation]:
    """The relation, read again under a name; the keys of its solutions; and a relation of those keys for which the
    pattern has a solution."""
    build = context.build
    whole = build.share(build.settle(relation))
    relation, asked = whole.read(build.alias("f")), whole.read(build.alias("f"))
    used = mentioned_variables(exists.inner)
    names = {build.alias("e"): name for name in relation.values if name in used or name in context.substituted}
    frame = build.share(add_keys(asked.project([*names.values()]), names), render_distinct)
    found = context.uncounted().in_frame(frame).compile(exists.inner)
    keys = {name: sql for name, sql in found.keys.items() if name in frame.exports.relation.keys}
    right = build.close(replace(found, values={}, keys={**keys, FOUND_COLUMN: number(1)}, rows="set"), render_distinct)
    return relation, dict(add_keys(relation, names).keys), right


def add_keys(relation: Relation, names: Mapping[str, str]) -> Relation:
    """Add variables as keys, under other names."""
    return replace(
        relation, keys={**relation.keys, **{key: relation.values[name].text() for key, name in names.items()}}
    )


SOLUTION_VARIABLE = ".solution"
"""The variable that tells solutions apart, where that is needed."""


def filter_relation(context: Context, relation: Relation, conditions: tuple[Expression, ...]) -> Relation:
    """Keep the solutions for which all conditions are true."""
    for condition in conditions:
        match condition:
            case algebra.Exists():
                relation = filter_exists(context, relation, condition, wanted=True)
            case Apply("!", (algebra.Exists() as inner,)):
                relation = filter_exists(context, relation, inner, wanted=False)
            case Apply("&&", parts):
                relation = filter_relation(context, relation, parts)
            case _:
                relation, scope = make_scope(context, relation, condition)
                relation = relation.where(scope.holds(condition))
    return relation


def extend_relation(context: Context, relation: Relation, name: str, expression: Expression) -> Relation:
    """Bind a further variable; it stays unbound where the expression is an error."""
    if expression == Var(name):
        return relation
    relation, scope = make_scope(context, relation, expression)
    if isinstance(expression, Var | Const):
        return relation.with_values(**{name: scope.value(expression)})
    if is_volatile(expression):
        return _extend_volatile(context, context.build.settle(relation), name, expression)
    return context.build.close(context.build.settle(relation.with_values(**{name: scope.value(expression)})))


def _extend_volatile(context: Context, relation: Relation, name: str, expression: Expression) -> Relation:
    """Bind a volatile value once: all of its facets are derived from one text."""
    if name != SOLUTION_VARIABLE and SOLUTION_VARIABLE not in relation.values:
        # blank nodes of one label are one in a solution and others in others, so that solutions need a name
        relation = _extend_volatile(context, relation, SOLUTION_VARIABLE, Apply("struuid", ()))
    relation, scope = make_scope(context, relation, expression)
    relation = context.build.close(relation.with_values(**{name: scope.value(expression)}))
    text = relation.values[name].text()
    assert isinstance(text, exp.Column)
    return relation.with_values(**{name: BareTerm(text.table, text.name, ANY, certain=False)})


def make_scope(context: Context, relation: Relation, expression: Expression) -> tuple[Relation, ExpressionScope]:
    """Return the scope of an expression, after joining what EXISTS in it needs to the relation."""
    names = dict[algebra.Exists, str]()
    for each in find_exists(expression):
        relation, names[each] = flag_exists(context, relation, each)
    found = {each: relation.values[name].text() for each, name in names.items()}
    named = relation.values.get(SOLUTION_VARIABLE)
    solution = None if named is None else named.string()
    return relation, replace(context.scope(relation), exists=found.__getitem__, blanks=solution)


def is_volatile(expression: Expression) -> bool:
    """Tell whether an expression may give another value each time."""
    if isinstance(expression, Apply):
        return expression.op in algebra.VOLATILE or any(is_volatile(each) for each in expression.args)
    return False
