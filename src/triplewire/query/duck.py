"""DuckDB as an engine: one connection, kept, which reads the lake's files, or its copy of them, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import orjson
import pyarrow as pa

from triplewire.access import Sight
from triplewire.config import limits
from triplewire.errors import Unavailable
from triplewire.lake.ports import Snapshot
from triplewire.lake.reads import Tally
from triplewire.lake.relations import parquet, quoted
from triplewire.query.caches import COPY, NOTHING, Cache
from triplewire.query.engines import over_memory, over_time
from triplewire.query.hidings import Hidings
from triplewire.query.intakes import Part, Portion
from triplewire.query.profiles import Profile, measured
from triplewire.query.prunings import Pruning, Scanned, Source, scanned_by
from triplewire.query.ranges import Ranges
from triplewire.query.records import Records
from triplewire.query.repetitions import Repetitions
from triplewire.query.requests import Bounds
from triplewire.query.rosters import Rosters
from triplewire.query.sights import Seen, narrowed, whole
from triplewire.query.statistics import Counting
from triplewire.query.views import EVENTS, HEADERS, TIMES
from triplewire.sparql import Compiled, Statistics
from triplewire.sparql.dialects.duckdb import prepare

logger = logging.getLogger(__name__)

_PLAIN = ", ".join(f"CAST({name} AS TIMESTAMP) AS {name}" for name in TIMES)


class Duck:
    """Runs queries one after the other. No SQL reaches files outside of `directory`, or any setting."""

    def __init__(
        self,
        directory: Path,
        bounds: Bounds | None = None,
        *,
        reads: Tally | None = None,
        records: Records | None = None,
        copies: bool = True,
    ) -> None:
        """`reads` hears which zones are read; `records` keeps what is counted for other processes; `copies` says
        whether a small lake is held in memory."""
        self._reads = reads
        self._copies = copies
        self._bounds = bounds or Bounds()
        self._duck = duckdb.connect(config=_configuration(self._bounds.memory))
        self._ranges: tuple[Snapshot, Ranges] | None = None
        self._summed: tuple[tuple[int, frozenset[str | None] | None, int], Statistics, Statistics] | None = None
        """What `known` told last, with what it was made of."""
        prepare(self._duck)
        # Files never change once they are written.
        self._duck.execute("SET parquet_metadata_cache = true")
        self._duck.execute("SET TimeZone = 'UTC'")
        self._counting = Counting(self._duck, records)
        self._repetitions = Repetitions(self._duck)
        self._cache = Cache(self._duck)
        self._hidings = Hidings(self._duck)
        self._rosters = Rosters(self._duck)
        self._duck.execute(f"CREATE TEMP VIEW quads AS FROM {COPY}")
        self._duck.execute(f"CREATE TEMP VIEW events AS {EVENTS}")
        # From here on only the lake can be read, and nothing of this can be changed.
        self._duck.execute(f"SET allowed_directories = [{quoted(str(directory.absolute()))}]")
        self._duck.execute("SET enable_external_access = false")
        self._duck.execute("SET lock_configuration = true")

    def statistics(self, snapshot: Snapshot) -> Statistics:
        """Waits for what is quickly counted. Of a lake with much in it that is new, nothing is known yet."""
        with _translated(self._bounds):
            for part in self._parts(snapshot):
                self._catch_up(part, snapshot)
            return self.known(snapshot)

    def _catch_up(self, part: Part, snapshot: Snapshot) -> None:
        if sum(each.rows for each in part.missing(snapshot)) > limits.CATCH_UP_QUADS:
            return
        while missing := part.missing(snapshot):
            if not self._take(part, missing[0]):
                return
        part.finish()

    def known(self, snapshot: Snapshot) -> Statistics:
        """What the parts know together: the same value as long as it says the same, because plans are kept by it."""
        found, repeating = self._counting.of(snapshot), self._repetitions.of(snapshot)
        numbers = dict(self._cache.numbers) if self._cache.holds(snapshot) and found.complete else {}
        key = (id(found), repeating, len(numbers))
        if self._summed is None or self._summed[0] != key:
            told = found if repeating is None or not found.complete else found.without(repeating)
            whole = replace(told, numbers=numbers, identified=True) if numbers else told
            self._summed = key, found, whole
        return self._summed[2]

    def prepare(self, snapshot: Snapshot) -> bool:
        """Count and copy one file more, or remember the names in it; whether there was one to be."""
        for part in self._parts(snapshot):
            if missing := part.missing(snapshot):
                return self._take(part, missing[0])
            part.finish()
        if self._reads is not None:
            self._reads.save()
        return self._rosters.take()

    def _take(self, part: Part, portion: Portion) -> bool:
        try:
            part.take(portion)
        except duckdb.IOException:
            # The file was in a version that is no more. What is in the one that there is now holds the same.
            logger.info("a file has gone while it was taken in: %s", ", ".join(portion.paths))
            part.begin()
            return False
        return True

    def _parts(self, snapshot: Snapshot) -> tuple[Part, ...]:
        small = self._copies and snapshot.quads <= limits.CACHED_QUADS
        return (self._counting, self._repetitions, self._cache) if small else (self._counting, self._repetitions)

    def scanned(self, compiled: Compiled, snapshot: Snapshot) -> Scanned:
        return scanned_by(compiled, snapshot, self._ranges_of(snapshot), "duckdb")

    def batches(
        self, compiled: Compiled, snapshot: Snapshot, bounds: Bounds, sight: Sight | None = None
    ) -> Iterator[pa.RecordBatch]:
        with _translated(bounds):
            sql = self._placed(compiled, snapshot, sight)[0].sql
            reader = self._duck.sql(sql).to_arrow_reader(limits.BATCH_ROWS)
        while True:
            with _translated(bounds):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def profile(self, compiled: Compiled, snapshot: Snapshot, bounds: Bounds) -> Profile:
        with _translated(bounds):
            placed, scanned = self._placed(compiled, snapshot)
            ((_, found),) = self._duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {placed.sql}").fetchall()
            ((_, plan),) = self._duck.execute(f"EXPLAIN {placed.sql}").fetchall()
            document = orjson.loads(found)
            # The engine gives no account of a plan that is constants alone.
            told = measured(document) if "operator" in document else (self._counted(placed.sql), 0.0)
        return Profile(*told, scanned, plan, copied=self._is_copied(snapshot))

    def _counted(self, sql: str) -> int:
        return len(self._duck.execute(sql).fetchall())

    def interrupt(self) -> None:
        self._duck.interrupt()

    def close(self) -> None:
        self._duck.close()

    def _is_copied(self, snapshot: Snapshot) -> bool:
        return self._cache.holds(snapshot)

    def _placed(self, compiled: Compiled, snapshot: Snapshot, sight: Sight | None = None) -> tuple[Compiled, Scanned]:
        """The query over the copy, if that is whole, else over the files that each scan needs; and which these are."""
        copied = self._is_copied(snapshot)
        if copied and sight is None:
            return compiled, Scanned(snapshot)
        if sight is None:
            placed, scanned = self._pruned(compiled, snapshot, partial(_source, snapshot.paths))
        else:
            seen = Seen(sight, "duckdb", self._hidings.of(sight, snapshot))
            source = _copied_in_sight if copied else partial(_in_sight, snapshot.paths, self._whole(sight, snapshot))
            placed, scanned = self._pruned(narrowed(compiled, sight), snapshot, partial(source, seen))
        if copied:
            return placed, Scanned(snapshot)
        if self._reads is not None:
            self._reads.add(scanned.zones_scanned)
        return placed, scanned

    def _pruned(self, compiled: Compiled, snapshot: Snapshot, source: Source) -> tuple[Compiled, Scanned]:
        return Pruning(snapshot, self._ranges_of(snapshot), "duckdb", source).pruned(compiled)

    def _whole(self, sight: Sight, snapshot: Snapshot) -> list[str]:
        """The files in which something may be in sight."""
        paths = snapshot.paths
        return [paths[number] for number in sorted(self._ranges_of(snapshot).within(whole(sight)))]

    def _ranges_of(self, snapshot: Snapshot) -> Ranges:
        if self._ranges is None or self._ranges[0] is not snapshot:
            self._ranges = snapshot, Ranges(snapshot.files, partial(self._rosters.left, snapshot.paths))
        return self._ranges[1]


def _configuration(memory: str) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "memory_limit": memory,
        "temp_directory": "",
        "threads": 2,
        # To hand reads to others takes longer than to read: files are local, and small.
        "async_threads": 0,
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        # The names of our own variables are no relations.
        "python_enable_replacements": False,
    }


@contextmanager
def _translated(bounds: Bounds) -> Iterator[None]:
    """The engine's errors as ours. Those of the Arrow reader have lost their class, but for the first words."""
    try:
        yield
    except duckdb.InterruptException:
        raise over_time(bounds.seconds) from None
    except (duckdb.OutOfMemoryException, MemoryError):
        raise over_memory(bounds.memory) from None
    except OSError as error:
        words = str(error)
        if words.startswith("INTERRUPT"):
            raise over_time(bounds.seconds) from None
        if words.startswith("Out of Memory"):
            raise over_memory(bounds.memory) from None
        raise Unavailable(f"the engine gave up: {words[:200]}") from error


def _source(paths: Sequence[str], relation: str, alias: str, numbers: tuple[int, ...]) -> str:
    """The rows of some files as the one or the other relation."""
    quads = _stored([paths[number] for number in numbers])
    made = quads if relation == "quads" else f"(SELECT {HEADERS} FROM {quads} WHERE quad = 0)"
    return f"{made} AS {alias}"


def _in_sight(
    paths: Sequence[str], whole: Sequence[str], seen: Seen, relation: str, alias: str, numbers: tuple[int, ...]
) -> str:
    """What of them is in sight."""
    quads = _stored([paths[number] for number in numbers])
    made = seen.quads(quads) if relation == "quads" else seen.events(quads, _stored(whole))
    return f"({made}) AS {alias}"


def _copied_in_sight(seen: Seen, relation: str, alias: str, _: tuple[int, ...]) -> str:
    made = seen.quads(COPY) if relation == "quads" else seen.events(COPY, COPY)
    return f"({made}) AS {alias}"


def _stored(paths: Sequence[str]) -> str:
    quads = f"SELECT * REPLACE ({_PLAIN}) FROM {parquet(paths)}" if paths else f"SELECT {NOTHING} WHERE false"
    return f"({quads})"
