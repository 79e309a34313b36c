"""Selections: ordering, projection, DISTINCT and slices, of the whole query or of one inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triplewire.matching.singles.comparisons import order_key
from triplewire.matching.singles.facts import Fact, Undecided
from triplewire.matching.singles.runs import Evaluate, Operate, Row, Run, Slots, Unknown
from triplewire.sparql.algebra import Expression, Select
from triplewire.sparql.traversal import mentioned_variables

Terms = tuple[str | None, ...]


def selected(slots: Slots, select: Select, operate: Operate, value: Callable[[Expression], Evaluate]) -> Operate:
    """The solutions of a SELECT inside of a query, with nothing but what it projects."""
    places = [slots.variable(name) for name in select.projection]
    tabulate = tabulated(slots, select, operate, value)

    def found(run: Run, row: Row) -> list[Row]:
        rows = []
        for _, terms in tabulate(run, row):
            made = row.copy()
            for place, term in zip(places, terms, strict=True):
                made[place] = term
            rows.append(made)
        return rows

    return found


def tabulated(
    slots: Slots, select: Select, operate: Operate, value: Callable[[Expression], Evaluate]
) -> Callable[[Run, Row], list[tuple[str, Terms]]]:
    """For each solution its rank, which is empty where there is no order, and the terms of the projection."""
    places = [slots.variable(name) for name in select.projection]
    ways = _Ways([(value(each.expression), each.descending) for each in select.order])
    if select.distinct and not all(
        mentioned_variables(each.expression) <= {*select.projection} for each in select.order
    ):
        raise Unknown(select)
    sliced = select.limit is not None or select.offset > 0
    end = None if select.limit is None else select.offset + select.limit

    def found(run: Run, row: Row) -> list[tuple[str, Terms]]:
        rows = [(each, tuple([each[place] for place in places])) for each in operate(run, row)]
        if select.distinct:
            rows = [*{terms: (each, terms) for each, terms in rows}.values()]
        if ways.given:
            ranked = ways.ranked(run, rows, sliced)
            return [(f"{rank:09}", terms) for rank, (_, terms) in enumerate(ranked, start=1)][select.offset : end]
        told = [terms for _, terms in rows]
        if sliced:
            told = sorted(told, key=_nothing_first)[select.offset : end]
        return [("", terms) for terms in told]

    return found


@dataclass(frozen=True)
class _Ways:
    """What solutions are ordered by, each with whether it is the other way round."""

    given: Sequence[tuple[Evaluate, bool]]

    def ranked(self, run: Run, rows: Sequence[tuple[Row, Terms]], sliced: bool) -> list[tuple[Row, Terms]]:
        """What is equal stands by its text. Where that leaves open what a slice takes, so do we."""
        values = [[value(run, row) for value, _ in self.given] for row, _ in rows]
        order = sorted(range(len(rows)), key=lambda at: [_text(run, each) for each in values[at]])
        for number in reversed(range(len(self.given))):
            keys = [order_key(each[number]) for each in values]
            order.sort(key=keys.__getitem__, reverse=self.given[number][1])
        ranked = [rows[at] for at in order]
        if sliced and len({terms for _, terms in rows}) > 1:
            self._check(run, values, rows)
        return ranked

    def _check(self, run: Run, values: Sequence[Sequence[Fact | None]], rows: Sequence[tuple[Row, Terms]]) -> None:
        seen = dict[tuple[str, ...], Terms]()
        for each, (_, terms) in zip(values, rows, strict=True):
            if seen.setdefault(tuple([_text(run, value) for value in each]), terms) != terms:
                raise Undecided


def _text(run: Run, given: Fact | None) -> str:
    return run.written(given) or ""


def _nothing_first(terms: Terms) -> list[tuple[bool, str]]:
    return [(term is not None, term or "") for term in terms]
