"""The DuckDB engine: one connection that reads the lake's files, or its in-memory copy of them, and nothing else.

The copy is used once all files are in it and for as long as the lake is small enough. Predicates, subjects and objects
are dictionary-encoded there: zone maps of numbers are exact, and joins by numbers take a fraction of the time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import orjson
import pyarrow as pa

from triplewire.history.bloom_filters import BloomFilters
from triplewire.history.dataset_statistics import StatisticsFile
from triplewire.history.engines import QueryProfile, memory_limit_error, parse_profile, time_limit_error
from triplewire.history.formats.columns import BATCH_ROWS
from triplewire.history.pruning import ScannedFiles, ScanRewriter, ScanSource, ZoneMaps, find_scanned
from triplewire.history.requests import QueryLimits
from triplewire.history.snapshots import (
    EVENTS,
    HEADERS,
    READ_COLUMNS,
    TIME_COLUMNS,
    IncrementalView,
    SnapshotPortion,
    SnapshotProgress,
)
from triplewire.history.statistics import DuplicateIndex, LakeStatistics
from triplewire.history.visibility import HiddenInstances, VisibleRelations, narrow_to_visible, visible_scan
from triplewire.model.errors import Unavailable
from triplewire.security import Visibility
from triplewire.sparql import CompiledQuery, Statistics
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.statistics import PREDICATE_NUMBER, TERM_ID
from triplewire.storage.lake.data_files import parquet_relation, quote_literal
from triplewire.storage.lake.ports import Snapshot
from triplewire.storage.lake.read_counts import ReadCounter

CACHED_QUADS: Final = 2_500_000
"""Quads of the lake up to which each process of queries holds a copy of them in memory: some 310 MB for a million,
however few bytes they take in files. A larger lake is read from its files."""

CATCH_UP_QUADS: Final = 200_000
"""Quads in new files of the lake that a query waits for until they are counted and copied: half a second. More than
that is made ready when there are no queries."""


# Caches: the lake in memory, for as long as it is small enough.
#
# Files are taken in one by one, and the copy is used once all of them are there. Predicates are numbered in it:
# engines keep the least and the greatest of a run of numbers in full, but of texts only a few letters, in which all
# IRIs agree. Subjects and objects are numbered, too, all in one row of numbers: to join by these takes a fraction of
# the time.

COPY = "cached_quads"
_TYPES = {
    "position": "BIGINT",
    "quad": "INTEGER",
    "object_number": "DOUBLE",
    **dict.fromkeys(TIME_COLUMNS, "TIMESTAMP"),
}
EMPTY_ROW = ", ".join(f"CAST(NULL AS {_TYPES.get(name, 'VARCHAR')}) AS {name}" for name in READ_COLUMNS)
"""What to select for a relation of quads that has none."""

_COLUMNS = ", ".join(
    f"CAST(f.{name} AS TIMESTAMP) AS {name}" if name in TIME_COLUMNS else f"f.{name}" for name in READ_COLUMNS
)
_SUBJECT, _OBJECT = f"subject_{TERM_ID}", f"object_{TERM_ID}"
# The next number is asked of the table itself, so that an interrupt at any point leaves no number that is used twice.
_TERMS = """
INSERT INTO cached_terms SELECT term, row_number() OVER () + (SELECT coalesce(max(id), 0) FROM cached_terms)
FROM (SELECT subject AS term FROM {rows} UNION SELECT object FROM {rows}) AS f
ANTI JOIN cached_terms AS n ON f.term = n.term
"""
_TAKE = f"""
INSERT INTO {COPY} SELECT {_COLUMNS}, n.number, s.id, o.id
FROM {{rows}} AS f JOIN cached_predicates AS n ON f.predicate = n.predicate
JOIN cached_terms AS s ON f.subject = s.term JOIN cached_terms AS o ON f.object = o.term
"""
_SORTED = 1.25
"""How much larger the copy must be before it is sorted again: all sorting together then costs five times the last."""


class QuadCache:
    """A copy of the lake up to a position. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._intake = SnapshotProgress()
        self._numbers: dict[str, int] = {}
        self._rows = 0
        self._sorted = 0
        self.begin()

    def holds(self, snapshot: Snapshot) -> bool:
        """Is this what is in it?"""
        return self._intake.holds(snapshot)

    def missing(self, snapshot: Snapshot) -> Sequence[SnapshotPortion]:
        """What is yet to be taken in. Where rows are gone, everything begins anew."""
        if not self._intake.follows(snapshot):
            self.begin()
        return self._intake.missing(snapshot)

    def take(self, portion: SnapshotPortion) -> None:
        self._number(portion)
        self._duck.execute(_TERMS.format(rows=portion.relation))
        ((count,),) = self._duck.execute(_TAKE.format(rows=portion.relation)).fetchall()
        self._rows += count
        self._intake.took(portion)

    def finish(self) -> None:
        """Bring quads of one predicate together, where many have come since that was done last."""
        if self._rows > self._sorted * _SORTED:
            self._duck.execute(
                f"CREATE OR REPLACE TEMP TABLE {COPY} AS FROM {COPY} ORDER BY {PREDICATE_NUMBER}, position, quad"
            )
            self._sorted = self._rows

    @property
    def numbers(self) -> Mapping[str, int]:
        return self._numbers

    def begin(self) -> None:
        """From nothing."""
        self._intake, self._numbers, self._rows, self._sorted = SnapshotProgress(), {}, 0, 0
        self._duck.execute("CREATE OR REPLACE TEMP TABLE cached_predicates (predicate VARCHAR, number INTEGER)")
        self._duck.execute("CREATE OR REPLACE TEMP TABLE cached_terms (term VARCHAR, id INTEGER)")
        numbers = ", ".join(f"0 AS {name}" for name in (PREDICATE_NUMBER, _SUBJECT, _OBJECT))
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {COPY} AS SELECT {EMPTY_ROW}, {numbers} WHERE false")

    def _number(self, portion: SnapshotPortion) -> None:
        found = self._duck.execute(f"SELECT DISTINCT predicate FROM {portion.relation}").fetchall()
        fresh = sorted(predicate for (predicate,) in found if predicate not in self._numbers)
        for number, predicate in enumerate(fresh, len(self._numbers)):
            # an interrupt must not leave a number that the table does not have
            self._duck.execute("INSERT INTO cached_predicates VALUES (?, ?)", [predicate, number])
            self._numbers[predicate] = number


