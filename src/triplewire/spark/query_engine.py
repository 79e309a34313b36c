"""Spark as a query engine, for queries that are more than one machine should answer, or on request.

Spark SQL has no recursion over sets, so closures are computed before the query, one round for each further step. A
process of queries keeps one session and runs one query after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event as Flag
from time import perf_counter

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from triplewire.history.engines import QueryProfile, time_limit_error
from triplewire.history.pruning import ScannedFiles, ScanRewriter, ScanSource, ZoneMaps, find_scanned
from triplewire.history.requests import QueryLimits
from triplewire.history.snapshots import HEADERS, READ_COLUMNS, TIME_COLUMNS
from triplewire.history.visibility import VisibleRelations, hidden_instances_query, narrow_to_visible, visible_scan
from triplewire.security import Visibility
from triplewire.sparql import CompiledQuery, PreparationStep
from triplewire.storage.lake.data_files import QUADS
from triplewire.storage.lake.ports import Snapshot
from triplewire.storage.lake.read_counts import ReadCounter

_WHOLE, _HIDDEN = "stored_whole", "hidden_instances"
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"

_TYPES = {pa.int64(): "BIGINT", pa.int32(): "INT", pa.float64(): "DOUBLE", pa.string(): "STRING"}
_COLUMNS = {name: _TYPES.get(QUADS.field(name).type, "TIMESTAMP_LTZ") for name in READ_COLUMNS}
_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
_NOTHING = f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {name}' for name, kind in _COLUMNS.items())} WHERE FALSE"

QUERY_SETTINGS = {
    # Times have no zone in our tables, nor in what the compiler writes.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "UTC",
    # Spark 4.3 generates code for unions that it cannot send to its executors where no column of them is read.
    "spark.sql.codegen.wholeStage.union.enabled": "false",
}


def configure_session(session: SparkSession) -> None:
    """The session settings that queries need to be answered correctly."""
    for name, value in QUERY_SETTINGS.items():
        session.conf.set(name, value)


def prune_query(
    session: SparkSession, compiled: CompiledQuery, snapshot: Snapshot, visibility: Visibility | None = None
) -> tuple[CompiledQuery, ScannedFiles]:
    """Return the query over views of its own and the files that it reads.

    Each view reads only the files that its scan needs, and of these only visible rows. The views stay until another
    query is prepared.
    """
    paths, ranges = snapshot.paths, ZoneMaps(snapshot.files)

    def source(relation: str, alias: str, numbers: tuple[int, ...]) -> str:
        frame = _read_files(session, [paths[number] for number in numbers])
        chosen = frame if relation == "quads" else frame.where("quad = 0").selectExpr(*HEADERS.split(", "))
        chosen.createOrReplaceTempView(f"{relation}_{alias}")
        return f"{relation}_{alias} AS {alias}"

    def visible_source(relation: str, alias: str, numbers: tuple[int, ...]) -> str:
        _read_files(session, [paths[number] for number in numbers]).createOrReplaceTempView(f"stored_{alias}")
        made = seen.quads(f"stored_{alias}") if relation == "quads" else seen.events(f"stored_{alias}", _WHOLE)
        return f"({made}) AS {alias}"

    if visibility is None:
        return ScanRewriter(snapshot, ranges, "spark", source).prune(compiled)
    seen = VisibleRelations(visibility, "spark", _create_hidden_view(session, visibility, snapshot, source))
    within = sorted(ranges.select_files(visible_scan(visibility)))
    _read_files(session, [paths[number] for number in within]).createOrReplaceTempView(_WHOLE)
    return ScanRewriter(snapshot, ranges, "spark", visible_source).prune(narrow_to_visible(compiled, visibility))


def _create_hidden_view(
    session: SparkSession, visibility: Visibility, snapshot: Snapshot, source: ScanSource
) -> str | None:
    """A view of the instances that are hidden."""
    found = hidden_instances_query(visibility, "spark")
    if found is None:
        return None
    placed, _ = ScanRewriter(snapshot, ZoneMaps(snapshot.files), "spark", source).prune(found)
    session.sql(placed.sql).createOrReplaceTempView(_HIDDEN)
    return _HIDDEN


def _read_files(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    # Told the schema, Spark does not open files to find it. Asked to create a frame, it would make this session the
    # active one of its thread, which may be a program's own.
    frame = session.read.schema(_SCHEMA).parquet(*paths) if paths else session.sql(_NOTHING)
    return frame.withColumns({name: frame[name].cast("timestamp_ntz") for name in TIME_COLUMNS})


def stream_answer(session: SparkSession, compiled: CompiledQuery) -> Iterator[pa.RecordBatch]:
    """The answer, a part of it at a time: the next is computed when it is asked for."""
    for row in (
        answer_frame(session, compiled)
        .mapInArrow(_pack_batches, "batch binary")
        .toLocalIterator(prefetchPartitions=True)
    ):
        yield from pa.ipc.open_stream(row.batch)


def explain_query(session: SparkSession, compiled: CompiledQuery) -> str:
    """Spark's own plan of a query whose steps were taken."""
    (row,) = session.sql(f"EXPLAIN FORMATTED {compiled.sql}").collect()
    return str(row.plan)


