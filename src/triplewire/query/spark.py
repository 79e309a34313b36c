"""Spark as an engine of queries: for what is more than one machine should do, or on request.

Spark SQL has no recursion over sets, so closures are made before the query, a round for each step more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from triplewire.access import Sight
from triplewire.history.pruning import ScannedFiles, ScanRewriter, ScanSource, ZoneMaps
from triplewire.history.snapshots import HEADERS, READ_COLUMNS, TIME_COLUMNS
from triplewire.history.visibility import VisibleRelations, hidden_instances_query, narrow_to_visible, visible_scan
from triplewire.sparql import CompiledQuery, PreparationStep
from triplewire.storage.lake.data_files import QUADS
from triplewire.storage.lake.ports import Snapshot

_WHOLE, _HIDDEN = "stored_whole", "hidden_instances"
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"

_TYPES = {pa.int64(): "BIGINT", pa.int32(): "INT", pa.float64(): "DOUBLE", pa.string(): "STRING"}
_COLUMNS = {name: _TYPES.get(QUADS.field(name).type, "TIMESTAMP_LTZ") for name in READ_COLUMNS}
_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
_NOTHING = f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {name}' for name, kind in _COLUMNS.items())} WHERE FALSE"

SETTINGS = {
    # Times have no zone in our tables, nor in what the compiler writes.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "UTC",
    # Spark 4.3 generates code for unions that it cannot send to its executors where no column of them is read.
    "spark.sql.codegen.wholeStage.union.enabled": "false",
}


def configure(session: SparkSession) -> None:
    """What a session needs for queries to mean what they should."""
    for name, value in SETTINGS.items():
        session.conf.set(name, value)


def pruned(
    session: SparkSession, compiled: CompiledQuery, snapshot: Snapshot, sight: Sight | None = None
) -> tuple[CompiledQuery, ScannedFiles]:
    """The query over views of its own, each of those files alone that a scan needs, and of these what is in sight; and
    which they are. The views are there until another query is prepared."""
    paths, ranges = snapshot.paths, ZoneMaps(snapshot.files)

    def source(relation: str, alias: str, numbers: tuple[int, ...]) -> str:
        frame = _frame(session, [paths[number] for number in numbers])
        chosen = frame if relation == "quads" else frame.where("quad = 0").selectExpr(*HEADERS.split(", "))
        chosen.createOrReplaceTempView(f"{relation}_{alias}")
        return f"{relation}_{alias} AS {alias}"

    def source_in_sight(relation: str, alias: str, numbers: tuple[int, ...]) -> str:
        _frame(session, [paths[number] for number in numbers]).createOrReplaceTempView(f"stored_{alias}")
        made = seen.quads(f"stored_{alias}") if relation == "quads" else seen.events(f"stored_{alias}", _WHOLE)
        return f"({made}) AS {alias}"

    if sight is None:
        return ScanRewriter(snapshot, ranges, "spark", source).pruned(compiled)
    seen = VisibleRelations(sight, "spark", _hidden(session, sight, snapshot, source))
    within = sorted(ranges.within(visible_scan(sight)))
    _frame(session, [paths[number] for number in within]).createOrReplaceTempView(_WHOLE)
    return ScanRewriter(snapshot, ranges, "spark", source_in_sight).pruned(narrow_to_visible(compiled, sight))


def _hidden(session: SparkSession, sight: Sight, snapshot: Snapshot, source: ScanSource) -> str | None:
    """A view of the instances that are out of sight."""
    found = hidden_instances_query(sight, "spark")
    if found is None:
        return None
    placed, _ = ScanRewriter(snapshot, ZoneMaps(snapshot.files), "spark", source).pruned(found)
    session.sql(placed.sql).createOrReplaceTempView(_HIDDEN)
    return _HIDDEN


def _frame(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    # Told the schema, Spark does not open files to find it. Asked to create a frame, it would make this session the
    # active one of its thread, which may be a program's own.
    frame = session.read.schema(_SCHEMA).parquet(*paths) if paths else session.sql(_NOTHING)
    return frame.withColumns({name: frame[name].cast("timestamp_ntz") for name in TIME_COLUMNS})


def batches(session: SparkSession, compiled: CompiledQuery) -> Iterator[pa.RecordBatch]:
    """The answer, a part of it at a time: the next is computed when it is asked for."""
    for row in answer(session, compiled).mapInArrow(_packed, "batch binary").toLocalIterator(prefetchPartitions=True):
        yield from pa.ipc.open_stream(row.batch)


def explained(session: SparkSession, compiled: CompiledQuery) -> str:
    """Spark's own plan of a query whose steps were taken."""
    (row,) = session.sql(f"EXPLAIN FORMATTED {compiled.sql}").collect()
    return str(row.plan)


def run(session: SparkSession, compiled: CompiledQuery) -> pa.Table:
    """The whole answer."""
    return answer(session, compiled).toArrow()


def answer(session: SparkSession, compiled: CompiledQuery) -> DataFrame:
    """The answer, yet to be computed but for the steps that are taken on the way."""
    for step in compiled.steps:
        _take(session, step)
    return session.sql(compiled.sql)


def _packed(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Whole batches as single cells: one object crosses to the driver instead of one for each row."""
    for part in parts:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as stream:
            stream.write_batch(part)
        yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def _take(session: SparkSession, step: PreparationStep) -> None:
    """One named relation; of a closure, round after round until a round brings nothing new."""
    found = session.sql(step.sql)
    if step.following:
        found = _closed(session, step, found)
    found.createOrReplaceTempView(step.name)


def _closed(session: SparkSession, step: PreparationStep, first: DataFrame) -> DataFrame:
    with _unconstrained(session):
        known = fresh = first.distinct().localCheckpoint()
        while not fresh.isEmpty():
            fresh.createOrReplaceTempView(step.known)
            fresh = session.sql(step.following).subtract(known).localCheckpoint()
            known = known.unionAll(fresh).localCheckpoint()
        return known


@contextmanager
def _unconstrained(session: SparkSession) -> Iterator[None]:
    """What is known of a column is not kept with a checkpoint: Spark fails on a union of two (`key not found`) where
    that is known of a column of the plan before, as for pairs that begin at a constant."""
    session.conf.set(_CONSTRAINTS, "false")
    try:
        yield
    finally:
        session.conf.unset(_CONSTRAINTS)
