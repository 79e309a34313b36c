"""The DuckDB engine: one connection that reads the lake's files, or its in-memory copy of them, and nothing else.

The copy is used once all files are in it and for as long as the lake is small enough. Predicates, subjects and
objects
are dictionary-encoded there: zone maps of numbers are exact, and joins by numbers take a fraction of the time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import orjson
import pyarrow as pa

from triplewire.history import pruning, quad_index, snapshots
from triplewire.history.dataset_statistics import StatisticsFile
from triplewire.history.engines import QueryProfile, memory_limit_error, parse_profile, time_limit_error
from triplewire.history.formats.columns import BATCH_ROWS
from triplewire.history.pruning import BloomFilters, ScannedFiles, ScanRewriter, ScanSource, ZoneMaps, find_scanned
from triplewire.history.quad_index import INDEX_BYTES, INDEX_JOIN_ROWS, QuadIndex
from triplewire.history.requests import QueryLimits
from triplewire.history.statistics import HASHED_QUADS, DuplicateIndex, LakeStatistics
from triplewire.history.visibility import HiddenInstances, VisibleRelations, narrow_to_visible, visible_scan
from triplewire.model.errors import Unavailable
from triplewire.security import Visibility
from triplewire.sparql import CompiledQuery, Statistics
from triplewire.sparql.compiler.index_joins import IndexJoin
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.statistics import PREDICATE_NUMBER, TERM_ID
from triplewire.storage.lake.data_files import parquet_relation, quote_literal
from triplewire.storage.lake.ports import Snapshot
from triplewire.storage.lake.read_counts import ReadCounter

CACHED_QUADS: Final = 2_500_000
"""Quads of the lake up to which each query process holds a copy in memory: some 310 MB for a million, however few bytes
they take in files. A larger lake is read from its files."""

CATCH_UP_QUADS: Final = 200_000
"""Quads in new files that a query waits for until they are indexed: half a second. More are indexed when the process is
idle."""

COPY = "cached_quads"
_TYPES = {
    "position": "BIGINT",
    "quad": "INTEGER",
    "object_number": "DOUBLE",
    **dict.fromkeys(snapshots.TIME_COLUMNS, "TIMESTAMP"),
}
EMPTY_ROW = ", ".join(f"CAST(NULL AS {_TYPES.get(name, 'VARCHAR')}) AS {name}" for name in snapshots.READ_COLUMNS)
"""The columns of an empty relation of quads."""

_COLUMNS = ", ".join(
    f"CAST(f.{name} AS TIMESTAMP) AS {name}" if name in snapshots.TIME_COLUMNS else f"f.{name}"
    for name in snapshots.READ_COLUMNS
)
_SUBJECT, _OBJECT = f"subject_{TERM_ID}", f"object_{TERM_ID}"
# The table itself gives the next number, so that an interrupt at any point leaves no number that is used twice.
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
"""Growth before the copy is sorted again: all sorting together then costs five times the last."""


class QuadCache(snapshots.IncrementalView):
    """A copy of the lake, in tables of one connection, and an index of it."""

    def __init__(
        self,
        duck: duckdb.DuckDBPyConnection,
        portion_quads: int = snapshots.PORTION_QUADS,
        make_index: Callable[[], QuadIndex] = QuadIndex,
    ) -> None:
        self._duck = duck
        self._make_index = make_index
        super().__init__(portion_quads)

    def reset(self) -> None:
        super().reset()
        self._numbers: dict[str, int] = {}
        self._rows = self._sorted = 0
        self._index: QuadIndex | None = self._make_index()
        self._duck.execute("CREATE OR REPLACE TEMP TABLE cached_predicates (predicate VARCHAR, number INTEGER)")
        self._duck.execute("CREATE OR REPLACE TEMP TABLE cached_terms (term VARCHAR, id INTEGER)")
        numbers = ", ".join(f"0 AS {name}" for name in (PREDICATE_NUMBER, _SUBJECT, _OBJECT))
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {COPY} AS SELECT {EMPTY_ROW}, {numbers} WHERE false")

    def add(self, portion: snapshots.SnapshotPortion) -> None:
        self._number_predicates(portion)
        self._duck.execute(_TERMS.format(rows=portion.relation))
        ((count,),) = self._duck.execute(_TAKE.format(rows=portion.relation)).fetchall()
        self._rows += count
        self._progress.mark_done(portion)
        self._add_to_index()

    def _add_to_index(self) -> None:
        """Add the rows that the index does not have yet: those at the end, for the copy is sorted only in between."""
        if self._index is None or self._index.rows == self._rows:
            return
        new = f"{COPY} WHERE rowid >= {self._index.rows}"
        rows = self._duck.sql(f"SELECT {', '.join(quad_index.COLUMNS)} FROM {new}").to_arrow_table()
        events = self._duck.sql(f"SELECT DISTINCT position, graph FROM {new}").to_arrow_table()
        terms = self._duck.sql(f"SELECT term FROM cached_terms WHERE id > {self._index.terms} ORDER BY id")
        self._index.add(rows, events, terms.to_arrow_table()["term"].combine_chunks(), [*self._numbers])
        if self._index.is_full:
            self._index = None

    def answer(self, join: IndexJoin) -> pa.RecordBatch | None:
        """Return the rows of an index join, None if it is left to the engine."""
        return None if self._index is None or self._index.rows != self._rows else self._index.answer(join)

    def finish(self) -> None:
        """Sort the copy by predicate if it has grown much since the last time."""
        self._add_to_index()
        if self._rows > self._sorted * _SORTED:
            self._duck.execute(
                f"CREATE OR REPLACE TEMP TABLE {COPY} AS FROM {COPY} ORDER BY {PREDICATE_NUMBER}, position, quad"
            )
            self._sorted = self._rows

    @property
    def numbers(self) -> Mapping[str, int]:
        return self._numbers

    def _number_predicates(self, portion: snapshots.SnapshotPortion) -> None:
        rows = self._duck.execute(f"SELECT DISTINCT predicate FROM {portion.relation}").fetchall()
        fresh = sorted(predicate for (predicate,) in rows if predicate not in self._numbers)
        for number, predicate in enumerate(fresh, len(self._numbers)):
            # The table first: an interrupt must not leave a number that it does not have.
            self._duck.execute("INSERT INTO cached_predicates VALUES (?, ?)", [predicate, number])
            self._numbers[predicate] = number


logger = logging.getLogger(__name__)

_PLAIN = ", ".join(f"CAST({name} AS TIMESTAMP) AS {name}" for name in snapshots.TIME_COLUMNS)


@dataclass(frozen=True)
class IndexLimits:
    """How much of the lake the engine indexes, and how much at once."""

    cached_quads: int = CACHED_QUADS
    catch_up_quads: int = CATCH_UP_QUADS
    portion_quads: int = snapshots.PORTION_QUADS
    hashed_quads: int = HASHED_QUADS
    filter_bytes: int = pruning.BLOOM_FILTER_BYTES
    filter_files: int = pruning.BLOOM_FILTER_FILES
    filter_terms: int = pruning.BLOOM_FILTER_TERMS
    index_bytes: int = INDEX_BYTES
    index_join_rows: int = INDEX_JOIN_ROWS


class DuckDbEngine:
    """Runs queries one after the other. No SQL reaches files outside `directory`, or any setting."""

    def __init__(
        self,
        directory: Path,
        bounds: QueryLimits | None = None,
        *,
        reads: ReadCounter | None = None,
        records: StatisticsFile | None = None,
        copies: bool = True,
        limits: IndexLimits | None = None,
    ) -> None:
        """`reads` counts which zones are read; `records` saves statistics for other processes; `copies` says whether a
        small lake is held in memory."""
        self._reads = reads
        self._copies = copies
        self._limits = limits = limits or IndexLimits()
        self._bounds = bounds or QueryLimits()
        self._duck = duckdb.connect(config=_configuration(self._bounds.memory))
        self._zone_maps: tuple[Snapshot, ZoneMaps] | None = None
        self._summed: tuple[tuple[int, frozenset[str | None] | None, int], Statistics, Statistics] | None = None
        """The last result of `known`, with its key."""
        register_functions(self._duck)
        # Files never change after they are written.
        self._duck.execute("SET parquet_metadata_cache = true")
        self._duck.execute("SET TimeZone = 'UTC'")
        self._lake_statistics = LakeStatistics(self._duck, records, limits.portion_quads)
        self._duplicates = DuplicateIndex(self._duck, limits.hashed_quads, limits.portion_quads)
        self._cache = QuadCache(
            self._duck, limits.portion_quads, lambda: QuadIndex(limits.index_bytes, limits.index_join_rows)
        )
        self._hidden = HiddenInstances(self._duck)
        self._bloom_filters = BloomFilters(self._duck, limits.filter_bytes, limits.filter_files, limits.filter_terms)
        self._duck.execute(f"CREATE TEMP VIEW quads AS FROM {COPY}")
        self._duck.execute(f"CREATE TEMP VIEW events AS {snapshots.EVENTS}")
        # From here on only the lake can be read, and no setting can be changed.
        self._duck.execute(f"SET allowed_directories = [{quote_literal(str(directory.absolute()))}]")
        self._duck.execute("SET enable_external_access = false")
        self._duck.execute("SET lock_configuration = true")

    def statistics(self, snapshot: Snapshot) -> Statistics:
        """Return statistics after a short catch-up. With many new rows in the lake they are unknown."""
        with _translate_errors(self._bounds):
            for view in self._views(snapshot):
                self._catch_up(view, snapshot)
            return self.known(snapshot)

    def _catch_up(self, view: snapshots.IncrementalView, snapshot: Snapshot) -> None:
        if sum(each.rows for each in view.missing(snapshot)) > self._limits.catch_up_quads:
            return
        while missing := view.missing(snapshot):
            if not self._add(view, missing[0]):
                return
        view.finish()

    def known(self, snapshot: Snapshot) -> Statistics:
        """Combine the statistics of the views; the same object while nothing changes, for it is the key of plans."""
        counted, repeating = self._lake_statistics.get(snapshot), self._duplicates.get(snapshot)
        numbers = dict(self._cache.numbers) if self._cache.holds(snapshot) and counted.complete else {}
        key = (id(counted), repeating, len(numbers))
        if self._summed is None or self._summed[0] != key:
            unique = counted if repeating is None or not counted.complete else counted.without(repeating)
            whole = replace(unique, numbers=numbers, identified=True) if numbers else unique
            self._summed = key, counted, whole
        return self._summed[2]

    def prepare(self, snapshot: Snapshot) -> bool:
        """Index one more portion, or build a Bloom filter; return whether there was anything to do."""
        for view in self._views(snapshot):
            if missing := view.missing(snapshot):
                return self._add(view, missing[0])
            view.finish()
        if self._reads is not None:
            self._reads.save()
        return self._bloom_filters.build_next()

    def _add(self, view: snapshots.IncrementalView, portion: snapshots.SnapshotPortion) -> bool:
        try:
            view.add(portion)
        except duckdb.IOException:
            # The files belonged to a version that was removed. The newest one has the same rows.
            logger.info("files were removed while they were indexed: %s", ", ".join(portion.paths))
            view.reset()
            return False
        return True

    def _views(self, snapshot: Snapshot) -> tuple[snapshots.IncrementalView, ...]:
        views = (self._lake_statistics, self._duplicates)
        return (*views, self._cache) if self._copies and snapshot.quads <= self._limits.cached_quads else views

    def scanned(self, compiled: CompiledQuery, snapshot: Snapshot) -> ScannedFiles:
        return find_scanned(compiled, snapshot, self._zone_maps_of(snapshot), "duckdb")

    def batches(
        self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits, visibility: Visibility | None = None
    ) -> Iterator[pa.RecordBatch]:
        with _translate_errors(bounds):
            found = self._look_up(compiled, snapshot) if visibility is None else None
            if found is not None:
                yield found
                return
            sql = self._rewrite(compiled, snapshot, visibility)[0].sql
            reader = self._duck.sql(sql).to_arrow_reader(BATCH_ROWS)
        while True:
            with _translate_errors(bounds):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def _look_up(self, compiled: CompiledQuery, snapshot: Snapshot) -> pa.RecordBatch | None:
        """Return the answer, if the index of the copy gives it."""
        join = compiled.index_join
        return None if join is None or not self._cache.holds(snapshot) else self._cache.answer(join)

    def profile(self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits) -> QueryProfile:
        with _translate_errors(bounds):
            placed, scanned = self._rewrite(compiled, snapshot)
            ((_, analyzed),) = self._duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {placed.sql}").fetchall()
            ((_, plan),) = self._duck.execute(f"EXPLAIN {placed.sql}").fetchall()
            document = orjson.loads(analyzed)
            # The engine has no profile of a plan that is constants alone.
            rows, seconds = (
                parse_profile(document)
                if "operator" in document
                else (len(self._duck.execute(placed.sql).fetchall()), 0.0)
            )
            indexed = self._look_up(compiled, snapshot) is not None
        return QueryProfile(rows, seconds, scanned, plan, copied=self._cache.holds(snapshot), indexed=indexed)

    def interrupt(self) -> None:
        self._duck.interrupt()

    def close(self) -> None:
        self._duck.close()

    def _rewrite(
        self, compiled: CompiledQuery, snapshot: Snapshot, visibility: Visibility | None = None
    ) -> tuple[CompiledQuery, ScannedFiles]:
        """Return the query over the copy, if that is complete, else over the files of each scan; and these files."""
        copied = self._cache.holds(snapshot)
        if copied and visibility is None:
            return compiled, ScannedFiles(snapshot)
        if visibility is None:
            placed, scanned = self._prune(compiled, snapshot, partial(_source, snapshot.paths))
        else:
            relations = VisibleRelations(visibility, "duckdb", self._hidden.find_table(visibility, snapshot))
            visible = self._visible_files(visibility, snapshot)
            source = _visible_copy if copied else partial(_visible_source, snapshot.paths, visible)
            placed, scanned = self._prune(narrow_to_visible(compiled, visibility), snapshot, partial(source, relations))
        if copied:
            return placed, ScannedFiles(snapshot)
        if self._reads is not None:
            self._reads.add(scanned.zones_scanned)
        return placed, scanned

    def _prune(
        self, compiled: CompiledQuery, snapshot: Snapshot, source: ScanSource
    ) -> tuple[CompiledQuery, ScannedFiles]:
        return ScanRewriter(snapshot, self._zone_maps_of(snapshot), "duckdb", source).prune(compiled)

    def _visible_files(self, visibility: Visibility, snapshot: Snapshot) -> list[str]:
        """Return the files that may have visible quads."""
        paths = snapshot.paths
        return [paths[number] for number in sorted(self._zone_maps_of(snapshot).select_files(visible_scan(visibility)))]

    def _zone_maps_of(self, snapshot: Snapshot) -> ZoneMaps:
        if self._zone_maps is None or self._zone_maps[0] is not snapshot:
            self._zone_maps = (
                snapshot,
                ZoneMaps(snapshot.files, partial(self._bloom_filters.select_files, snapshot.paths)),
            )
        return self._zone_maps[1]


def _configuration(memory: str) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "memory_limit": memory,
        "temp_directory": "",
        "threads": 2,
        # Handing reads to other threads takes longer than reading: files are local and small.
        "async_threads": 0,
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        # Python variables are no relations.
        "python_enable_replacements": False,
    }


@contextmanager
def _translate_errors(bounds: QueryLimits) -> Iterator[None]:
    """Translate the engine's errors. Errors of the Arrow reader are known by their first words alone."""
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
        raise Unavailable(f"the query engine failed: {words[:200]}") from error


