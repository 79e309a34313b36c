"""The questions of `bench hour`: about the first minute, so that their answers stay the same however much comes
after.

They are answered from files alone. A process of queries holds a lake in memory for as long as it is small; a lake at
1,000 events a second is too large for that after five minutes, and before and after could not be compared.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median

from triplewire.bench.history_data import MADE_BY, RESULT, RESULT_TIME, Day, moment
from triplewire.bench.history_reads import read
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.executor import HistoryExecutor
from triplewire.model.errors import TriplewireError
from triplewire.storage.lake.ports import LakeReader, Snapshot, VersionOrTime
from triplewire.storage.lake.read_counts import ReadCounter

_TIMES = 5
"""How many constants of a kind are asked for."""
_FIRST, _SECONDS = 10, 30
"""The stretch of the first minute that is asked for, in seconds."""


def whole(day: Day, number: int) -> str:
    """All of an event."""
    return f"SELECT * {{ GRAPH <{day.event(number).id}> {{ ?s ?p ?o }} }}"


class Changed(TriplewireError):
    """An answer is not what it was: the figures are of something else, and worth nothing."""


@dataclass(frozen=True)
class Asked:
    """The median time of a kind of question, and of the CPU, the files that the engine opened for one, and how many
    rows it gave."""

    milliseconds: float
    cpu: float
    """In milliseconds, of the whole process: also what the housekeeper does in it meanwhile."""
    files: float
    rows: int


def questions(day: Day, rate: int) -> dict[str, Sequence[str]]:
    """What a sensor measured in a stretch of time, an event by its id, and how much was measured in a stretch."""
    numbers = [(_FIRST * _TIMES + _SECONDS * each) * rate // _TIMES for each in range(_TIMES)]
    first, last = (moment(timedelta(seconds=each)) for each in (_FIRST, _FIRST + _SECONDS))
    within = f"FILTER(?t >= {first} && ?t < {last})"
    return {
        "sensor": [
            f"SELECT ?t ?v {{ ?o {MADE_BY} {_sensor(day, each)} ; {RESULT} ?v ; {RESULT_TIME} ?t {within} }}"
            for each in numbers
        ],
        "event": [whole(day, each) for each in numbers],
        "stretch": [
            f"SELECT (COUNT(*) AS ?n) {{ ?o {RESULT_TIME} ?t FILTER(?t >= {moment(timedelta(seconds=each))} && "
            f"?t < {moment(timedelta(seconds=each + _SECONDS // _TIMES))}) }}"
            for each in range(_FIRST, _FIRST + _SECONDS, _SECONDS // _TIMES)
        ],
    }


def _sensor(day: Day, number: int) -> str:
    return next(quad.object for quad in day.event(number).quads if quad.predicate == MADE_BY)


class Kept:
    """A lake as it once was, for as long as others go on with it: its files have a second name each."""

    def __init__(self, snapshot: Snapshot, directory: Path) -> None:
        for each in snapshot.files:
            kept = directory / each.path
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.hardlink_to(Path(snapshot.table) / each.path)
        self._snapshot = replace(snapshot, table=str(directory))

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        return self._snapshot


class Asker:
    """Asks as a process of queries does, which counts what is new while it has nothing else to do."""

    def __init__(
        self, lake: LakeReader, table: Path, asked: Mapping[str, Sequence[str]], reads: ReadCounter | None = None
    ) -> None:
        self._history = HistoryExecutor(lake, DuckDbEngine(table, reads=reads, copies=False))
        self._asked = asked
        self._known: dict[str, object] = {}

    def prepare(self) -> None:
        while self._history.prepare():
            pass

    def ask(self) -> dict[str, Asked]:
        """Everything. Raises Changed where an answer is not what it was before."""
        return {name: self._all(texts) for name, texts in self._asked.items()}

    def first(self, text: str) -> float:
        """Milliseconds that a question takes, whatever has come since the last one."""
        return _milliseconds([self._timed(text)[0]])

    def close(self) -> None:
        self._history.close()

    def _all(self, texts: Sequence[str]) -> Asked:
        times, cpu = zip(*(self._timed(text) for text in texts), strict=True)
        reads = [read(self._history, text) for text in texts]
        files = sum(each.files for each in reads) / len(reads)
        return Asked(_milliseconds(times), _milliseconds(cpu), round(files, 1), sum(each.rows for each in reads))

    def _timed(self, text: str) -> tuple[float, float]:
        """Seconds, by the wall and of the CPU."""
        began, worked = time.perf_counter(), time.process_time()
        found = self._history.answer_now(text)["results"]["bindings"]
        seconds = time.perf_counter() - began, time.process_time() - worked
        given = sorted(map(repr, found))
        if self._known.setdefault(text, given) != given:
            raise Changed(f"{text} has an answer of {len(given)} rows that is not what it was")
        return seconds


def _milliseconds(seconds: Sequence[float]) -> float:
    return round(median(seconds) * 1_000, 1)