def run_query(session: SparkSession, compiled: CompiledQuery) -> pa.Table:
    """The whole answer."""
    return answer_frame(session, compiled).toArrow()


def answer_frame(session: SparkSession, compiled: CompiledQuery) -> DataFrame:
    """The answer, yet to be computed but for the steps that are taken on the way."""
    for step in compiled.steps:
        _run_step(session, step)
    return session.sql(compiled.sql)


def _pack_batches(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Whole batches as single cells: one object crosses to the driver instead of one for each row."""
    for part in parts:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as stream:
            stream.write_batch(part)
        yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def _run_step(session: SparkSession, step: PreparationStep) -> None:
    """One named relation; of a closure, round after round until a round brings nothing new."""
    found = session.sql(step.sql)
    if step.following:
        found = _compute_closure(session, step, found)
    found.createOrReplaceTempView(step.name)


def _compute_closure(session: SparkSession, step: PreparationStep, first: DataFrame) -> DataFrame:
    with _without_constraints(session):
        known = fresh = first.distinct().localCheckpoint()
        while not fresh.isEmpty():
            fresh.createOrReplaceTempView(step.known)
            fresh = session.sql(step.following).subtract(known).localCheckpoint()
            known = known.unionAll(fresh).localCheckpoint()
        return known


@contextmanager
def _without_constraints(session: SparkSession) -> Iterator[None]:
    """Drop the constraints of a plan before a checkpoint: Spark fails on a union of two checkpoints (`key not found`)
    if a column of the plan has one, as for pairs that begin at a constant."""
    session.conf.set(_CONSTRAINTS, "false")
    try:
        yield
    finally:
        session.conf.unset(_CONSTRAINTS)


logger = logging.getLogger(__name__)


class SparkEngine:
    """Runs queries one after the other, as jobs of one session."""

    def __init__(self, session: SparkSession, reads: ReadCounter | None = None) -> None:
        self._session = session
        self._reads = reads
        configure_session(session)
        self._interrupted = Flag()

    def statistics(self, snapshot: Snapshot) -> None:
        """Spark plans by statistics of its own."""

    def prepare(self, snapshot: Snapshot) -> bool:
        """There is nothing to do beforehand."""
        if self._reads is not None:
            self._reads.save()
        return False

    def scanned(self, compiled: CompiledQuery, snapshot: Snapshot) -> ScannedFiles:
        return find_scanned(compiled, snapshot, ZoneMaps(snapshot.files), "spark")

    def batches(
        self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits, visibility: Visibility | None = None
    ) -> Iterator[pa.RecordBatch]:
        self._interrupted.clear()
        with self._translated(bounds):
            placed, scanned = prune_query(self._session, compiled, snapshot, visibility)
            if self._reads is not None:
                self._reads.add(scanned.zones_scanned)
            yield from stream_answer(self._session, placed)

    def profile(self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits) -> QueryProfile:
        self._interrupted.clear()
        with self._translated(bounds):
            began = perf_counter()
            placed, scanned = prune_query(self._session, compiled, snapshot)
            rows = sum(batch.num_rows for batch in stream_answer(self._session, placed))
            return QueryProfile(rows, perf_counter() - began, scanned, explain_query(self._session, placed))

    def interrupt(self) -> None:
        self._interrupted.set()
        self._session.sparkContext.cancelAllJobs()

    def close(self) -> None:
        self._session.stop()

    @contextmanager
    def _translated(self, bounds: QueryLimits) -> Iterator[None]:
        """A job that was cancelled fails in many ways: that it was is what counts."""
        try:
            yield
        except Exception:
            if not self._interrupted.is_set():
                raise
            logger.debug("a query was interrupted", exc_info=True)
            raise time_limit_error(bounds.seconds) from None
