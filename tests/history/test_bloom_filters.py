"""Bloom filters: a file that was asked for a name, and does not have it, is not opened for it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.lakes import PREFIXES, E, asked, triple
from tests.storage.lake.test_delta import entries
from triplewire.history.duckdb import DuckDbEngine, IndexLimits
from triplewire.history.pruning import build_filter, may_contain
from triplewire.model import Event
from triplewire.sparql import compile_query, parse_query
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch, Snapshot

FILES, EVENTS = 6, 60
EVENT = f"SELECT * {{ GRAPH <{E}event/31> {{ ?s ?p ?o }} }}"
THING = "SELECT * { :s31 ?p ?o }"
SEVERAL = "SELECT * { VALUES ?s { :s31 :s32 :s07 } ?s :v ?o }"
NOBODY = f"SELECT * {{ GRAPH <{E}event/31x> {{ ?s ?p ?o }} }}"


@pytest.fixture
def lake(tmp_path: Path) -> Snapshot:
    """Every sixth event lies in a file, so that each file has nearly the whole range and a sixth of the names."""
    numbers = [range(file, EVENTS, FILES) for file in range(FILES)]
    events = [[Event(f"{E}event/{n:02}", triple(f"s{n:02}", "v", f"o{n}")) for n in some] for some in numbers]
    files = [FileWriter(tmp_path).write(entries(*some, first=1 + 10 * file)) for file, some in enumerate(events)]
    made = DeltaLake(tmp_path)
    made.commit(CommitBatch("q", 1, EVENTS), files)
    return made.files()


def filtering(lake: Snapshot, limits: IndexLimits) -> DuckDbEngine:
    """An engine that reads files and uses filters however few these are."""
    return DuckDbEngine(Path(lake.table), copies=False, limits=replace(limits, filter_files=1))


@pytest.fixture
def duck(lake: Snapshot) -> Iterator[DuckDbEngine]:
    with closing(filtering(lake, IndexLimits())) as made:
        yield made


def opened(duck: DuckDbEngine, lake: Snapshot, text: str) -> int:
    compiled = compile_query(parse_query(PREFIXES + text), "duckdb", duck.statistics(lake))
    return len(duck.scanned(compiled, lake).files)


def prepare(duck: DuckDbEngine, lake: Snapshot) -> int:
    return sum(1 for _ in iter(lambda: duck.prepare(lake), False))


@pytest.mark.parametrize(("text", "files"), [(EVENT, 1), (THING, 1), (SEVERAL, 2), (NOBODY, 0)])
def test_what_was_asked_for_by_name_is_found_at_once_the_next_time(
    duck: DuckDbEngine, lake: Snapshot, text: str, files: int
) -> None:
    prepare(duck, lake)
    first = asked(duck, lake, text)
    assert opened(duck, lake, text) > 4
    assert prepare(duck, lake) >= 5
    assert opened(duck, lake, text) == files
    assert asked(duck, lake, text) == first
    assert prepare(duck, lake) == 0


def test_nothing_is_looked_at_for_what_is_not_a_name(duck: DuckDbEngine, lake: Snapshot) -> None:
    prepare(duck, lake)
    for text in ("SELECT * { ?s :v ?o }", "SELECT * { ?s :v :o31 }", "SELECT * { ?s ?p ?o FILTER(STR(?s) > 'a') }"):
        asked(duck, lake, text)
    assert prepare(duck, lake) == 0


def test_what_takes_too_much_room_is_forgotten_the_oldest_first(lake: Snapshot) -> None:
    duck = filtering(lake, IndexLimits(filter_bytes=3 * 32))
    asked(duck, lake, EVENT)
    prepare(duck, lake)
    assert opened(duck, lake, EVENT) == FILES - 3


def test_of_too_many_names_none_is_looked_up(lake: Snapshot) -> None:
    duck = filtering(lake, IndexLimits(filter_terms=2))
    prepare(duck, lake)
    asked(duck, lake, SEVERAL)
    assert prepare(duck, lake) == 0


def test_a_file_that_has_gone_is_passed_over(duck: DuckDbEngine, lake: Snapshot) -> None:
    prepare(duck, lake)
    opened(duck, lake, EVENT)
    for path in lake.paths[:5]:
        Path(path).unlink()
    assert prepare(duck, lake) == FILES
    assert opened(duck, lake, EVENT) >= 5


@given(st.sets(st.integers(0, 2**64 - 1), max_size=200), st.integers(0, 2**64 - 1))
def test_no_name_is_missed(names: set[int], other: int) -> None:
    made = build_filter(np.array(sorted(names), np.uint64))
    assert all(may_contain(made, name) for name in names)
    if not names:
        assert not may_contain(made, other)


def test_few_are_taken_for_others() -> None:
    drawn = np.random.default_rng(1).integers(0, 2**64, 20_000, np.uint64)
    made = build_filter(drawn[:8_193])
    assert sum(may_contain(made, int(each)) for each in drawn[10_000:]) < 0.06 * 10_000
