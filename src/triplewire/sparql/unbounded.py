"""Unbounded queries: conjunctions of triple patterns across events, with what is computed of each solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from triplewire.sparql.algebra import Expression, Pattern
from triplewire.sparql.variables import mentioned, of_pattern


@dataclass(frozen=True)
class Bind:
    """A value for one variable more; none where the expression is an error."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Check:
    """What must be true of a solution; an error is not."""

    condition: Expression


RowStep: TypeAlias = Bind | Check


@dataclass(frozen=True)
class Unbounded:
    """A query whose solutions are the combinations of triples that match all patterns and pass all steps, in order.

    Variables that start with `_:` or `.` are such that nobody named: blank nodes, and what lies between the ends of a
    path. Scopes are gone: a step that used a variable from outside of its group has `UNBOUND` in its place. What can be
    one constant alone is that in the patterns, and is bound by the first steps.
    """

    form: Literal["select", "ask", "construct"]
    patterns: tuple[Pattern, ...]
    steps: tuple[RowStep, ...] = ()
    projection: tuple[str, ...] = ()
    """What is told; of CONSTRUCT, the variables of its template."""
    distinct: bool = False
    template: tuple[Pattern, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the patterns that steps or the projection use: what `compile_rows` has to be given."""
        used = frozenset(self.projection).union(*(used_by(each) for each in self.steps))
        bound = dict.fromkeys(name for each in self.patterns for name in sorted(of_pattern(each)))
        return tuple(name for name in bound if name in used)


def used_by(step: RowStep) -> frozenset[str]:
    """The variables that a step looks at."""
    return mentioned(step.expression if isinstance(step, Bind) else step.condition)
