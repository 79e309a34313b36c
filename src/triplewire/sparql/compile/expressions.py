"""Expressions over a relation: filters, and values that are bound to a variable."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from triplewire.sparql.algebra import VOLATILE, Apply, Const, Exists, Expression, Var
from triplewire.sparql.compile.conditions import Scope
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.existence import existences, existing, flagged
from triplewire.sparql.compile.relations import Bare, Relation
from triplewire.sparql.compile.values import ANY

SOLUTION = ".solution"
"""The variable that tells solutions apart, where that is needed."""


def filtered(context: Context, relation: Relation, conditions: tuple[Expression, ...]) -> Relation:
    """The solutions for which all conditions are true."""
    for condition in conditions:
        match condition:
            case Exists():
                relation = existing(context, relation, condition, wanted=True)
            case Apply("!", (Exists() as inner,)):
                relation = existing(context, relation, inner, wanted=False)
            case Apply("&&", parts):
                relation = filtered(context, relation, parts)
            case _:
                relation, scope = scoped(context, relation, condition)
                relation = relation.where(scope.holds(condition))
    return relation


def valued(context: Context, relation: Relation, name: str, expression: Expression) -> Relation:
    """The solutions with a value for one variable more, or none where the expression is an error."""
    if expression == Var(name):
        return relation
    relation, scope = scoped(context, relation, expression)
    if isinstance(expression, Var | Const):
        return relation.having(**{name: scope.value(expression)})
    if volatile(expression):
        return _once(context, context.build.settled(relation), name, expression)
    return context.build.closed(context.build.settled(relation.having(**{name: scope.value(expression)})))


def _once(context: Context, relation: Relation, name: str, expression: Expression) -> Relation:
    """Everything that is asked of the value must come from one and the same: from its text."""
    if name != SOLUTION and SOLUTION not in relation.values:
        # blank nodes of one label are one in a solution and others in others, so that solutions need a name
        relation = _once(context, relation, SOLUTION, Apply("struuid", ()))
    relation, scope = scoped(context, relation, expression)
    relation = context.build.closed(relation.having(**{name: scope.value(expression)}))
    text = relation.values[name].text()
    assert isinstance(text, exp.Column)
    return relation.having(**{name: Bare(text.table, text.name, ANY, certain=False)})


def scoped(context: Context, relation: Relation, expression: Expression) -> tuple[Relation, Scope]:
    """The scope of an expression, with what EXISTS in it needs joined to the relation."""
    names = dict[Exists, str]()
    for each in existences(expression):
        relation, names[each] = flagged(context, relation, each)
    found = {each: relation.values[name].text() for each, name in names.items()}
    named = relation.values.get(SOLUTION)
    told = None if named is None else named.string()
    return relation, replace(context.scope(relation), exists=found.__getitem__, blanks=told)


def volatile(expression: Expression) -> bool:
    """Does it give another value each time?"""
    if isinstance(expression, Apply):
        return expression.op in VOLATILE or any(volatile(each) for each in expression.args)
    return False
