"""A worker whose engine does what markers in the query say. Run as a program, as an edge runs the real one."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event as Flag

import pyarrow as pa

from triplewire.config.workers import WorkerCommand
from triplewire.history.engines import QueryProfile, time_limit_error
from triplewire.history.executor import HistoryExecutor
from triplewire.history.formats.columns import BATCH_ROWS
from triplewire.history.pruning import ScannedFiles
from triplewire.history.requests import QueryLimits
from triplewire.history.worker import QueryWorker, limit_resources
from triplewire.security import Visibility
from triplewire.sparql import CompiledQuery
from triplewire.storage.lake.ports import Snapshot, VersionOrTime

MEMORY = "64MB"
ROWS_AT_ONCE = BATCH_ROWS
BATCH_BYTES = ROWS_AT_ONCE * 100


def query(marker: str) -> str:
    """A query that the engine takes for an order."""
    return f'SELECT ?s {{ ?s ?p "{marker}" }}'


def launch(counter: Path | None = None) -> WorkerCommand:
    """`counter` is a file that grows by a byte for each batch that is made."""
    path = os.pathsep.join((str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")))
    environment: Mapping[str, str] = {"PYTHONPATH": path, "COUNTER": str(counter or os.devnull)}
    return WorkerCommand((sys.executable, "-m", "tests.history.scripted"), environment)


class NoLake:
    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        return Snapshot.empty()


class Scripted:
    """Tells its process id, unless there is an order."""

    def __init__(self) -> None:
        self._interrupted = Flag()

    def statistics(self, snapshot: Snapshot) -> None:
        """Nothing is known."""

    def batches(
        self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits, visibility: Visibility | None = None
    ) -> Iterator[pa.RecordBatch]:
        self._interrupted.clear()
        for marker, order in self._orders.items():
            if f'"{marker}"' in compiled.sql:
                yield from order(self, bounds)
                return
        yield _rows(f"<urn:pid:{os.getpid()}>", 1)

    def scanned(self, compiled: CompiledQuery, snapshot: Snapshot) -> ScannedFiles:
        return ScannedFiles(snapshot)

    def prepare(self, snapshot: Snapshot) -> bool:
        """There is nothing to do beforehand."""
        return False

    def profile(self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits) -> QueryProfile:
        return QueryProfile(
            rows=sum(batch.num_rows for batch in self.batches(compiled, snapshot, bounds)),
            seconds=0.0,
            scanned=ScannedFiles(snapshot),
            plan="",
        )

    def interrupt(self) -> None:
        self._interrupted.set()

    def close(self) -> None:
        """Nothing is held."""

    def _flood(self, bounds: QueryLimits) -> Iterator[pa.RecordBatch]:
        """Never ends by itself."""
        while not self._interrupted.is_set():
            with open(os.environ["COUNTER"], "ab") as counter:
                counter.write(b".")
            yield _rows('"' + "x" * 88 + '"', ROWS_AT_ONCE)
        raise time_limit_error(bounds.seconds)

    def _wait(self, bounds: QueryLimits) -> Iterator[pa.RecordBatch]:
        """Finds nothing, but obeys."""
        while not self._interrupted.wait():
            yield _rows("<urn:never>", 1)
        raise time_limit_error(bounds.seconds)

    def _hang(self, bounds: QueryLimits) -> Iterator[pa.RecordBatch]:
        """Does not obey."""
        Flag().wait()
        yield _rows("<urn:never>", 1)

    def _die(self, bounds: QueryLimits) -> Iterator[pa.RecordBatch]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield _rows("<urn:never>", 1)

    def _die_later(self, bounds: QueryLimits) -> Iterator[pa.RecordBatch]:
        yield _rows("<urn:first>", ROWS_AT_ONCE)
        yield from self._die(bounds)

    def _fail_later(self, bounds: QueryLimits) -> Iterator[pa.RecordBatch]:
        yield _rows("<urn:first>", ROWS_AT_ONCE)
        raise time_limit_error(bounds.seconds)

    def _eat(self, bounds: QueryLimits) -> Iterator[pa.RecordBatch]:
        """More memory than there is for it, outside of any engine."""
        meal = [bytearray(16 * 1024 * 1024) for _ in range(1_000)]
        yield _rows("<urn:never>", len(meal))

    def _stumble(self, bounds: QueryLimits) -> Iterator[pa.RecordBatch]:
        yield _rows("<urn:never>", 1 // len(""))

    _orders = {  # noqa: RUF012
        "FLOOD": _flood,
        "WAIT": _wait,
        "HANG": _hang,
        "DIE": _die,
        "DIE LATER": _die_later,
        "FAIL LATER": _fail_later,
        "EAT": _eat,
        "STUMBLE": _stumble,
    }


def _rows(term: str, count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([term] * count, pa.string())], ["v0"])


def main() -> None:
    limit_resources(MEMORY)
    bounds = QueryLimits(seconds=60, memory=MEMORY)
    QueryWorker(socket.socket(fileno=int(sys.argv[1])), HistoryExecutor(NoLake(), Scripted(), bounds)).run()


if __name__ == "__main__":
    main()
