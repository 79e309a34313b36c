"""The driver's books: whatever happens between batches, answers are those of an engine that we did not write."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.continuous.join_network.runs import query_of
from tests.continuous.oracle import Asked, Bindings, Key, Published, Triple, expected
from tests.continuous.strategies import quads
from tests.spark.jobs.frames import Account, Frame, one_process
from triplewire.continuous.batch_planner import ReorderRules
from triplewire.continuous.state import BatchContext, StateChangelog
from triplewire.continuous.windows.static_data import NoStaticData
from triplewire.model import END, ErasureScope, Event, LimitReached
from triplewire.model.subscriptions import ContinuousQuery, QueryState
from triplewire.spark.jobs import join_stage, window_stage
from triplewire.spark.jobs.continuous import ContinuousBatch, ContinuousDriver, ContinuousOptions
from triplewire.spark.jobs.source import PositionRange, frame_of_ranges
from triplewire.spark.jobs.streaming import JobContext
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.erasure import ErasureReceipt, request_entries
from triplewire.storage.registry.subscriptions import QUERY, query_from_change, query_to_value, request_renewal
from triplewire.testing import open_twin

EX = "http://example.org/"
CHAIN = Asked((("?s", f"<{EX}knows>", "?t"), ("?t", f"<{EX}in>", "?u"), ("?u", f"<{EX}says>", "?v")))
ASKED = [
    replace(CHAIN, patterns=CHAIN.patterns[:2]),
    CHAIN,
    replace(CHAIN, patterns=CHAIN.patterns[:2], told=("s",), distinct=True),
    replace(CHAIN, patterns=CHAIN.patterns[:2], span=3),
]
RUN = "run"
PATIENT = ReorderRules(batches=1, counted=END)
"""No order is decided again."""
EAGER = ReorderRules(batches=1, counted=0, times=1.0)
"""An order is decided again whenever another is better."""


class World:
    """Log, registry and books; batches end where they are told to."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch, stations: int = 2, **limits: Any) -> None:  # noqa: ANN401
        self._stores = open_twin("memory")
        stores = self._stores.__enter__()
        self.log, self.registry, self.clock = stores.log, stores.registry, stores.clock
        ports = SimpleNamespace(open_log=lambda: self.log, open_archive=lambda: None, open_static_data=NoStaticData)
        costs = SimpleNamespace(continuous=Account())
        self._work = cast(
            "JobContext",
            SimpleNamespace(
                spark=one_process(patch), ports=ports, registry=self.registry, log=self.log, costs=costs, continuous={}
            ),
        )
        self._options = ContinuousOptions(path, stations, spread=True, interval=0.1, **limits)
        self.driver = ContinuousDriver(self._work, self._options)
        self.published: list[Published] = []
        self.rows: list[dict[str, object]] = []
        self.events: list[Event] = []
        self.queries: list[ContinuousQuery] = []
        self.begins: list[int] = []
        self.batch = self.upto = 0

    def register(self, wish: Asked, begins: int | None = None) -> None:
        query, structure = query_of(wish, str(len(self.queries)))
        if begins is not None:
            query = replace(query, begins=begins, group=cast("int", query.group) + 1 + len(self.queries))
        assert structure.value is not None
        self.registry.put([(structure.kind, structure.key, structure.value), (QUERY, query.id, query_to_value(query))])
        made = self.registry.get(QUERY, query.id)
        assert made is not None
        self.queries.append(query_from_change(made))
        self.begins.append(self.queries[-1].since if begins is None else begins - 1)

    def publish(self, *chosen: Triple) -> None:
        event = Event(f"urn:e:{len(self.published)}", "\n".join(map("\t".join, chosen)))
        ((position,),) = self.log.append([Publication("s", [event])])
        self.published.append(Published(position, chosen))

    def run(self, attempts: str = "1") -> None:
        """A batch with all that is new. `attempts` says how many tasks read it in each attempt, of which only the last
        comes to its end; all is lost at an `x`."""
        start, turn = self.upto, BatchContext(self.batch, self.log.head(), self.clock.now())
        if turn.position == start:
            return
        for attempt in attempts:
            if attempt == "x":
                self.restart()
                continue
            tasks = int(attempt)
            bounds = [start + (turn.position - start) * number // tasks for number in range(tasks + 1)]
            ranges = [PositionRange(*each) for each in pairwise(bounds)]
            events = frame_of_ranges(self._work.spark, self._work.ports.open_log, ranges)
            batch = ContinuousBatch(RUN, events, turn, start)
            outcome = self.driver.run_batch(batch)
        self.driver.finish_batch(batch)
        self.events += [event for _, event in outcome.events]
        self.rows += outcome.matches.to_pylist()
        self.batch, self.upto = self.batch + 1, turn.position

    def restart(self) -> None:
        """The driver and all workers are lost."""
        forget()
        self.driver = ContinuousDriver(self._work, self._options)

    def change_rules(self, rules: ReorderRules) -> None:
        """The driver is lost, and comes back with other rules; workers live on."""
        self._options = replace(self._options, reorder=rules)
        self.driver = ContinuousDriver(self._work, self._options)

    def told(self, number: int) -> Counter[Bindings]:
        """What a query was told in all, wherever."""
        query, found = self.queries[number], Counter[Bindings]()
        for row in self.rows:
            if row["group"] == query.group and cast("float", row["value"]) > self.begins[number]:
                terms = zip(query.variables, cast("list[str]", row["terms"])[1:], strict=True)
                found[tuple(sorted(terms))] += 1
        return found

    def right(self, number: int, wish: Asked) -> Counter[Bindings]:
        later = [each for each in self.published if each.position > self.begins[number]]
        found: Counter[Key] = expected([wish], later)
        return Counter({key: sum(count for (_, _, each), count in found.items() if each == key) for _, _, key in found})


def forget() -> None:
    """What workers had."""
    for each in (join_stage._partitions, join_stage._programs, window_stage._partitions, window_stage._queries):
        each.clear()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(tmp_path, monkeypatch)
    forget()


KNOWS, IN, SAYS, OTHER = (
    (f"<{EX}{one}>", f"<{EX}{how}>", f"<{EX}{other}>")
    for one, how, other in (("a", "knows", "b"), ("b", "in", "c"), ("c", "says", "a"), ("c", "knows", "b"))
)
steps = st.one_of(
    st.lists(st.sampled_from([KNOWS, IN, SAYS, OTHER]) | quads, min_size=1, max_size=3, unique=True),
    st.sampled_from(["1", "2", "11", "12", "21", "22", "1x2", "2x1", "1x1", "restart", "renew", "reorder"]),
    st.tuples(st.integers(0, len(ASKED) - 1), st.booleans()),
)


# A set is told of what has all its pieces after its query, though others were there.
@example([[KNOWS], (2, False), [KNOWS, IN]], 1, PATIENT)
# A query that looks back comes last in a batch in which an order is decided again.
@example([[KNOWS], "1", "reorder", [IN], (0, True)], 1, PATIENT)
@example([[KNOWS], "1", [IN], (0, True)], 1, EAGER)
# One attempt writes all rounds of a partition as one file, the other each for itself: nothing counts twice.
@example([[KNOWS, IN], "1x2", "restart", [KNOWS]], 2, PATIENT)
@example([[KNOWS, IN], "2x1", "restart", [KNOWS]], 2, PATIENT)
@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=5, max_size=30), st.sampled_from([1, 2]), st.sampled_from([PATIENT, EAGER]))
def test_answers_are_the_same_whatever_comes_between(
    chosen: Sequence[object], stations: int, rules: ReorderRules
) -> None:
    """Queries that come and look back, replayed batches, restarts, state that is rebuilt, and orders that are decided
    again."""
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        world, wishes = World(Path(directory), patch, stations, reorder=rules), list[Asked]()
        world.register(ASKED[0])
        wishes.append(ASKED[0])
        for step in [*chosen, "1"]:
            _take(world, wishes, step)
        for number, wish in enumerate(wishes):
            assert world.told(number) == world.right(number, wish), (number, wish)
    forget()


