"""What queries of `bench history` read: the share of the lake's files that an engine opens for a constant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import orjson

from triplewire.bench.history_data import HOURS, PREDICATES, RESULT_TIME, Day, hour
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.executor import HistoryExecutor
from triplewire.history.requests import HistoryRequest
from triplewire.storage.lake.delta import DeltaLake

_TIMES = 8
"""How many constants of a kind are asked for."""


@dataclass(frozen=True)
class Read:
    """What one query read, as the engine tells it."""

    files: int
    of: int
    rows: int
    milliseconds: float


def questions(day: Day) -> dict[str, Sequence[str]]:
    """Queries with a constant predicate, a constant subject of each kind, and an hour."""
    return {
        "predicate": [f"SELECT * {{ ?s {each} ?o }}" for each in PREDICATES],
        "sensor": [f"SELECT * {{ {day.sensor(each)} ?p ?o }}" for each in _spread(day.sensors)],
        "observation": [f"SELECT * {{ {day.observation(each)} ?p ?o }}" for each in _spread(day.events)],
        "hour": [_of_an_hour(each) for each in _spread(HOURS)],
    }


def shares(day: Day, table: Path) -> dict[str, Any]:
    """By kind of question: means over its constants, and the most files that were read for one."""
    with closing(HistoryExecutor(DeltaLake(table), DuckDbEngine(table))) as history:
        return {name: _told([read(history, text) for text in texts]) for name, texts in questions(day).items()}


def _spread(count: int) -> Iterator[int]:
    return ((2 * number + 1) * count // (2 * _TIMES) for number in range(_TIMES))


def _of_an_hour(number: int) -> str:
    first, last = hour(number)
    return f"SELECT * {{ ?o {RESULT_TIME} ?t FILTER(?t >= {first} && ?t < {last}) }}"


def read(history: HistoryExecutor, text: str) -> Read:
    """Runs a query, and asks the engine what it did."""
    request = HistoryRequest(text, explain="json")
    with history.alarm(request) as alarm:
        told: Mapping[str, Any] = orjson.loads(b"".join(history.answer(request, alarm).chunks))
    return Read(told["files"]["read"], told["files"]["of"], told["rows"], told["run_ms"])


def _told(reads: Sequence[Read]) -> dict[str, Any]:
    most = max(reads, key=lambda each: each.files)
    return {
        "share": round(mean(each.files for each in reads) / most.of, 4),
        "files": round(mean(each.files for each in reads), 1),
        "most": most.files,
        "of": most.of,
        "rows": round(mean(each.rows for each in reads)),
        "ms": round(mean(each.milliseconds for each in reads), 1),
    }
