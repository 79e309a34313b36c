"""A second oracle, by brute force: every way to give each pattern one of the quads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

from tests.continuous.oracle import Asked, Key, Published, Triple

Piece = tuple[int, int, Triple]
"""Position and time of an event, and one of its quads."""


def expected(queries: Sequence[Asked], events: Iterable[Published]) -> Counter[Key]:
    """For queries without `rest`."""
    pieces = [(event.position, event.time, quad) for event in events for quad in event.quads]
    found: Counter[Key] = Counter()
    for number, query in enumerate(queries):
        assert not query.rest
        told: set[tuple[tuple[str, str], ...]] = set()
        for chosen in sorted(product(pieces, repeat=len(query.patterns)), key=lambda each: max(p for p, _, _ in each)):
            values = _fits(query, chosen)
            if values is None or not _near(query, chosen):
                continue
            bindings = tuple((name, values[name]) for name in sorted(query.names))
            if not (query.distinct and bindings in told):
                found[number, max(position for position, _, _ in chosen), bindings] += 1
            told.add(bindings)
    return found


def _fits(query: Asked, chosen: Sequence[Piece]) -> dict[str, str] | None:
    """What the variables are, or None where a pattern is not its quad."""
    values: dict[str, str] = {}
    for pattern, (_, _, quad) in zip(query.patterns, chosen, strict=True):
        for part, term in zip(pattern, quad, strict=True):
            wanted = values.setdefault(part[1:], term) if part.startswith("?") else part
            if wanted != term:
                return None
    return values


def _near(query: Asked, chosen: Sequence[Piece]) -> bool:
    positions, times = [position for position, _, _ in chosen], [time for _, time, _ in chosen]
    return (
        min(positions) > query.since
        and (query.span is None or max(positions) - min(positions) < query.span)
        and (query.within is None or max(times) - min(times) < query.within)
    )
