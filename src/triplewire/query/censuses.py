"""Censuses: what was counted of the whole lake, for those who look from outside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from triplewire.config import limits
from triplewire.query.records import Record
from triplewire.query.sketches import REGISTERS, estimated

_SUBJECTS = 1
"""The place of the sketch of subjects among those of a predicate."""


@dataclass(frozen=True)
class Census:
    """Triples are counted, predicates as of when they were last written down; subjects are estimated."""

    triples: int
    properties: int = 0
    subjects: int = 0
    predicates: tuple[tuple[str, int], ...] = ()
    """The most frequent, each with its triples."""


def census(triples: int, record: Record | None) -> Census:
    """Of a lake with so many triples, and of what was written down of it, if anything was."""
    if record is None:
        return Census(triples)
    rows = Counter[str]()
    for predicate, _, _, count, *_ in record.facts:
        rows[predicate] += count
    most = sorted(rows.items(), key=lambda each: (-each[1], each[0]))[: limits.SAMPLE_TERMS]
    return Census(triples, len(rows), _subjects(record), tuple(most))


def _subjects(record: Record) -> int:
    """Of all predicates together: the sketch of a union has the greatest of each register."""
    union = bytearray(REGISTERS)
    for kinds in record.sketches.values():
        union = bytearray(map(max, union, bytes.fromhex(kinds[_SUBJECTS])))
    used = [run for run in union if run]
    return min(record.rows, estimated(len(used), sum(2.0**-run for run in used)))
