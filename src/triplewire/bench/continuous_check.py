"""The check of `bench continuous`: every answer that was told is held to those that were found beside the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np
import pyarrow as pa

from triplewire.bench.continuous_conjunctions import Codes, Question, Workload
from triplewire.bench.continuous_joins import Located, answers
from triplewire.bench.continuous_oxigraph import Told, solutions
from triplewire.bench.match import Disagreement
from triplewire.config import Settings
from triplewire.model import MATCHES
from triplewire.model.clock import SystemClock
from triplewire.storage.outbox import SqliteOutbox
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.registry.subscriptions import QUERY, query_from_change

SAMPLE = 40
"""Questions whose answers are asked of pyoxigraph."""
_CHUNKS = 100


@dataclass(frozen=True)
class Rows:
    """Answers as they lie in the outbox, or as they should: of each its group, its newest and its oldest position."""

    groups: Codes
    newest: Codes
    oldest: Codes

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def ordered(self) -> Codes:
        columns = np.stack([self.groups, self.newest, self.oldest], axis=1)
        ordered: Codes = columns[np.lexsort(columns.T[::-1])]
        return ordered


@dataclass(frozen=True)
class Outcome:
    """What continuous queries have told after a position."""

    table: pa.Table

    @classmethod
    def of(cls, outbox: SqliteOutbox, after: int) -> Outcome:
        return cls(pa.concat_tables(_chunks(outbox, after)))

    @property
    def rows(self) -> Rows:
        columns = (self.table[name].to_numpy().astype(np.int64) for name in ("group", "position", "value"))
        return Rows(*columns)

    def answers(self, groups: Iterable[int]) -> int:
        """How many are told to members of these groups, one group for each member."""
        numbers, counts = np.unique(self.rows.groups, return_counts=True)
        told = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        return sum(told.get(group, 0) for group in groups)

    def told(self, group: int) -> Counter[Told]:
        """Every answer to a group, with its terms."""
        chosen = self.table.filter(pa.array(self.table["group"].to_numpy() == group)).to_pylist()
        return Counter((row["position"], int(row["value"]), tuple(row["terms"][1:])) for row in chosen)


def groups_of(settings: Settings, workload: Workload, ids: Sequence[str]) -> dict[Question, int]:
    """The group of each question, as it was registered. Raises Disagreement where questions that differ share one."""
    registry = SqliteRegistry(settings.log, SystemClock())
    try:
        found = {change.key: query_from_change(change).group for change in registry.list(QUERY)}
    finally:
        registry.close()
    groups: dict[Question, int] = {}
    for question, id in zip(workload.questions, ids, strict=True):
        group = found[id]
        if group is None or groups.setdefault(question, group) != group:
            raise Disagreement(f"{question} is of group {group} and of {groups.get(question)}")
    if len(set(groups.values())) != len(groups):
        raise Disagreement("questions that differ are of one group")
    return groups


def expected(workload: Workload, located: Located, groups: Mapping[Question, int]) -> Rows:
    """All that is to be told, once for each group."""
    parts = [
        _located(number, each.constants, groups, each.newest, each.oldest)
        for number, each in answers(workload, located)
    ]
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def agree(found: Rows, right: Rows) -> None:
    """Raises Disagreement unless both hold the same answers, each as often."""
    if len(found) != len(right):
        raise Disagreement(f"{len(found)} answers were told, and there are {len(right)}")
    if (found.ordered != right.ordered).any():
        at = int(np.flatnonzero((found.ordered != right.ordered).any(axis=1))[0])
        raise Disagreement(
            f"(group, newest, oldest) {tuple(found.ordered[at].tolist())} was told where "
            f"{tuple(right.ordered[at].tolist())} is right"
        )


def sampled(workload: Workload, located: Located, groups: Mapping[Question, int], outcome: Outcome) -> dict[str, int]:
    """Holds some questions, most of which have answers, to pyoxigraph, term by term. Raises Disagreement."""
    asked = _sample(workload, groups, set(outcome.rows.groups.tolist()))
    count = 0
    for question in asked:
        right, told = solutions(workload, question, located), outcome.told(groups[question])
        if right != told:
            raise Disagreement(f"{question}: told and not right {told - right}, right and not told {right - told}")
        count += right.total()
    return {"questions": len(asked), "solutions": count}


def _sample(workload: Workload, groups: Mapping[Question, int], answered: set[int]) -> list[Question]:
    random = Random(9)
    every = sorted(groups, key=lambda each: (each.structure, each.constants))
    told = [each for each in every if groups[each] in answered]
    silent = [each for each in every if groups[each] not in answered]
    few = SAMPLE // 4
    return random.sample(told, min(len(told), SAMPLE - few)) + random.sample(silent, min(len(silent), few))


def _located(
    number: int, constants: Codes, groups: Mapping[Question, int], newest: Codes, oldest: Codes
) -> tuple[Codes, Codes, Codes]:
    distinct, inverse = np.unique(constants, axis=0, return_inverse=True)
    numbers = np.array([groups[Question(number, tuple(row))] for row in distinct.tolist()], np.int64)
    return numbers[inverse.reshape(-1)] if len(constants) else np.zeros(0, np.int64), newest, oldest


def _chunks(outbox: SqliteOutbox, after: int) -> Iterator[pa.Table]:
    yield MATCHES.empty_table()
    while chunks := outbox.read(after, _CHUNKS):
        yield from (chunk.matches for chunk in chunks)
        after = chunks[-1].upto
