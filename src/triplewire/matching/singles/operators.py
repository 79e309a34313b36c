"""Operators of the algebra, made into functions once for each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from triplewire.matching.singles.bags import bagged
from triplewire.matching.singles.expressions import Expressions
from triplewire.matching.singles.groups import grouped
from triplewire.matching.singles.joins import joined, left_joined, minus
from triplewire.matching.singles.runs import Evaluate, Operate, Row, Run, Slots, Test, Unknown
from triplewire.matching.singles.scans import reach, scan
from triplewire.matching.singles.selections import selected
from triplewire.sparql.algebra import (
    Apply,
    Bag,
    Basic,
    Exists,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Negated,
    Operator,
    Pattern,
    Reach,
    Repeat,
    Select,
    Union,
    Values,
    Var,
)
from triplewire.sparql.paths import translate_path
from triplewire.sparql.traversal import bound_variables, certain_variables, iterate_parts, mentioned_variables

_SERIALS = count()


@dataclass(frozen=True)
class Operators:
    """Makes the functions. Raises Unknown for what it does not know.

    `stored` is said inside of GRAPH. Inside of EXISTS, what is `substituted` are the values of a solution; operators on
    which it would make a difference when these are put in are not known there.
    """

    slots: Slots
    stored: bool = False
    substituted: bool = False

    @property
    def expressions(self) -> Expressions:
        return Expressions(self.slots, replace(self, substituted=True).made)

    def made(self, operator: Operator) -> Operate:
        match operator:
            case Basic(patterns):
                return _chained([scan(self.slots, each, stored=self.stored) for each in patterns])
            case Reach(path=Repeat()):
                return reach(self.slots, operator)
            case Reach(path=Negated() as path):
                return self.made(_negated(operator, path))
            case Reach():
                return self.made(translate_path(operator, _fresh))
            case Join(left, right):
                return self._join(left, right)
            case LeftJoin(left, right, conditions):
                return self._optional(left, right, conditions)
            case Union(left, right):
                return _united(self.made(left), self.made(right))
            case Filter(inner, conditions):
                return _filtered(self.made(inner), [self.expressions.test(each) for each in conditions])
            case Values(names, rows):
                return _stated([self.slots.variable(name) for name in names], rows)
            case Graph(name, inner):
                return _within(replace(self, stored=True).made(inner), self.slots.place(name))
        return self._alone(operator)

    def _alone(self, operator: Operator) -> Operate:
        """What knows nothing of the values around it."""
        if self.substituted:
            raise Unknown(operator)
        match operator:
            case Bag(elements=elements):
                return bagged(self.slots, operator, [self.expressions.test(each) for each in elements])
            case Minus(left, right):
                shared = sorted(map(self.slots.variable, bound_variables(left) & bound_variables(right)))
                return minus(self.made(left), self.made(right), shared) if shared else self.made(left)
            case Extend(inner, name, expression):
                return _extended(self.made(inner), self.slots.variable(name), self.expressions.value(expression))
            case Group(inner):
                return grouped(self.slots, operator, self.made(inner), self.expressions.value)
            case Select(inner):
                return selected(self.slots, operator, self.made(inner), self.expressions.value)
        raise Unknown(operator)

    def _join(self, left: Operator, right: Operator) -> Operate:
        """One side goes on from each solution of the other where it may; otherwise both are held together."""
        if _goes_on(right):
            return _chained([self.made(left), self.made(right)])
        if _goes_on(left):
            return _chained([self.made(right), self.made(left)])
        return joined(self.made(left), self.made(right), *self._places(left, right))

    def _optional(self, left: Operator, right: Operator, conditions: Sequence[Expression]) -> Operate:
        tests = [self.expressions.test(each) for each in conditions]
        first, second = self.made(left), self.made(right)
        if _goes_on(right):
            return _perhaps(first, second, tests)
        return left_joined(first, second, *self._places(left, right), tests)

    def _places(self, left: Operator, right: Operator) -> tuple[list[int], list[int]]:
        """The variables that both may bind, and all of the right."""
        names = bound_variables(right)
        shared = sorted(map(self.slots.variable, bound_variables(left) & names))
        return shared, sorted(map(self.slots.variable, names))


def _goes_on(operator: Operator) -> bool:
    """Is it the same whether a solution is put in before or held against it after?"""
    match operator:
        case Basic() | Values() | Reach() | Bag():
            return True
        case Join(left, right) | Union(left, right):
            return _goes_on(left) and _goes_on(right)
        case Graph(_, inner):
            return _goes_on(inner)
        case Filter(inner, conditions):
            plain = not any(isinstance(part, Exists) for part in iterate_parts(conditions))
            used = frozenset[str]().union(*(mentioned_variables(each) for each in conditions))
            return plain and used <= certain_variables(inner) and _goes_on(inner)
    return False


def _fresh() -> Var:
    """A variable that is nowhere else."""
    return Var(f".path{next(_SERIALS)}")


def _negated(given: Reach, path: Negated) -> Operator:
    ways = list[Operator]()
    for excluded, start, end in (
        (path.forward, given.subject, given.object),
        (path.backward, given.object, given.subject),
    ):
        if excluded is not None:
            step = _fresh()
            ways.append(Filter(Basic((Pattern(start, step, end),)), (Apply("not in", (step, *excluded)),)))
    return ways[0] if len(ways) == 1 else Union(ways[0], ways[1])


def _chained(operates: Sequence[Operate]) -> Operate:
    """Each goes on from the solutions of the one before it."""
    if len(operates) == 1:
        return operates[0]

    def found(run: Run, row: Row) -> list[Row]:
        rows = [row]
        for operate in operates:
            rows = operate(run, rows[0]) if len(rows) == 1 else [made for each in rows for made in operate(run, each)]
            if not rows:
                break
        return rows

    return found


def _united(left: Operate, right: Operate) -> Operate:
    return lambda run, row: [*left(run, row), *right(run, row)]


def _filtered(operate: Operate, tests: Sequence[Test]) -> Operate:
    if len(tests) == 1:
        return _filtered_by(operate, tests[0])
    made = operate
    for test in tests:
        made = _filtered_by(made, test)
    return made


def _filtered_by(operate: Operate, test: Test) -> Operate:
    return lambda run, row: [each for each in operate(run, row) if test(run, each)]


def _perhaps(left: Operate, right: Operate, tests: Sequence[Test]) -> Operate:
    """OPTIONAL, where the right goes on from each solution of the left."""
    more = _filtered(right, tests)

    def found(run: Run, row: Row) -> list[Row]:
        return [made for each in left(run, row) for made in more(run, each) or (each,)]

    return found


def _extended(operate: Operate, place: int, value: Evaluate) -> Operate:
    def found(run: Run, row: Row) -> list[Row]:
        rows = []
        for each in operate(run, row):
            made = each.copy()
            made[place] = run.written(value(run, each))
            rows.append(made)
        return rows

    return found


def _stated(places: Sequence[int], stated: Sequence[Sequence[str | None]]) -> Operate:
    def found(run: Run, row: Row) -> list[Row]:
        run.spend(len(stated))
        rows = []
        for terms in stated:
            made = row.copy()
            for place, term in zip(places, terms, strict=True):
                if made[place] is None:
                    made[place] = term
                elif term is not None and made[place] != term:
                    break
            else:
                rows.append(made)
        return rows

    return found


def _within(operate: Operate, place: int) -> Operate:
    """GRAPH: there is one, the event's own."""

    def found(run: Run, row: Row) -> list[Row]:
        rows, graph = [], run.event.graph
        for each in operate(run, row):
            if each[place] is None:
                made = each.copy()
                made[place] = graph
                rows.append(made)
            elif each[place] == graph:
                rows.append(each)
        return rows

    return found
