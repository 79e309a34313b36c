"""Compiles the operators of the SPARQL algebra into functions from one solution to many, once for each query.

A join goes on from each solution of one side where that is the same; otherwise both sides are evaluated and joined. An
operator that the interpreter does not know raises `NotInterpretable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from triplewire.matching.interpreter.expressions import ExpressionCompiler
from triplewire.matching.interpreter.modifiers import group_solutions, select_solutions
from triplewire.matching.interpreter.patterns import match_bag, match_path, match_pattern
from triplewire.matching.interpreter.runs import (
    ExpressionFunction,
    InterpreterRun,
    NotInterpretable,
    OperatorFunction,
    Row,
    RowLayout,
    TestFunction,
)
from triplewire.sparql import algebra
from triplewire.sparql.paths import translate_negated, translate_path
from triplewire.sparql.traversal import bound_variables, certain_variables, iterate_parts, mentioned_variables


def join_solutions(
    left: OperatorFunction, right: OperatorFunction, shared: Sequence[int], slots: Sequence[int]
) -> OperatorFunction:
    """All pairs of compatible solutions. `shared` are the slots that both sides may bind, `slots` all slots of the
    right side."""

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        ones = left(run, row)
        others = right(run, row) if ones else []
        run.spend(len(ones) * len(others))
        return [
            _merge_rows(one, other, slots) for one in ones for other in others if are_compatible(one, other, shared)
        ]

    return found


def left_join_solutions(
    left: OperatorFunction,
    right: OperatorFunction,
    shared: Sequence[int],
    slots: Sequence[int],
    tests: Sequence[TestFunction],
) -> OperatorFunction:
    """Each solution of the left side, with each compatible one of the right side that passes the tests, or alone."""

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        ones = left(run, row)
        others = right(run, row) if ones else []
        run.spend(len(ones) * len(others))
        rows = list[Row]()
        for one in ones:
            pairs = (_merge_rows(one, other, slots) for other in others if are_compatible(one, other, shared))
            rows += [pair for pair in pairs if all(test(run, pair) for test in tests)] or [one]
        return rows

    return found


def subtract_solutions(left: OperatorFunction, right: OperatorFunction, shared: Sequence[int]) -> OperatorFunction:
    """The solutions of the left side without those that are compatible and share a variable with one of the right
    side."""

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        ones = left(run, row)
        others = right(run, row) if ones else []
        run.spend(len(ones) * len(others))
        return [one for one in ones if not any(_removes(one, other, shared) for other in others)]

    return found


def are_compatible(one: Row, other: Row, shared: Sequence[int]) -> bool:
    """Do they agree on the slots that both bind?"""
    for slot in shared:
        here, there = one[slot], other[slot]
        if here is not None and there is not None and here != there:
            return False
    return True


def _removes(one: Row, other: Row, shared: Sequence[int]) -> bool:
    common = any(one[slot] is not None and other[slot] is not None for slot in shared)
    return common and are_compatible(one, other, shared)


def _merge_rows(one: Row, other: Row, slots: Sequence[int]) -> Row:
    made = one.copy()
    for slot in slots:
        if made[slot] is None:
            made[slot] = other[slot]
    return made


_SERIALS = count()


@dataclass(frozen=True)
class OperatorCompiler:
    """Compiles operators. Raises NotInterpretable. `stored` is set inside GRAPH. Inside EXISTS, `substituted` are
    the variables with values of the outer solution; operators for which substitution would make a difference are not
    known there."""

    layout: RowLayout
    stored: bool = False
    substituted: bool = False

    @property
    def expressions(self) -> ExpressionCompiler:
        return ExpressionCompiler(self.layout, replace(self, substituted=True).compile)

    def compile(self, operator: algebra.Operator) -> OperatorFunction:
        match operator:
            case algebra.Basic(patterns):
                return _chain([match_pattern(self.layout, each, stored=self.stored) for each in patterns])
            case algebra.Reach(path=algebra.Repeat()):
                return match_path(self.layout, operator)
            case algebra.Reach(path=algebra.Negated() as path):
                return self.compile(translate_negated(operator, path, _fresh_variable))
            case algebra.Reach():
                return self.compile(translate_path(operator, _fresh_variable))
            case algebra.Join(left, right):
                return self._join(left, right)
            case algebra.LeftJoin(left, right, conditions):
                return self._optional(left, right, conditions)
            case algebra.Union(left, right):
                one, other = self.compile(left), self.compile(right)
                return lambda run, row: [*one(run, row), *other(run, row)]
            case algebra.Filter(inner, conditions):
                return _filter_all(self.compile(inner), [self.expressions.test(each) for each in conditions])
            case algebra.Values(names, rows):
                return _values([self.layout.variable(name) for name in names], rows)
            case algebra.Graph(name, inner):
                return _graph(replace(self, stored=True).compile(inner), self.layout.slot(name))
        return self._alone(operator)

    def _alone(self, operator: algebra.Operator) -> OperatorFunction:
        """An operator that does not see the values around it."""
        if self.substituted:
            raise NotInterpretable(operator)
        match operator:
            case algebra.Bag(elements=elements):
                return match_bag(self.layout, operator, [self.expressions.test(each) for each in elements])
            case algebra.Minus(left, right):
                shared = sorted(map(self.layout.variable, bound_variables(left) & bound_variables(right)))
                return (
                    subtract_solutions(self.compile(left), self.compile(right), shared)
                    if shared
                    else self.compile(left)
                )
            case algebra.Extend(inner, name, expression):
                return _extend(self.compile(inner), self.layout.variable(name), self.expressions.value(expression))
            case algebra.Group(inner):
                return group_solutions(self.layout, operator, self.compile(inner), self.expressions.value)
            case algebra.Select(inner):
                return select_solutions(self.layout, operator, self.compile(inner), self.expressions.value)
        raise NotInterpretable(operator)

    def _join(self, left: algebra.Operator, right: algebra.Operator) -> OperatorFunction:
        """Chain one side to each solution of the other if that is allowed, else join both."""
        if _can_chain(right):
            return _chain([self.compile(left), self.compile(right)])
        if _can_chain(left):
            return _chain([self.compile(right), self.compile(left)])
        return join_solutions(self.compile(left), self.compile(right), *self._shared_slots(left, right))

    def _optional(
        self, left: algebra.Operator, right: algebra.Operator, conditions: Sequence[algebra.Expression]
    ) -> OperatorFunction:
        tests = [self.expressions.test(each) for each in conditions]
        first, second = self.compile(left), self.compile(right)
        if _can_chain(right):
            return _optional(first, second, tests)
        return left_join_solutions(first, second, *self._shared_slots(left, right), tests)

    def _shared_slots(self, left: algebra.Operator, right: algebra.Operator) -> tuple[list[int], list[int]]:
        """The variables that both sides may bind, and all of the right side."""
        names = bound_variables(right)
        shared = sorted(map(self.layout.variable, bound_variables(left) & names))
        return shared, sorted(map(self.layout.variable, names))


def _can_chain(operator: algebra.Operator) -> bool:
    """Is it the same to put a solution in before as to join with it after?"""
    match operator:
        case algebra.Basic() | algebra.Values() | algebra.Reach() | algebra.Bag():
            return True
        case algebra.Join(left, right) | algebra.Union(left, right):
            return _can_chain(left) and _can_chain(right)
        case algebra.Graph(_, inner):
            return _can_chain(inner)
        case algebra.Filter(inner, conditions):
            plain = not any(isinstance(part, algebra.Exists) for part in iterate_parts(conditions))
            used = frozenset[str]().union(*(mentioned_variables(each) for each in conditions))
            return plain and used <= certain_variables(inner) and _can_chain(inner)
    return False


def _fresh_variable() -> algebra.Var:
    """A variable that occurs nowhere else."""
    return algebra.Var(f".path{next(_SERIALS)}")


def _chain(operates: Sequence[OperatorFunction]) -> OperatorFunction:
    """Chain each operator to the solutions of the one before it."""
    if len(operates) == 1:
        return operates[0]

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        rows = [row]
        for operate in operates:
            rows = operate(run, rows[0]) if len(rows) == 1 else [made for each in rows for made in operate(run, each)]
            if not rows:
                break
        return rows

    return found


def _filter_all(operate: OperatorFunction, tests: Sequence[TestFunction]) -> OperatorFunction:
    if len(tests) == 1:
        return _filter_by(operate, tests[0])
    made = operate
    for test in tests:
        made = _filter_by(made, test)
    return made


def _filter_by(operate: OperatorFunction, test: TestFunction) -> OperatorFunction:
    return lambda run, row: [each for each in operate(run, row) if test(run, each)]


def _optional(left: OperatorFunction, right: OperatorFunction, tests: Sequence[TestFunction]) -> OperatorFunction:
    """OPTIONAL, with the right side chained to each solution of the left."""
    more = _filter_all(right, tests)

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        return [made for each in left(run, row) for made in more(run, each) or (each,)]

    return found


def _extend(operate: OperatorFunction, slot: int, value: ExpressionFunction) -> OperatorFunction:
    def found(run: InterpreterRun, row: Row) -> list[Row]:
        rows = []
        for each in operate(run, row):
            made = each.copy()
            made[slot] = run.written(value(run, each))
            rows.append(made)
        return rows

    return found


def _values(slots: Sequence[int], stated: Sequence[Sequence[str | None]]) -> OperatorFunction:
    def found(run: InterpreterRun, row: Row) -> list[Row]:
        run.spend(len(stated))
        rows = []
        for terms in stated:
            made = row.copy()
            for slot, term in zip(slots, terms, strict=True):
                if made[slot] is None:
                    made[slot] = term
                elif term is not None and made[slot] != term:
                    break
            else:
                rows.append(made)
        return rows

    return found


def _graph(operate: OperatorFunction, slot: int) -> OperatorFunction:
    """GRAPH: the event's own graph is the only one."""

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        rows, graph = [], run.event.graph
        for each in operate(run, row):
            if each[slot] is None:
                made = each.copy()
                made[slot] = graph
                rows.append(made)
            elif each[slot] == graph:
                rows.append(each)
        return rows

    return found