def _take(world: World, wishes: list[Asked], step: object) -> None:
    match step:
        case "restart":
            world.restart()
        case "renew":
            request_renewal(world.registry)
        case "reorder":
            world.change_rules(EAGER)
        case str():
            world.run(step)
        case (int() as number, bool() as back):
            wishes.append(ASKED[number])
            world.register(ASKED[number], 1 if back and not ASKED[number].distinct else None)
        case list():
            world.publish(*step)


def chained(name: str) -> list[Triple]:
    return [(f"<{EX}{name}>", f"<{EX}knows>", f"<{EX}t>"), (f"<{EX}t>", f"<{EX}in>", f"<{EX}u>")]


def test_what_is_made_anew_lies_elsewhere_and_the_old_goes(world: World, tmp_path: Path) -> None:
    world.register(ASKED[0])
    first, second = chained("a")
    world.publish(first)
    world.run()
    assert [each.name for each in (tmp_path / "state").iterdir()] == [RUN]
    request_renewal(world.registry)
    made = world.log.head()
    world.run("12")
    assert [each.name for each in (tmp_path / "state").iterdir() if any(each.iterdir())] == [f"{RUN}@{made}"]
    assert json.loads((tmp_path / "decisions.json").read_text())["rebuilt_at"] == made
    world.restart()
    world.publish(second)
    world.run()
    assert world.told(0) == world.right(0, ASKED[0])
    assert world.told(0).total() == 1


def test_many_small_batches_leave_few_files(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_stage, "SNAPSHOT_BYTES", 4 * join_stage.FILE_BYTES)
    monkeypatch.setattr(join_stage, "MEASURED_BYTES", join_stage.FILE_BYTES)
    world.register(ASKED[0])
    world.register(ASKED[3])
    for number in range(30):
        road = f"<{EX}t{number // 2}>"
        world.publish((road, f"<{EX}in>", f"<{EX}u>") if number % 2 else (f"<{EX}a>", f"<{EX}knows>", road))
        world.run("1" if number % 3 else "2")
        if number % 10 == 5:
            world.restart()
    for partition in range(2):
        assert 0 < len(list((tmp_path / "state" / RUN / str(partition)).iterdir())) <= 10
    assert world.told(0) == world.right(0, ASKED[0])
    assert world.told(1) == world.right(1, ASKED[3])