logger = logging.getLogger(__name__)

_PLAIN = ", ".join(f"CAST({name} AS TIMESTAMP) AS {name}" for name in TIME_COLUMNS)


class DuckDbEngine:
    """Runs queries one after the other. No SQL reaches files outside of `directory`, or any setting."""

    def __init__(
        self,
        directory: Path,
        bounds: QueryLimits | None = None,
        *,
        reads: ReadCounter | None = None,
        records: StatisticsFile | None = None,
        copies: bool = True,
    ) -> None:
        """`reads` hears which zones are read; `records` keeps what is counted for other processes; `copies` says
        whether a small lake is held in memory."""
        self._reads = reads
        self._copies = copies
        self._bounds = bounds or QueryLimits()
        self._duck = duckdb.connect(config=_configuration(self._bounds.memory))
        self._ranges: tuple[Snapshot, ZoneMaps] | None = None
        self._summed: tuple[tuple[int, frozenset[str | None] | None, int], Statistics, Statistics] | None = None
        """What `known` told last, with what it was made of."""
        register_functions(self._duck)
        # Files never change once they are written.
        self._duck.execute("SET parquet_metadata_cache = true")
        self._duck.execute("SET TimeZone = 'UTC'")
        self._counting = LakeStatistics(self._duck, records)
        self._repetitions = DuplicateIndex(self._duck)
        self._cache = QuadCache(self._duck)
        self._hidings = HiddenInstances(self._duck)
        self._rosters = BloomFilters(self._duck)
        self._duck.execute(f"CREATE TEMP VIEW quads AS FROM {COPY}")
        self._duck.execute(f"CREATE TEMP VIEW events AS {EVENTS}")
        # From here on only the lake can be read, and nothing of this can be changed.
        self._duck.execute(f"SET allowed_directories = [{quote_literal(str(directory.absolute()))}]")
        self._duck.execute("SET enable_external_access = false")
        self._duck.execute("SET lock_configuration = true")

    def statistics(self, snapshot: Snapshot) -> Statistics:
        """Waits for what is quickly counted. Of a lake with much in it that is new, nothing is known yet."""
        with _translate_errors(self._bounds):
            for part in self._parts(snapshot):
                self._catch_up(part, snapshot)
            return self.known(snapshot)

    def _catch_up(self, part: IncrementalView, snapshot: Snapshot) -> None:
        if sum(each.rows for each in part.missing(snapshot)) > CATCH_UP_QUADS:
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

    def _take(self, part: IncrementalView, portion: SnapshotPortion) -> bool:
        try:
            part.take(portion)
        except duckdb.IOException:
            # The file was in a version that is no more. What is in the one that there is now holds the same.
            logger.info("a file has gone while it was taken in: %s", ", ".join(portion.paths))
            part.begin()
            return False
        return True

    def _parts(self, snapshot: Snapshot) -> tuple[IncrementalView, ...]:
        small = self._copies and snapshot.quads <= CACHED_QUADS
        return (self._counting, self._repetitions, self._cache) if small else (self._counting, self._repetitions)

    def scanned(self, compiled: CompiledQuery, snapshot: Snapshot) -> ScannedFiles:
        return find_scanned(compiled, snapshot, self._ranges_of(snapshot), "duckdb")

    def batches(
        self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits, sight: Visibility | None = None
    ) -> Iterator[pa.RecordBatch]:
        with _translate_errors(bounds):
            sql = self._placed(compiled, snapshot, sight)[0].sql
            reader = self._duck.sql(sql).to_arrow_reader(BATCH_ROWS)
        while True:
            with _translate_errors(bounds):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def profile(self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits) -> QueryProfile:
        with _translate_errors(bounds):
            placed, scanned = self._placed(compiled, snapshot)
            ((_, found),) = self._duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {placed.sql}").fetchall()
            ((_, plan),) = self._duck.execute(f"EXPLAIN {placed.sql}").fetchall()
            document = orjson.loads(found)
            # The engine gives no account of a plan that is constants alone.
            told = parse_profile(document) if "operator" in document else (self._counted(placed.sql), 0.0)
        return QueryProfile(*told, scanned, plan, copied=self._is_copied(snapshot))

    def _counted(self, sql: str) -> int:
        return len(self._duck.execute(sql).fetchall())

    def interrupt(self) -> None:
        self._duck.interrupt()

    def close(self) -> None:
        self._duck.close()

    def _is_copied(self, snapshot: Snapshot) -> bool:
        return self._cache.holds(snapshot)

    def _placed(
        self, compiled: CompiledQuery, snapshot: Snapshot, sight: Visibility | None = None
    ) -> tuple[CompiledQuery, ScannedFiles]:
        """The query over the copy, if that is whole, else over the files that each scan needs; and which these are."""
        copied = self._is_copied(snapshot)
        if copied and sight is None:
            return compiled, ScannedFiles(snapshot)
        if sight is None:
            placed, scanned = self._pruned(compiled, snapshot, partial(_source, snapshot.paths))
        else:
            seen = VisibleRelations(sight, "duckdb", self._hidings.of(sight, snapshot))
            source = _visible_copy if copied else partial(_visible_source, snapshot.paths, self._whole(sight, snapshot))
            placed, scanned = self._pruned(narrow_to_visible(compiled, sight), snapshot, partial(source, seen))
        if copied:
            return placed, ScannedFiles(snapshot)
        if self._reads is not None:
            self._reads.add(scanned.zones_scanned)
        return placed, scanned

    def _pruned(
        self, compiled: CompiledQuery, snapshot: Snapshot, source: ScanSource
    ) -> tuple[CompiledQuery, ScannedFiles]:
        return ScanRewriter(snapshot, self._ranges_of(snapshot), "duckdb", source).pruned(compiled)

    def _whole(self, sight: Visibility, snapshot: Snapshot) -> list[str]:
        """The files in which something may be in sight."""
        paths = snapshot.paths
        return [paths[number] for number in sorted(self._ranges_of(snapshot).within(visible_scan(sight)))]

    def _ranges_of(self, snapshot: Snapshot) -> ZoneMaps:
        if self._ranges is None or self._ranges[0] is not snapshot:
            self._ranges = snapshot, ZoneMaps(snapshot.files, partial(self._rosters.left, snapshot.paths))
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
def _translate_errors(bounds: QueryLimits) -> Iterator[None]:
    """The engine's errors as ours. Those of the Arrow reader have lost their class, but for the first words."""
    try:
        yield
    except duckdb.InterruptException:
        raise time_limit_error(bounds.seconds) from None
    except (duckdb.OutOfMemoryException, MemoryError):
        raise memory_limit_error(bounds.memory) from None
    except OSError as error:
        words = str(error)
        if words.startswith("INTERRUPT"):
            raise time_limit_error(bounds.seconds) from None
        if words.startswith("Out of Memory"):
            raise memory_limit_error(bounds.memory) from None
        raise Unavailable(f"the engine gave up: {words[:200]}") from error


