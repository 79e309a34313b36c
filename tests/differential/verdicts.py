"""Verdicts: is an answer right, where a query leaves something open?

Open are the order of rows whose keys SPARQL does not put in order, which of them a slice takes, and the duplicates
that REDUCED lets go. Quotients and averages compare to so many digits, as it is left open how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

import pyoxigraph as ox

from tests.conformance.comparisons import difference, key
from tests.conformance.graphs import XSD, Term
from tests.conformance.results import Answer, Rows
from tests.differential.orders import compared

_DIGITS = 12
Row = tuple[Term | None, ...]


@dataclass(frozen=True)
class Leeway:
    """What of a query the oracle was not asked: it gives all rows, in any order."""

    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    reduced: bool = False

    @property
    def sliced(self) -> bool:
        return self.limit is not None or self.offset > 0


def problem(leeway: Leeway, expected: Answer, actual: Answer) -> str | None:
    """What is wrong with the answer; None where it is right."""
    if not isinstance(expected, Rows) or not isinstance(actual, Rows):
        return difference(expected, actual)
    wanted, found = _rounded(expected), _aligned(_rounded(actual), expected.names)
    if set(wanted.names) != set(actual.names):
        return f"expected the variables {sorted(wanted.names)}, got {sorted(actual.names)}"
    sliced = _slice_problem(leeway, wanted, found) if leeway.sliced else None
    whole = None if leeway.sliced else difference(wanted, found, lax=leeway.reduced)
    return sliced or whole or _order_problem(leeway, found)


def _aligned(rows: Rows, names: tuple[str, ...]) -> Rows:
    """With the columns in this order, if it has them."""
    if set(names) != set(rows.names):
        return rows
    places = [rows.names.index(name) for name in names]
    return Rows(names, tuple(tuple(row[place] for place in places) for row in rows.rows))


def _rounded(rows: Rows) -> Rows:
    return Rows(rows.names, tuple(tuple(map(_round, row)) for row in rows.rows))


def _round(term: Term | None) -> Term | None:
    if not isinstance(term, ox.Literal) or term.datatype.value != XSD + "decimal":
        return term
    _, _, fraction = term.value.partition(".")
    if len(fraction) < _DIGITS:
        return term
    return ox.Literal(f"{Decimal(term.value):.{_DIGITS - 2}f}", datatype=term.datatype)


def _slice_problem(leeway: Leeway, whole: Rows, part: Rows) -> str | None:
    rest = max(0, len(whole.rows) - leeway.offset)
    size = rest if leeway.limit is None else min(rest, leeway.limit)
    if len(part.rows) != size:
        return f"expected {size} of {len(whole.rows)} rows, got {len(part.rows)}"
    extra = Counter(map(_keys, part.rows)) - Counter(map(_keys, whole.rows))
    if extra:
        return f"not expected in any slice: {next(iter(extra))}"
    misplaced = [row for place, row in enumerate(part.rows) if not _fits(leeway, whole, row, leeway.offset + place)]
    return f"not in its place: {_keys(misplaced[0])}" if misplaced else None


def _keys(row: Row) -> tuple[object, ...]:
    return tuple(None if term is None else key(term) for term in row)


def _fits(leeway: Leeway, whole: Rows, row: Row, place: int) -> bool:
    """May the row be in this place? Before it and after it is room for those that must be there, and no more."""
    ways = Counter(_way(leeway, whole.names, row, other) for other in whole.rows)
    return ways[1] <= place and ways[-1] <= len(whole.rows) - 1 - place


def _order_problem(leeway: Leeway, found: Rows) -> str | None:
    for first, second in combinations(found.rows, 2):
        if leeway.order and _way(leeway, found.names, first, second) == 1:
            return f"in the wrong order: {_keys(first)}, {_keys(second)}"
    return None


def _way(leeway: Leeway, names: tuple[str, ...], one: Row, other: Row) -> int | None:
    """-1 if the one comes first, 1 if the other does, 0 or None if that is open."""
    for way in _ways(leeway, names, one, other):
        if way != 0:
            return way
    return 0


def _ways(leeway: Leeway, names: tuple[str, ...], one: Row, other: Row) -> Iterator[int | None]:
    for name, descending in leeway.order:
        place = names.index(name.removeprefix("?"))
        way = compared(one[place], other[place])
        yield -way if way is not None and descending else way
