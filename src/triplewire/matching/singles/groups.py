"""Groups: GROUP BY and the set functions over each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from triplewire.matching.singles.aggregates import AGGREGATES, Values, distinct, group_concat
from triplewire.matching.singles.facts import Fact
from triplewire.matching.singles.numbers import counted
from triplewire.matching.singles.runs import Evaluate, Operate, Row, Run, Slots, Unknown
from triplewire.sparql.algebra import Aggregate, Expression, Group
from triplewire.sparql.traversal import bound_variables

Over: TypeAlias = Callable[[Run, Sequence[Row]], Fact | None]
"""The value of a set function over the solutions of a group."""


def grouped(slots: Slots, group: Group, operate: Operate, value: Callable[[Expression], Evaluate]) -> Operate:
    """One solution for each group, or, without keys, for all."""
    keys = [(slots.variable(name), value(each)) for name, each in group.keys]
    names = [*bound_variables(group.inner), *(name for name, _ in group.keys)]
    whole = [slots.variable(name) for name in names if not name.startswith(("_:", "."))]
    overs = [(slots.variable(name), _over(each, value, whole)) for name, each in group.aggregates]

    def found(run: Run, row: Row) -> list[Row]:
        groups: dict[tuple[str | None, ...], list[Row]] = {} if keys else {(): []}
        for each in operate(run, row):
            made = _keyed(run, each, keys)
            groups.setdefault(tuple([made[place] for place, _ in keys]), []).append(made)
        return [_told(run, row, keys, overs, key, rows) for key, rows in groups.items()]

    return found


def _keyed(run: Run, row: Row, keys: Sequence[tuple[int, Evaluate]]) -> Row:
    made = row.copy()
    for place, value in keys:
        made[place] = run.written(value(run, made))
    return made


def _told(
    run: Run,
    row: Row,
    keys: Sequence[tuple[int, Evaluate]],
    overs: Sequence[tuple[int, Over]],
    key: Sequence[str | None],
    rows: Sequence[Row],
) -> Row:
    made = row.copy()
    for (place, _), term in zip(keys, key, strict=True):
        made[place] = term
    for place, over in overs:
        made[place] = run.written(over(run, rows))
    return made


def _over(aggregate: Aggregate, value: Callable[[Expression], Evaluate], whole: Sequence[int]) -> Over:
    if aggregate.argument is None:
        if not aggregate.distinct:
            return lambda _, rows: counted(len(rows))
        return lambda _, rows: counted(len({tuple([row[place] for place in whole]) for row in rows}))
    argument = value(aggregate.argument)
    function = _function(aggregate)
    once = distinct if aggregate.distinct else _all
    return lambda run, rows: function(once([argument(run, row) for row in rows]))


def _all(given: Values) -> Values:
    return given


def _function(aggregate: Aggregate) -> Callable[[Values], Fact | None]:
    if aggregate.op == "group_concat":
        return partial(group_concat, separator=aggregate.separator)
    if aggregate.op not in AGGREGATES:
        raise Unknown(aggregate)
    return AGGREGATES[aggregate.op]
