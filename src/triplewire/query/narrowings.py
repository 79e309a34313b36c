"""Narrowings: files that a scan need not read, because what it is joined with lies elsewhere.

What lies close in time lies close in most columns: where one scan is left with the files of an hour, the subjects and
positions of these leave the others with about that hour, too. Nothing is read to find it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from triplewire.query.ranges import Ranges
from triplewire.sparql.readings import Reading

_FEWER = 2
"""How many times as many files a scan must have for another to narrow it: looking at them all takes time, too."""


def narrowed(readings: Iterable[Reading], ranges: Ranges) -> dict[str, tuple[int, ...]]:
    """The numbers of the files that each scan has to read, in order, by its alias."""
    known = {each.alias: each for each in readings}
    chosen: dict[str, Set[int]] = {alias: ranges.within(each) for alias, each in known.items()}
    waiting = set(known)
    while waiting:
        fewest = min(waiting, key=lambda alias: (len(chosen[alias]), alias))
        waiting.remove(fewest)
        for alias in waiting:
            chosen[alias] = _narrowed(known[alias], fewest, chosen, ranges)
    return {alias: tuple(sorted(numbers)) for alias, numbers in chosen.items()}


def _narrowed(reading: Reading, by: str, chosen: dict[str, Set[int]], ranges: Ranges) -> Set[int]:
    """What is left of the files of a scan by its ties with another."""
    left = chosen[reading.alias]
    for tie in reading.ties:
        if tie.alias == by and len(chosen[by]) * _FEWER <= len(left):
            spans = ranges.spans(chosen[by], tie.other)
            left = left if spans is None else ranges.meeting(left, tie.column, spans)
    return left
