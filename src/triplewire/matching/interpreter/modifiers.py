"""Solution modifiers: GROUP BY and aggregates, ORDER BY, projection, DISTINCT and slices.

A value of None among those that are aggregated, or as a result, is a SPARQL error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from triplewire.matching.interpreter import arithmetic
from triplewire.matching.interpreter.runs import (
    ExpressionFunction,
    InterpreterRun,
    NotInterpretable,
    OperatorFunction,
    Row,
    RowLayout,
)
from triplewire.matching.interpreter.values import TermValue, Undecided, lexical_form, string_value, term_text
from triplewire.sparql.algebra import Aggregate, Expression, Family, Group, Select
from triplewire.sparql.traversal import bound_variables, mentioned_variables

Terms = tuple[str | None, ...]


def select_solutions(
    layout: RowLayout, select: Select, operate: OperatorFunction, value: Callable[[Expression], ExpressionFunction]
) -> OperatorFunction:
    """The solutions of a subquery, with nothing but the variables that it projects."""
    slots = [layout.variable(name) for name in select.projection]
    tabulate = tabulate_solutions(layout, select, operate, value)

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        rows = []
        for _, terms in tabulate(run, row):
            made = row.copy()
            for slot, term in zip(slots, terms, strict=True):
                made[slot] = term
            rows.append(made)
        return rows

    return found


def tabulate_solutions(
    layout: RowLayout, select: Select, operate: OperatorFunction, value: Callable[[Expression], ExpressionFunction]
) -> Callable[[InterpreterRun, Row], list[tuple[str, Terms]]]:
    """For each solution its rank, empty without an order, and the projected terms."""
    slots = [layout.variable(name) for name in select.projection]
    ways = _SortKeys([(value(each.expression), each.descending) for each in select.order])
    if select.distinct and not all(
        mentioned_variables(each.expression) <= {*select.projection} for each in select.order
    ):
        raise NotInterpretable(select)
    sliced = select.limit is not None or select.offset > 0
    end = None if select.limit is None else select.offset + select.limit

    def found(run: InterpreterRun, row: Row) -> list[tuple[str, Terms]]:
        rows = [(each, tuple([each[slot] for slot in slots])) for each in operate(run, row)]
        if select.distinct:
            rows = [*{terms: (each, terms) for each, terms in rows}.values()]
        if ways.given:
            ranked = ways.ranked(run, rows, sliced)
            return [(f"{rank:09}", terms) for rank, (_, terms) in enumerate(ranked, start=1)][select.offset : end]
        projected = [terms for _, terms in rows]
        if sliced:
            # Unbound variables come first.
            projected.sort(key=lambda terms: [(term is not None, term or "") for term in terms])
            projected = projected[select.offset : end]
        return [("", terms) for terms in projected]

    return found


@dataclass(frozen=True)
class _SortKeys:
    """The sort keys of solutions, each with whether it is descending."""

    given: Sequence[tuple[ExpressionFunction, bool]]

    def ranked(self, run: InterpreterRun, rows: Sequence[tuple[Row, Terms]], sliced: bool) -> list[tuple[Row, Terms]]:
        """Sort solutions; equal ones by their text. Undecided if a slice would depend on the order of equal ones."""
        values = [[value(run, row) for value, _ in self.given] for row, _ in rows]
        order = sorted(range(len(rows)), key=lambda at: [_text(run, each) for each in values[at]])
        for number in reversed(range(len(self.given))):
            keys = [arithmetic.order_key(each[number]) for each in values]
            order.sort(key=keys.__getitem__, reverse=self.given[number][1])
        ranked = [rows[at] for at in order]
        if sliced and len({terms for _, terms in rows}) > 1:
            self._check(run, values, rows)
        return ranked

    def _check(
        self, run: InterpreterRun, values: Sequence[Sequence[TermValue | None]], rows: Sequence[tuple[Row, Terms]]
    ) -> None:
        seen = dict[tuple[str, ...], Terms]()
        for each, (_, terms) in zip(values, rows, strict=True):
            if seen.setdefault(tuple([_text(run, value) for value in each]), terms) != terms:
                raise Undecided


def _text(run: InterpreterRun, given: TermValue | None) -> str:
    return run.written(given) or ""


GroupValues = Sequence[TermValue | None]


def count_values(given: GroupValues) -> TermValue | None:
    """COUNT; errors are skipped."""
    return arithmetic.integer_number(sum(each is not None for each in given))


def _numeric(function: Callable[[list[TermValue]], TermValue]) -> Callable[[GroupValues], TermValue | None]:
    """SUM and AVG: an error if one value is not a number."""

    def made(given: GroupValues) -> TermValue | None:
        found = [each for value in given if (each := arithmetic.as_number(value)) is not None]
        return function(found) if len(found) == len(given) else None

    return made


def _extreme(choose: Callable[..., tuple[object, str, TermValue]]) -> Callable[[GroupValues], TermValue | None]:
    """MIN and MAX: one of the terms; of equal ones the least text."""

    def made(given: GroupValues) -> TermValue | None:
        known = [each for each in given if each is not None]
        if not known or len(known) < len(given):
            return None
        if len(known) == 1:
            return known[0]
        keyed = [(arithmetic.order_key(each), term_text(each), each) for each in known]
        return choose(keyed, key=lambda each: each[:2])[2]

    return made


def group_concat(given: GroupValues, separator: str) -> TermValue | None:
    """GROUP_CONCAT. The order of a group is not defined, so only results that are the same in any order are decided."""
    if any(each is None or each.family is Family.BLANK for each in given):
        return None
    found = [lexical_form(each) for each in given if each is not None]
    if len(set(found)) > 1:
        raise Undecided
    return string_value(separator.join(found))


AGGREGATES: Mapping[str, Callable[[GroupValues], TermValue | None]] = {
    "count": count_values,
    "sum": _numeric(arithmetic.sum_numbers),
    "avg": _numeric(arithmetic.average_numbers),
    "min": _extreme(min),
    "max": _extreme(max),
    "sample": lambda given: min((each for each in given if each is not None), key=term_text, default=None),
}


def distinct_values(given: GroupValues) -> GroupValues:
    """Each value once, by its text; all errors are one."""
    return [*{None if each is None else term_text(each): each for each in given}.values()]


AggregateFunction: TypeAlias = Callable[[InterpreterRun, Sequence[Row]], TermValue | None]
"""The value of an aggregate over the solutions of a group."""


def group_solutions(
    layout: RowLayout, group: Group, operate: OperatorFunction, value: Callable[[Expression], ExpressionFunction]
) -> OperatorFunction:
    """One solution for each group, or, without keys, one for all."""
    keys = [(layout.variable(name), value(each)) for name, each in group.keys]
    names = [*bound_variables(group.inner), *(name for name, _ in group.keys)]
    whole = [layout.variable(name) for name in names if not name.startswith(("_:", "."))]
    overs = [(layout.variable(name), _compile_aggregate(each, value, whole)) for name, each in group.aggregates]

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        groups: dict[tuple[str | None, ...], list[Row]] = {} if keys else {(): []}
        for each in operate(run, row):
            made = _add_keys(run, each, keys)
            groups.setdefault(tuple([made[slot] for slot, _ in keys]), []).append(made)
        return [_make_row(run, row, keys, overs, key, rows) for key, rows in groups.items()]

    return found


def _add_keys(run: InterpreterRun, row: Row, keys: Sequence[tuple[int, ExpressionFunction]]) -> Row:
    made = row.copy()
    for slot, value in keys:
        made[slot] = run.written(value(run, made))
    return made


def _make_row(
    run: InterpreterRun,
    row: Row,
    keys: Sequence[tuple[int, ExpressionFunction]],
    overs: Sequence[tuple[int, AggregateFunction]],
    key: Sequence[str | None],
    rows: Sequence[Row],
) -> Row:
    made = row.copy()
    for (slot, _), term in zip(keys, key, strict=True):
        made[slot] = term
    for slot, over in overs:
        made[slot] = run.written(over(run, rows))
    return made


def _compile_aggregate(
    aggregate: Aggregate, value: Callable[[Expression], ExpressionFunction], whole: Sequence[int]
) -> AggregateFunction:
    if aggregate.argument is None:
        if not aggregate.distinct:
            return lambda _, rows: arithmetic.integer_number(len(rows))
        return lambda _, rows: arithmetic.integer_number(len({tuple([row[slot] for slot in whole]) for row in rows}))
    argument = value(aggregate.argument)
    function = _aggregate_function(aggregate)
    if aggregate.distinct:
        return lambda run, rows: function(distinct_values([argument(run, row) for row in rows]))
    return lambda run, rows: function([argument(run, row) for row in rows])


def _aggregate_function(aggregate: Aggregate) -> Callable[[GroupValues], TermValue | None]:
    if aggregate.op == "group_concat":
        return partial(group_concat, separator=aggregate.separator)
    if aggregate.op not in AGGREGATES:
        raise NotInterpretable(aggregate)
    return AGGREGATES[aggregate.op]
