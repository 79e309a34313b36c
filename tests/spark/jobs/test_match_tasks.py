"""Several tasks deliver the same sequence as one, whatever happens to them.

The log, the registry, the index and the outbox are real and on the disk; only Spark is left out. Each example is a list
of moves: events and changes of the registry come, tasks step in any order, die before and after a write, and are
started again, as many or more or fewer of them, while those that they replace go on as zombies.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.matching.filters.worlds import EX, constraint, event, loaded
from triplewire.config import Settings
from triplewire.http.formats.notifications import MatchSelector, group_matches
from triplewire.matching.filters import document_query
from triplewire.matching.index import Membership
from triplewire.matching.index.memberships import shape_memberships
from triplewire.matching.shapes import lift
from triplewire.model import END, START, Event, Kind, Subscription
from triplewire.model.clock import ManualClock
from triplewire.model.errors import Conflict
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.resident import MatchTask, move_to_slow_lane
from triplewire.sparql import parse_query
from triplewire.storage.log.ports import Publication
from triplewire.storage.outbox import OutboxLane, OutboxPart, PartProgress, SqliteOutbox
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value
from triplewire.testing import Crash

FAST, SLOW = OutboxLane.FAST, OutboxLane.SLOW
BLOCK, BLOCK_EVENTS, AHEAD = 3, 4, 10
"""So small that a few events are many blocks, and several steps."""

EXPENSIVE = parse_query(f"SELECT * {{ ?o <{EX}value> ?v OPTIONAL {{ ?o <{EX}none> ?n }} }}")
QUERIES = (
    parse_query(f"SELECT * {{ ?o <{EX}value> ?v }}"),
    parse_query(f"SELECT * {{ ?o <{EX}value> ?v FILTER(?v > 2) }}"),
    parse_query(f"SELECT * {{ ?o <{EX}value> ?v FILTER(?v > 4) }}"),
    EXPENSIVE,
    document_query({"prefixes": {"ex": EX}, "filter": [constraint("ex:kind", "@<", "ex:Animal")]}),
)
ONTOLOGIES = ("ex:Cat rdfs:subClassOf ex:Animal .", "ex:Dog rdfs:subClassOf ex:Animal .")

Delivered = dict[tuple[OutboxLane, int], list[tuple[int, list[Any]]]]
"""Positions, with solutions, by lane and subscription, in the order in which they are delivered."""


@pytest.fixture(autouse=True)
def _unfreeze() -> Iterator[None]:
    yield
    gc.unfreeze()


class InterruptedOutbox:
    """An outbox before whose writes something else happens, and after which the writer may die."""

    def __init__(
        self, path: Path, before: deque[Callable[[], None]], after: deque[Callable[[], None]], run: str
    ) -> None:
        self._outbox = SqliteOutbox(path, run)
        self._before = before
        self._after = after

    def write_part(self, part: OutboxPart, after: int, position: int, matches: pa.Table) -> PartProgress:
        if self._before:
            self._before.popleft()()
        progress = self._outbox.write_part(part, after, position, matches)
        if self._after:
            self._after.popleft()()
        return progress

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever an outbox has
        return getattr(self._outbox, name)


@dataclass
class Tasks:
    """The tasks of a lane, and those that were replaced and do not know it."""

    lane: OutboxLane
    after: int
    running: list[tuple[OutboxPart, MatchTask]] = field(default_factory=list)
    zombies: list[MatchTask] = field(default_factory=list)


@dataclass(frozen=True)
class Made:
    """A subscription as edges know it."""

    since: int
    membership: Membership | None
    shape: str


class World:
    """A broker without Spark and without HTTP."""

    def __init__(self, folder: Path) -> None:
        self.ports = pipeline_ports(Settings(data=folder))
        self.before, self.after = deque[Callable[[], None]](), deque[Callable[[], None]]()
        opener = partial(InterruptedOutbox, folder / "outbox.db", self.before, self.after)
        self.interrupted = replace(self.ports, open_outbox=opener)
        self.log, self.registry, self.outbox = (
            self.ports.open_log(),
            self.ports.open_registry(),
            self.ports.open_outbox(""),
        )
        self.events = 0
        self.made: list[Made] = []
        self.until: dict[int, int] = {}
        self.moved: dict[str, int] = {}
        self.lanes = [Tasks(FAST, 0)]
        self.edge = Edge(self)
        self.divide(self.lanes[0], 1)

    def play(self, move: str, number: int) -> None:
        tasks = self.lanes[number % len(self.lanes)]
        match move:
            case "publish":
                self.log.append([Publication("test", [self.make_event() for _ in range(1 + number)])])
            case "subscribe":
                self.subscribe(number % len(QUERIES))
            case "unsubscribe":
                self.unsubscribe(number)
            case "ontology":
                change = loaded(ONTOLOGIES[number % len(ONTOLOGIES)])
                self.registry.put([(ONTOLOGY, "test", change.value)])
            case "lane":
                self.move_lane()
            case "step":
                self.step(tasks, number % len(tasks.running))
            case "steps":
                for each in range(len(tasks.running)):
                    self.step(tasks, each)
            case "zombie":
                self.step_zombie(tasks, number)
            case "restart":
                self.restart(tasks, number % len(tasks.running))
            case "divide":
                self.divide(tasks, 1 + number % 3)
            case "die":
                (self.before if number % 2 else self.after).append(die)
            case "late":
                self.before.append(partial(self.overtake, tasks, number))
            case "edge":
                self.edge.step(tasks.lane, 1 + number % 3)
            case "merge":
                self.outbox.merge(self.log.head())

    def make_event(self) -> Event:
        self.events += 1
        kind = ("Cat", "Dog")[self.events % 2]
        return event(f"ex:o ex:value {self.events % 7} ; ex:kind ex:{kind} .", f"{EX}e{self.events}")

    def subscribe(self, number: int) -> None:
        lifted, id = lift(QUERIES[number], solutions=number != 4), f"s{len(self.made)}"
        made = Subscription(id, "", Kind.SIGNAL, lifted.shape.key, lifted.constants)
        shape = (SHAPE, lifted.shape.key, lifted.shape.to_value())
        *_, since = self.registry.put([shape, (SUBSCRIPTION, id, subscription_to_value(made))])
        membership = shape_memberships(lifted.shape).of(lifted.constants)
        self.made.append(Made(since, membership, lifted.shape.key))

    def unsubscribe(self, number: int) -> None:
        if number < len(self.made):
            (position,) = self.registry.put([(SUBSCRIPTION, f"s{number}", None)])
            self.until.setdefault(self.made[number].since, position)

    def move_lane(self) -> None:
        shape = lift(EXPENSIVE, solutions=True).shape.key
        if len(self.lanes) > 1 or self.registry.get(SHAPE, shape) is None:
            return
        move_to_slow_lane(self.registry, {shape: 0.25})
        self.moved[shape] = position = self.log.head()
        self.lanes.append(Tasks(SLOW, position))
        self.divide(self.lanes[1], 2)

    def divide(self, tasks: Tasks, count: int) -> None:
        """The driver starts the job again. Its old tasks do not know it."""
        tasks.zombies += [each for _, each in tasks.running]
        parts = self.outbox.divide(tasks.lane, count, tasks.after, BLOCK)
        tasks.running = [(part, self.open_task(part)) for part in parts]

    def restart(self, tasks: Tasks, number: int) -> None:
        """Spark starts a task again. The old one may go on."""
        part, old = tasks.running[number]
        tasks.zombies.append(old)
        tasks.running[number] = (part, self.open_task(part))

    def open_task(self, part: OutboxPart) -> MatchTask:
        return MatchTask(self.interrupted, part, ManualClock(), block_events=BLOCK_EVENTS, ahead=AHEAD)

    def step(self, tasks: Tasks, number: int) -> bool:
        if number >= len(tasks.running):
            return False
        _, task = tasks.running[number]
        try:
            return task.step()
        except Crash:
            tasks.running[number] = (tasks.running[number][0], self.open_task(tasks.running[number][0]))
        except Conflict:
            # The lane was divided while it was matching.
            assert all(each is not task for _, each in tasks.running)
        return True

    def step_zombie(self, tasks: Tasks, number: int) -> None:
        if tasks.zombies:
            zombie = tasks.zombies.pop(number % len(tasks.zombies))
            with suppress(Crash, Conflict):
                zombie.step()
                tasks.zombies.append(zombie)

    def overtake(self, tasks: Tasks, number: int) -> None:
        """Between the matching and the write of a task, the job is started again, or the same parts are written."""
        if number % 2:
            self.divide(tasks, 1 + number % 3)
        for each in range(len(tasks.running)):
            self.restart(tasks, each)
            self.step(tasks, each)

    def finish(self) -> None:
        """Let everything be matched and delivered, without further accidents."""
        self.before.clear()
        self.after.clear()
        for tasks in self.lanes:
            while any(self.step(tasks, each) for each in range(len(tasks.running))):
                pass
            self.edge.step(tasks.lane, 100)

    def selectors(self, lane: OutboxLane) -> list[MatchSelector]:
        found = []
        for each in self.made:
            moved, until = self.moved.get(each.shape, END), self.until.get(each.since, END)
            after, until = (moved, until) if lane is SLOW else (START, min(until, moved + 1))
            found.append(MatchSelector(each.since, until, each.membership, after))
        return found

    def match_alone(self, folder: Path) -> Delivered:
        """Return what one task delivers that matches everything at once, with an index of its own."""
        open_outbox = partial(SqliteOutbox, folder / "alone.db")
        ports = replace(self.ports, open_outbox=open_outbox, index_files=folder / "alone")
        edge = Edge(self, open_outbox())
        for tasks in self.lanes:
            (part,) = open_outbox().divide(tasks.lane, 1, tasks.after)
            task = MatchTask(ports, part, ManualClock())
            while task.step():
                pass
            edge.step(tasks.lane, 100)
        return edge.delivered


class Edge:
    """Delivers the chunks of an outbox, as `MatchSource` does."""

    def __init__(self, world: World, outbox: SqliteOutbox | None = None) -> None:
        self.world = world
        self.outbox = outbox or world.outbox
        self.delivered: Delivered = {}
        self.cursors = {FAST: 0, SLOW: 0}

    def step(self, lane: OutboxLane, limit: int) -> None:
        head = self.outbox.head(lane)
        while self.cursors[lane] < head and (chunks := self.outbox.read(self.cursors[lane], limit, lane)):
            self.deliver(lane, pa.concat_tables([each.matches for each in chunks]))
            self.cursors[lane] = chunks[-1].position
        self.cursors[lane] = max(self.cursors[lane], head)

    def deliver(self, lane: OutboxLane, matches: pa.Table) -> None:
        for group in group_matches(matches, self.world.selectors(lane)):
            told = self.delivered.setdefault((lane, group.since), [])
            for position, rows in zip(group.positions, group.rows, strict=True):
                # A chunk that was merged is read again by an edge that was in the middle of it.
                if position > self.cursors[lane]:
                    found = [matches.slice(row, 1).select(["solutions", "terms"]).to_pylist()[0] for row in rows]
                    told.append((position, sorted(found, key=str)))


def die() -> None:
    raise Crash


MOVES = st.lists(
    st.tuples(
        st.sampled_from(
            ["publish"] * 4
            + ["step"] * 6
            + ["steps", "edge", "zombie"] * 2
            + ["subscribe", "unsubscribe", "ontology", "lane", "restart", "divide", "die", "late", "merge"]
        ),
        st.integers(0, 11),
    ),
    max_size=50,
)
BUSY = [("publish", 11), ("step", 0)] * 3


@settings(max_examples=20, deadline=None)
@given(MOVES)
@example([("divide", 1), *BUSY, ("die", 0), ("step", 1), ("die", 1), ("steps", 0), ("edge", 0), ("merge", 0)])
@example([("divide", 2), *BUSY, ("step", 1), ("late", 1), ("step", 2), ("zombie", 0), ("zombie", 1), ("edge", 2)])
@example([("divide", 1), *BUSY, ("divide", 2), ("zombie", 1), ("zombie", 0), ("edge", 0), ("divide", 0), *BUSY])
@example([("divide", 1), ("ontology", 0), *BUSY, ("ontology", 1), ("publish", 4), ("late", 2), ("step", 0)])
@example([*BUSY, ("restart", 0), ("step", 0), ("step", 0), ("zombie", 0), ("restart", 0), ("step", 0)])
@example([("divide", 1), *[("steps", 0)] * 4, ("publish", 11), *[("step", 1)] * 3, ("merge", 0), ("edge", 0)])
def test_any_number_of_tasks_delivers_what_one_does(moves: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        for number in range(len(QUERIES)):
            world.subscribe(number)
        for move in moves:
            world.play(*move)
        world.finish()
        assert world.outbox.head() == world.log.head()
        assert world.edge.delivered == world.match_alone(Path(folder))


def test_all_tasks_take_part_and_no_task_runs_away(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.subscribe(0)
    world.divide(world.lanes[0], 3)
    world.play("publish", 59)
    (first, _), *_ = world.lanes[0].running
    while world.step(world.lanes[0], 0):
        pass
    # It has done its second block, which is the fourth, and not its third, which is the seventh.
    assert (world.outbox.head(), world.outbox.progress(first).head) == (BLOCK, 6 * BLOCK)
    world.finish()
    assert [task.report()["events"] > 10 for _, task in world.lanes[0].running] == [True] * 3
    assert world.edge.delivered == world.match_alone(tmp_path)
    ((_, told),) = world.edge.delivered.items()
    assert [position for position, _ in told] == [*range(3, 63)]