def _source(paths: Sequence[str], relation: str, alias: str, numbers: tuple[int, ...]) -> str:
    """The rows of some files as the one or the other relation."""
    quads = _stored_files([paths[number] for number in numbers])
    made = quads if relation == "quads" else f"(SELECT {HEADERS} FROM {quads} WHERE quad = 0)"
    return f"{made} AS {alias}"


def _visible_source(
    paths: Sequence[str],
    whole: Sequence[str],
    seen: VisibleRelations,
    relation: str,
    alias: str,
    numbers: tuple[int, ...],
) -> str:
    """What of them is in sight."""
    quads = _stored_files([paths[number] for number in numbers])
    made = seen.quads(quads) if relation == "quads" else seen.events(quads, _stored_files(whole))
    return f"({made}) AS {alias}"


def _visible_copy(seen: VisibleRelations, relation: str, alias: str, _: tuple[int, ...]) -> str:
    made = seen.quads(COPY) if relation == "quads" else seen.events(COPY, COPY)
    return f"({made}) AS {alias}"


def _stored_files(paths: Sequence[str]) -> str:
    quads = (
        f"SELECT * REPLACE ({_PLAIN}) FROM {parquet_relation(paths)}" if paths else f"SELECT {EMPTY_ROW} WHERE false"
    )
    return f"({quads})"