def test_a_set_that_remembers_too_much_is_suspended_and_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, distinct_limit=2)
    world.register(ASKED[2])
    world.register(ASKED[0])
    for name in "abc":
        world.publish(*chained(name))
    world.run()
    assert _state(world, 0) is QueryState.SUSPENDED
    assert _state(world, 1) is QueryState.ON
    (row,) = [each for each in world.rows if each["limit"] is not None]
    assert (row["subscription"], row["limit"]) == (world.queries[0].since, LimitReached.STATE)
    world.publish(*chained("d"))
    world.run()
    assert world.told(0).total() == 3
    assert world.told(1) == world.right(1, ASKED[0])
    forget()


def test_a_query_at_which_too_much_waits_is_suspended_and_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, row_limit=3)
    world.register(ASKED[0])
    for name in "abcdefgh":
        world.publish(chained(name)[0])
    world.run()
    assert _state(world, 0) is QueryState.SUSPENDED
    (row,) = world.rows
    assert (row["position"], row["limit"]) == (world.upto, LimitReached.STATE)
    forget()


@pytest.mark.parametrize("restarted", [False, True])
def test_windows_that_are_made_anew_have_nothing_of_what_is_erased(
    restarted: bool, world: World, tmp_path: Path
) -> None:
    window = "REGISTER RSTREAM <out> AS SELECT ?s FROM NAMED WINDOW <urn:w> ON <s> [RANGE PT10S STEP PT10S]"
    text = f"{window} WHERE {{ WINDOW <urn:w> {{ ?s <{EX}knows> ?t }} }}"
    query = ContinuousQuery("w", text, into="out", variables=("s",), created=world.clock.now())
    world.registry.put([(QUERY, "w", query_to_value(query))])
    for name in ("secret", "known"):
        world.publish(chained(name)[0])
    world.run()
    assert _kept(tmp_path, "secret")
    receipt = ErasureReceipt("x", ErasureScope.EVENT, "", world.clock.now())
    world.registry.put(request_entries(receipt, "urn:e:0"))
    request_renewal(world.registry)
    world.run("21")
    assert not _kept(tmp_path, "secret")
    assert _kept(tmp_path, "known")
    if restarted:
        world.restart()
    world.clock.advance(20)
    request_renewal(world.registry)
    world.run()
    (event,) = world.events
    assert "known" in event.text
    assert "secret" not in event.text


def test_no_file_of_a_run_is_a_pickle(world: World, tmp_path: Path) -> None:
    """A pickle names classes: renaming one would make state unreadable, and whoever writes a file could run code."""
    for asked in ASKED:
        world.register(asked)
    window = "REGISTER RSTREAM <out> AS SELECT ?s FROM NAMED WINDOW <urn:w> ON <s> [RANGE PT10S STEP PT10S]"
    text = f"{window} WHERE {{ WINDOW <urn:w> {{ ?s <{EX}knows> ?t }} }}"
    query = ContinuousQuery("w", text, into="out", variables=("s",), created=world.clock.now())
    world.registry.put([(QUERY, "w", query_to_value(query))])
    for batch in range(2):
        world.publish(*chained("abc"[batch]))
        world.run()
    request_renewal(world.registry)
    world.run()
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert {each.relative_to(tmp_path).parts[0] for each in files} == {
        "decisions.json",
        "due",
        "programs",
        "state",
        "windows",
    }
    protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
    headers = tuple(pickle.PROTO + bytes([number]) for number in protocols)
    assert not [each for each in files if each.read_bytes().startswith(headers)]


def _kept(path: Path, name: str) -> list[Path]:
    """The ledgers that have it."""
    tables = {each: StateChangelog(each.parent).read(_moment(each)) for each in path.rglob("*.arrow")}
    return [each for each, table in tables.items() if f"{EX}{name}>" in str(table.to_pydict())]


def _moment(path: Path) -> tuple[int, int]:
    batch, number = path.stem.split("-")
    return int(batch), int(number)


def _state(world: World, number: int) -> QueryState:
    found = world.registry.get(QUERY, str(number))
    assert found is not None
    return query_from_change(found).state


def test_a_frame_of_tests_moves_rows_as_one_of_spark_does() -> None:
    batch, seen = pa.record_batch({"partition": [1, 0, 1], "n": [1, 2, 3]}), list[tuple[int, int]]()

    def see(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
        seen.append((Frame.task, sum(each.num_rows for each in batches)))
        return []

    Frame([batch], [batch]).repartitionById(2, "partition").mapInArrow(see, None)
    assert seen == [(0, 2), (1, 4)]