def _source(paths: Sequence[str], relation: str, alias: str, numbers: tuple[int, ...]) -> str:
    """Return the rows of some files as `quads` or `events`."""
    quads = _stored_files([paths[number] for number in numbers])
    source = quads if relation == "quads" else f"(SELECT {snapshots.HEADERS} FROM {quads} WHERE quad = 0)"
    return f"{source} AS {alias}"


def _visible_source(
    paths: Sequence[str],
    whole: Sequence[str],
    visible: VisibleRelations,
    relation: str,
    alias: str,
    numbers: tuple[int, ...],
) -> str:
    quads = _stored_files([paths[number] for number in numbers])
    source = visible.quads(quads) if relation == "quads" else visible.events(quads, _stored_files(whole))
    return f"({source}) AS {alias}"


def _visible_copy(visible: VisibleRelations, relation: str, alias: str, _: tuple[int, ...]) -> str:
    source = visible.quads(COPY) if relation == "quads" else visible.events(COPY, COPY)
    return f"({source}) AS {alias}"


def _stored_files(paths: Sequence[str]) -> str:
    quads = (
        f"SELECT * REPLACE ({_PLAIN}) FROM {parquet_relation(paths)}" if paths else f"SELECT {EMPTY_ROW} WHERE false"
    )
    return f"({quads})"
