"""Choices: IF and COALESCE, whose value is that of one of their branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.arithmetic import Bind
from triplewire.sparql.compile.columns import Derived
from triplewire.sparql.compile.computed import Number, Text, Truth, tagged
from triplewire.sparql.compile.sql import Sql, case, is_false, is_true, negate
from triplewire.sparql.compile.values import Value, facet_of


@dataclass(frozen=True)
class Choice:
    """Values, each with the condition under which it is taken if none before it is."""

    branches: Sequence[tuple[Sql, Value]]

    def of(self, answer: Callable[[Value], Sql]) -> Sql:
        return case(*((condition, answer(value)) for condition, value in self.branches))

    def value(self, bind: Bind) -> Value:
        """One value; as what was computed where all branches are alike, else as a term with facets."""
        values = [value for _, value in self.branches if value.families]
        families = frozenset[Family]().union(*(value.families for value in values))
        if not values:
            return Value()
        if families == {Family.BOOLEAN}:
            return Truth(bind(self.of(lambda each: each.boolean())))
        if all(isinstance(value, Text) for value in values):
            return tagged(bind(self.of(lambda each: each.string())), bind(self.of(lambda each: each.language())))
        if all(isinstance(value, Number) for value in values):
            return self._number(bind, families)
        made = bind(self.of(lambda each: each.text()))
        return Derived(
            families=families, made=made, made_facet=lambda name: bind(self.of(partial(facet_of, name=name)))
        )

    def _number(self, bind: Bind, families: frozenset[Family]) -> Value:
        rank = bind(self.of(lambda each: each.rank()))
        exact = bind(self.of(lambda each: each.exact()))
        return Number(rank, exact, bind(self.of(lambda each: each.number())), families)


def either(condition: Sql, yes: Value, no: Value, bind: Bind) -> Value:
    """IF: an error in the condition is one; in the branch that is not taken it is none."""
    held = bind(condition)
    return Choice(((held, yes), (negate(held), no))).value(bind)


def first(values: Sequence[Value], bind: Bind) -> Value:
    """COALESCE: the first that is no error."""
    branches = []
    for value in values:
        bound = value.bound()
        if not is_false(bound) and value.families:
            branches.append((bound, value))
        if is_true(bound):
            break
    return Choice(tuple(branches)).value(bind) if branches else Value()
