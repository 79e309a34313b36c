"""Flattening: groups inside one another as one list of patterns and one of steps, each in the scope that it had.

Solutions of two groups are joined where they agree on what both bind. For variables of patterns that is what joins
patterns anyhow. A variable that a step binds may have no value, so it gets another name, and a step that compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count

from triplewire.sparql.algebra import UNBOUND, Apply, Const, Expression, Operator, Pattern, Reach, Values, Var
from triplewire.sparql.rules.paths import expanded
from triplewire.sparql.unbounded import Bind, Check, RowStep
from triplewire.sparql.variables import of_pattern

_MOST_ROWS = 256
"""Rows of VALUES that are looked for one by one: each is a part of a condition."""


@dataclass(frozen=True)
class Flat:
    """Patterns, steps over their variables, and `tables`, stated solutions of which one must agree with a solution."""

    patterns: tuple[Pattern, ...] = ()
    steps: tuple[RowStep, ...] = ()
    tables: tuple[Values, ...] = ()

    @property
    def matched(self) -> frozenset[str]:
        """The variables of patterns."""
        return frozenset().union(*(of_pattern(each) for each in self.patterns))

    @property
    def stated(self) -> frozenset[str]:
        """The variables of tables, which must be such of patterns in the end."""
        return frozenset(name for each in self.tables for name in each.names)

    @property
    def made(self) -> frozenset[str]:
        """The variables that steps bind."""
        return frozenset(each.name for each in self.steps if isinstance(each, Bind))

    @property
    def scope(self) -> frozenset[str]:
        return self.matched | self.stated | self.made

    def then(self, *steps: RowStep) -> Flat:
        return replace(self, steps=(*self.steps, *steps))

    def renamed(self, old: str, new: str) -> Flat:
        """With another name for a variable that a step binds."""
        return replace(self, steps=tuple(_renamed(each, old, new) for each in self.steps))


class Flattening:
    """Makes the names of one query."""

    def __init__(self) -> None:
        self._numbers = count()

    def expanded(self, reach: Reach) -> Operator:
        """A path of steps one after the other as patterns."""
        return expanded(reach, self._fresh)

    def filtered(self, inner: Flat, conditions: Iterable[Expression]) -> Flat:
        return inner.then(*(Check(_scoped(part, inner.scope)) for each in conditions for part in _parts(each)))

    def extended(self, inner: Flat, name: str, expression: Expression) -> Flat:
        return inner.then(Bind(name, _scoped(expression, inner.scope)))

    def stated(self, values: Values) -> Flat | None:
        """One solution is like BIND of each. Of several at most one may agree with any solution: None if that is not
        sure, if there is none, or if they are too many."""
        if len(values.rows) == 1:
            known = zip(values.names, values.rows[0], strict=True)
            return Flat(steps=tuple(Bind(name, Const(term)) for name, term in known if term is not None))
        distinct = len(set(values.rows)) == len(values.rows) and not any(None in row for row in values.rows)
        return Flat(tables=(values,)) if distinct and 0 < len(values.rows) <= _MOST_ROWS else None

    def joined(self, left: Flat, right: Flat) -> Flat:
        """Both, where they agree."""
        compared: list[RowStep] = []
        for name in sorted((left.made & right.scope) | (right.made & left.scope)):
            left, one = self._parted(left, name)
            right, other = self._parted(right, name)
            compared.append(Check(_agree(_known(left, one), _known(right, other))))
            if name not in (one, other):
                compared.append(Bind(name, Apply("coalesce", (Var(one), Var(other)))))
        return Flat(
            (*left.patterns, *right.patterns), (*left.steps, *right.steps, *compared), (*left.tables, *right.tables)
        )

    def _parted(self, flat: Flat, name: str) -> tuple[Flat, str]:
        """With a name of its own for a variable that a step binds; that of patterns stays."""
        if name not in flat.made:
            return flat, name
        new = self._fresh().name
        return flat.renamed(name, new), new

    def _fresh(self) -> Var:
        return Var(f".u{next(self._numbers)}")


def _parts(condition: Expression) -> list[Expression]:
    """What must be true for a conjunction to be."""
    if isinstance(condition, Apply) and condition.op == "&&":
        return [part for each in condition.args for part in _parts(each)]
    return [condition]


def _known(flat: Flat, name: str) -> Expression:
    """The variable, or the constant that it is in any case."""
    made = [each.expression for each in flat.steps if isinstance(each, Bind) and each.name == name]
    return made[0] if made and isinstance(made[0], Const) else Var(name)


def _agree(left: Expression, right: Expression) -> Expression:
    """Are both the same term, or is one of them unbound?"""
    same = Apply("sameterm", (left, right))
    open_ = tuple(Apply("!", (Apply("bound", (each,)),)) for each in (left, right) if _may_lack(each))
    return Apply("||", (*open_, same)) if open_ else same


def _may_lack(expression: Expression) -> bool:
    """Variables of steps alone may have no value; they have names of ours here."""
    return isinstance(expression, Var) and expression.name.startswith(".u")


def _scoped(expression: Expression, scope: frozenset[str]) -> Expression:
    match expression:
        case Var(name):
            return expression if name in scope else UNBOUND
        case Apply(op, args):
            return Apply(op, tuple(_scoped(each, scope) for each in args))
    return expression


def _renamed(step: RowStep, old: str, new: str) -> RowStep:
    def put(expression: Expression) -> Expression:
        match expression:
            case Var(name):
                return Var(new) if name == old else expression
            case Apply(op, args):
                return Apply(op, tuple(map(put, args)))
        return expression

    if isinstance(step, Check):
        return Check(put(step.condition))
    return Bind(new if step.name == old else step.name, put(step.expression))
