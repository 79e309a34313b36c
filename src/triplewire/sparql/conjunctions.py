"""Conjunctive queries as flat values: triple patterns with filters on one event, or with row steps across events.

Flat values have no scopes: a filter or step that used a variable from outside its group has `UNBOUND` in its place.
The index and the join network take only these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from triplewire.sparql import algebra
from triplewire.sparql.algebra import UNBOUND, Expression, Node, Operator, Pattern, Query
from triplewire.sparql.traversal import iterate_parts, map_variables, mentioned_variables, pattern_variables


@dataclass(frozen=True)
class Conjunction:
    """Triple patterns, all of which must match, and filters, all of which must be true."""

    form: Literal["select", "ask"]
    patterns: tuple[Pattern, ...]
    filters: tuple[Expression, ...] = ()
    projection: tuple[str, ...] = ()
    """Variable names in the order of the result; empty for `ask`."""
    distinct: bool = False
    limit: int | None = None
    offset: int = 0


def to_conjunction(query: Query) -> Conjunction | None:
    """The query as a conjunction; None if it is more than that."""
    select = query.where if isinstance(query.where, algebra.Select) else algebra.Select(query.where, query.projection)
    flat = None if select.order or query.dataset != algebra.Dataset() else _flat(select.inner)
    if flat is None or query.form not in ("select", "ask"):
        return None
    form: Literal["select", "ask"] = "select" if query.form == "select" else "ask"
    return Conjunction(form, *flat, query.projection, select.distinct, select.limit, select.offset)


def _flat(operator: Operator, graph: Node | None = None) -> tuple[tuple[Pattern, ...], tuple[Expression, ...]] | None:
    match operator:
        case algebra.Basic(patterns):
            return tuple(replace(each, graph=each.graph or graph) for each in patterns), ()
        case algebra.Join(left, right):
            one, other = _flat(left, graph), _flat(right, graph)
            return None if one is None or other is None else ((*one[0], *other[0]), (*one[1], *other[1]))
        case algebra.Graph(name, inner) if graph is None:
            found = _flat(inner, name)
            return found if found and found[0] else None
        case algebra.Filter(inner, conditions):
            found = _flat(inner, graph)
            if found is None or any(isinstance(part, algebra.Exists) for part in iterate_parts(conditions)):
                return None
            seen = frozenset().union(*(pattern_variables(each) for each in found[0]))
            return found[0], (*found[1], *(limit_scope(each, seen) for each in conditions))
    return None


def limit_scope(expression: Expression, scope: frozenset[str]) -> Expression:
    """Replace variables that are out of scope."""
    return map_variables(expression, lambda variable: variable if variable.name in scope else UNBOUND)


@dataclass(frozen=True)
class Bind:
    """BIND: a value for a further variable; none if the expression is an error."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Check:
    """A condition that a solution must meet; an error does not."""

    condition: Expression


RowStep: TypeAlias = Bind | Check


@dataclass(frozen=True)
class UnboundedQuery:
    """A query whose solutions are the combinations of triples that match all patterns and pass all steps, in order.

    Variables that start with `_:` or `.` are generated: blank nodes, and nodes inside a path. A step that used a
    variable from outside of its group has `UNBOUND` in its place. A variable that can only be one constant is replaced
    by it in the patterns, and bound by the first steps.
    """

    form: Literal["select", "ask", "construct"]
    patterns: tuple[Pattern, ...]
    steps: tuple[RowStep, ...] = ()
    projection: tuple[str, ...] = ()
    """The variables of the answers; for CONSTRUCT, those of its template."""
    distinct: bool = False
    template: tuple[Pattern, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the patterns that steps or the projection use: the input of `compile_rows`."""
        used = frozenset(self.projection).union(*(used_variables(each) for each in self.steps))
        bound = dict.fromkeys(name for each in self.patterns for name in sorted(pattern_variables(each)))
        return tuple(name for name in bound if name in used)


def used_variables(step: RowStep) -> frozenset[str]:
    """The variables that a step looks at."""
    return mentioned_variables(step.expression if isinstance(step, Bind) else step.condition)
