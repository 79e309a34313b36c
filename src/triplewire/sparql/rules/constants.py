"""`FILTER(?x = <iri>)` over patterns: the IRI is put into the patterns, where it is looked up instead of compared.

The variable keeps its value by a join with it, and not by BIND: in EXISTS the solution around may have another one."""

from __future__ import annotations

from dataclasses import replace

from triplewire.model.terms import is_iri
from triplewire.sparql.algebra import (
    Apply,
    Basic,
    Const,
    Expression,
    Filter,
    Join,
    Node,
    Operator,
    Pattern,
    Values,
    Var,
)
from triplewire.sparql.compile.scans import VIRTUAL
from triplewire.sparql.rules.plannings import Planning
from triplewire.sparql.variables import bound_by


def put_constants(operator: Operator, _: Planning) -> Operator:
    if not isinstance(operator, Filter) or not isinstance(operator.inner, Basic):
        return operator
    basic, kept, known = operator.inner, list[Expression](), dict[str, Const]()
    for condition in operator.conditions:
        found = _named(condition)
        if found is None or found[0] in known or not _takes(basic, *found):
            kept.append(condition)
        else:
            known[found[0]] = found[1]
    if not known:
        return operator
    values = Values(tuple(known), (tuple(each.term for each in known.values()),))
    inner = Join(Basic(tuple(_with(each, known) for each in basic.patterns)), values)
    return Filter(inner, tuple(kept)) if kept else inner


def _named(condition: Expression) -> tuple[str, Const] | None:
    """The variable and the IRI that it must be. IRIs are equal only if they are the same; other terms are not."""
    match condition:
        case Apply("=" | "sameterm", (Var(name), Const(term))) | Apply("=" | "sameterm", (Const(term), Var(name))):
            return (name, Const(term)) if is_iri(term) else None
    return None


def _takes(basic: Basic, name: str, constant: Const) -> bool:
    """Has it the variable? A predicate that is made of headers is found by its name and by no variable."""
    named = Var(name)
    made = constant.term in VIRTUAL and any(each.predicate == named for each in basic.patterns)
    return name in bound_by(basic) and not made


def _with(pattern: Pattern, known: dict[str, Const]) -> Pattern:
    def put(node: Node) -> Node:
        return known.get(node.name, node) if isinstance(node, Var) else node

    return replace(
        pattern,
        subject=put(pattern.subject),
        predicate=put(pattern.predicate),
        object=put(pattern.object),
    )
