"""Chronicles: one sequence of events, wherever the log was cut, and also while it is being cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.matching.event_history import EventHistory, find_position
from triplewire.model import MATCHED_COLUMNS, START
from triplewire.storage.log.ports import LogRetention, MeasuredLog, Publication
from triplewire.testing import TWIN_KINDS, open_twin, publication


@dataclass
class Kept:
    """An archive: a copy of a log. A page ends early where it is told to."""

    entries: pa.Table
    complete: int
    most: int = 100

    def head(self) -> int:
        return self.complete

    def floor(self, stream: str | None = None) -> int:
        return START

    def find(self, event: str, stream: str | None = None) -> int | None:
        return None

    def page(
        self, after: int, upto: int, limit: int, predicates: Sequence[str] = (), stream: str | None = None
    ) -> tuple[pa.Table, int]:
        positions = self.entries["position"].to_pylist()
        rows = [row for row, at in enumerate(positions) if after < at <= upto][: min(limit, self.most)]
        found = self.entries.take(pa.array(rows, pa.int64())).select(MATCHED_COLUMNS)
        return found, positions[rows[-1]] if len(rows) == min(limit, self.most) else upto


@dataclass
class Cutting:
    """A log that lets everything go after so many reads."""

    log: MeasuredLog
    reads: int
    _done: int = field(default=0)

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        return self.log.append(publications)

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        found = self.log.read(after, upto, limit)
        self._done += 1
        if self._done == self.reads:
            self.log.trim(LogRetention(size=0), before=100)
        return found

    def page_end(self, after: int, through: int, size: int) -> int:
        return self.log.page_end(after, through, size)

    def begin(self) -> int:
        return self.log.begin()

    def floor(self, stream: str | None = None) -> int:
        return self.log.floor(stream)

    def head(self) -> int:
        return self.log.head()

    def trim(self, retention: LogRetention, before: int) -> int:
        return self.log.trim(retention, before)


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(0, 14), st.integers(1, 5), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_the_whole_sequence_is_read_wherever_the_log_begins(
    events: list[bool], before: int, limit: int, most: int
) -> None:
    with open_twin("memory") as stores:
        for number, event in enumerate(events):
            if event:
                stores.log.append([publication(number)])
            else:
                stores.registry.put([("other", "x", {})])
        whole, head = stores.log.read(0, 100, 100), stores.log.head()
        stores.log.trim(LogRetention(size=0), before=before)
        chronicle = EventHistory(stores.log, Kept(whole, head, most))
        for after in range(head + 1):
            expected = [row for row in whole.select(MATCHED_COLUMNS).to_pylist() if row["position"] > after]
            assert chronicle.read(after, head, limit).to_pylist() == expected[:limit]


@pytest.mark.parametrize("kind", TWIN_KINDS)
@pytest.mark.parametrize("reads", range(1, 8))
def test_what_is_let_go_while_it_is_read_is_not_missed(kind: str, reads: int) -> None:
    with open_twin(kind) as stores:
        stores.log.append([publication(*range(6))])
        archive = Kept(stores.log.read(0, 100, 100), 6)
        found = EventHistory(Cutting(stores.log, reads), archive).read(0, 6, 4)
    assert found["position"].to_pylist() == [1, 2, 3, 4]


def test_times_are_found_beyond_the_log() -> None:
    with open_twin("memory") as stores:
        for number in range(8):
            stores.clock.advance(1)
            stores.log.append([publication(number)])
        whole, now = stores.log.read(0, 100, 100), stores.clock.now()
        stores.log.trim(LogRetention(size=0), before=6)
        chronicle = EventHistory(stores.log, Kept(whole, 8, most=2))
        found = [find_position(chronicle, now - 1_000_000 * ago, 8) for ago in range(9)]
    assert found == [7, 6, 5, 4, 3, 2, 1, 0, 0]


def test_what_neither_has_is_told() -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(*range(6))])
        kept = Kept(stores.log.read(0, 3, 3), 3)
        stores.log.trim(LogRetention(size=0), before=6)
        chronicle = EventHistory(stores.log, kept)
        first = chronicle.page(1, 6, 10)
        second = chronicle.page(first.position, 6, 10)
    assert (first.entries["position"].to_pylist(), first.position) == ([2, 3], 3)
    assert (second.entries["position"].to_pylist(), second.after, second.begin) == ([6], 3, 6)


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_a_page_of_the_log_is_cut_by_the_size_of_its_text(kind: str) -> None:
    with open_twin(kind) as stores:
        stores.log.append([publication(*range(6))])
        chronicle = EventHistory(stores.log, size=300)
        pages, after = [], 0
        while after < 6:
            page = chronicle.page(after, 6, 10)
            pages.append(page.entries["position"].to_pylist())
            after = page.position
        assert pages == [[1, 2], [3, 4], [5, 6]]
        assert chronicle.read(0, 6, 10)["position"].to_pylist() == [1, 2, 3, 4, 5, 6]
