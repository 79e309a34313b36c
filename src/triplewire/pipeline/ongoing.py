"""The `ongoing` query: events and the registry in, answers of continuous queries out."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.config import limits
from triplewire.model import MATCHES
from triplewire.ongoing.learners import Learner
from triplewire.ongoing.network.emitting import ADDRESSES
from triplewire.ongoing.network.stations import BUCKETS
from triplewire.ongoing.places import Turn
from triplewire.ongoing.rates import Rates
from triplewire.ongoing.structures import STRUCTURE
from triplewire.pipeline.checkpoints import Checkpoint
from triplewire.pipeline.joins import Report, Task, collected, joined
from triplewire.pipeline.moments import moments_source
from triplewire.pipeline.queries import Streaming, Work, start
from triplewire.pipeline.source import Batching
from triplewire.registry.ports import Change, Registry
from triplewire.registry.queries import QUERY

ONGOING = "ongoing"
"""The name of the query."""

KEPT_PROGRAMS = 3
"""Files with programs that stay: that of the batch at hand, and those of batches that may be done again."""


@dataclass(frozen=True)
class Course:
    """How it runs: where its state is, how many stations there are, and whether rows are spread by values."""

    path: Path
    stations: int
    spread: bool
    interval: float


def start_ongoing(work: Work, course: Course) -> StreamingQuery | None:
    """Every event against every continuous query; None as long as there are none."""
    queries = work.registry.list(QUERY, limit=1)
    if not queries:
        return None
    checkpoint = Checkpoint(work.checkpoints / ONGOING)
    outbox = cache(work.ports.open_ongoing)
    after = outbox("").head() or queries[0].position
    batching = Batching(after, work.cores, limits.ONGOING_EVENTS, limits.ONGOING_TEXT_BYTES)
    streaming = Streaming(ONGOING, checkpoint, batching, course.interval)
    books = Books(work, course)

    def deliver(entries: DataFrame, number: int) -> None:
        turn = Turn(number, checkpoint.upto(number), checkpoint.time(number))
        matches = books.joins(checkpoint.id, entries, turn)
        outbox(checkpoint.id).write(number, turn.upto, matches)
        work.ongoing.update(books.told(turn))

    return start(work, streaming, deliver, moments_source(work.ports.open_log, course.path / "due"))


class Books:
    """What the driver knows of continuous queries, batch by batch."""

    def __init__(self, work: Work, course: Course) -> None:
        self._work = work
        self._course = course
        self._orders = course.path / "orders.json"
        self._learner = Learner(Rates(orders=_read(self._orders)))
        self._figures = Figures()
        self._program: Path | None = None
        self._version = -1

    def joins(self, run: str, entries: DataFrame, turn: Turn) -> pa.Table:
        """What unbounded queries answer in a batch, as `MATCHES`."""
        self._learn(turn.upto)
        if not self._learner.unbounded:
            return MATCHES.empty_table()
        program, depth = self._written(turn)
        task = Task(program, self._course.path / "state" / run, self._course.stations, turn)
        matches, reports = collected(joined(entries, task, depth, self._work.costs))
        for report in reports:
            self._figures.take(report)
        return matches.sort_by("position")

    def told(self, turn: Turn) -> dict[str, object]:
        """For whoever looks after the process."""
        return {"position": turn.upto, "queries": len(self._learner.queries), **self._figures.told()}

    def _learn(self, upto: int) -> None:
        registry, learner = self._work.registry, self._learner
        if learner.version == 0:
            head = self._work.log.head()
            learner.learn([*registry.list(STRUCTURE), *registry.list(QUERY)], head)
        elif upto > learner.version:
            learner.learn(_changes(registry, learner.version, upto), upto)

    def _written(self, turn: Turn) -> tuple[Path, int]:
        """Where workers find what the batch goes by. Orders are written down before anything is done by them."""
        program = self._learner.program(spread=self._course.spread)
        if self._program is None or program.version != self._version:
            _replace(self._orders, json.dumps(self._learner.rates.orders).encode())
            self._program = self._course.path / "programs" / f"{turn.upto:016x}-{program.version}-{os.getpid()}"
            self._version = program.version
            _replace(self._program, pickle.dumps(program, protocol=5))
            _drop_oldest(self._program.parent)
        return self._program, program.depth


@dataclass
class Figures:
    """What stations said: the newest of how much they have, and the sum of what came to them."""

    rows: dict[int, int] = field(default_factory=dict)
    bytes: dict[int, int] = field(default_factory=dict)
    addresses: np.ndarray = field(default_factory=lambda: np.zeros(ADDRESSES, np.int64))

    def take(self, report: Report) -> None:
        self.rows[report.station], self.bytes[report.station] = report.rows, report.bytes
        self.addresses += report.addresses

    def told(self) -> dict[str, object]:
        loads = np.bincount(np.arange(ADDRESSES) % BUCKETS, self.addresses, BUCKETS)
        return {
            "state_rows": sum(self.rows.values()),
            "state_bytes": sum(self.bytes.values()),
            "loads": [int(each) for each in loads],
            "addresses": int(np.count_nonzero(self.addresses)),
        }


def _changes(registry: Registry, after: int, upto: int) -> list[Change]:
    return [each for each in registry.changes(after, upto) if each.kind in (QUERY, STRUCTURE)]


def _read(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole, or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}")
    with scratch.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    scratch.rename(path)


def _drop_oldest(path: Path) -> None:
    files = [each for each in path.iterdir() if not each.name.startswith(".")]
    for each in sorted(files, key=lambda each: each.stat().st_mtime_ns)[:-KEPT_PROGRAMS]:
        each.unlink(missing_ok=True)
