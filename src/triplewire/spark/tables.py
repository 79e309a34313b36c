"""The lake's table as an origin: files that cannot hold anything wanted are not opened, and tasks read the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from duckdb import ColumnExpression, ConstantExpression
from pyspark.sql.datasource import EqualTo, Filter, In
from pyspark.sql.types import StructType

from triplewire.config import limits
from triplewire.spark.filters import Condition, condition, every
from triplewire.spark.options import Options
from triplewire.spark.origins import Part
from triplewire.spark.schemas import QUADS, arrow_schema, events_of
from triplewire.storage.lake.data_files import connect_duckdb

if TYPE_CHECKING:
    from triplewire.storage.lake.ports import DataFile, LakeReader, Snapshot


_HEADERS = ("position", "stream", "source", "application", "time", "received")
_COLUMNS = {"quads": {name: name for name in QUADS.names}, "events": {name: name for name in _HEADERS}}
"""The columns of each kind of frame that rows of the table can be chosen by: extensions stand in one of an event's."""

_EVENTS = """
SELECT
    position, any_value(stream) AS stream, any_value(graph[2:-2]) AS event,
    any_value(source) AS source, any_value(application) AS application,
    any_value(time) AS time, any_value(received) AS received, any_value(extensions) AS extensions,
    string_agg(subject || chr(9) || predicate || chr(9) || object, chr(10) ORDER BY quad) AS text
FROM rows GROUP BY position ORDER BY position
"""
_HEADS = "SELECT *, graph[2:-2] AS event, '' AS text FROM rows WHERE quad = 0 ORDER BY position"
"""Where nobody wants quads the first of each event says it all."""


class TableOrigin:
    """Events or quads of a table, at one version or, for streams, as it grows."""

    def __init__(self, options: Options) -> None:
        assert options.path is not None
        self._options = options
        self._conditions: list[Condition] = []
        if options.stream is not None:
            self._conditions.append(Condition(EqualTo(("stream",), options.stream), "stream"))

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        left = []
        for each in filters:
            if found := self._condition(each):
                self._conditions.append(found)
            else:
                left.append(each)
        return left

    def reach(self, after: int, most: int | None = None) -> int:
        snapshot = self._snapshot()
        if most is None:
            return max(after, snapshot.upto)
        begin = min((each.first - 1 for each in snapshot.files if each.last > after), default=snapshot.upto)
        return max(after, min(snapshot.upto, max(after, begin) + most))

    def parts(self, after: int, upto: int) -> list[Part]:
        snapshot = self._snapshot()
        files = [each for each in snapshot.files if each.last > after and each.first <= upto]
        chosen = [each for each in files if all(one.may_hold(each) for one in self._conditions)]
        if self._options.what == "quads":
            return [Part(after, upto, _paths(snapshot, group)) for group in _groups(chosen)]
        cuts = pairwise(_cuts(chosen, after, upto))
        found = (Part(first, last, _paths(snapshot, _within(chosen, first, last))) for first, last in cuts)
        return [each for each in found if each.files]

    def read(self, part: Part, schema: StructType) -> Iterator[pa.RecordBatch]:
        if not part.files:
            return
        wanted = arrow_schema(schema)
        with connect_duckdb() as duck:
            rows = duck.read_parquet(list(part.files)).filter(self._chosen(part))
            if self._options.what == "quads":
                chosen = rows.select(*map(ColumnExpression, schema.names))
                yield from (batch.cast(wanted) for batch in chosen.to_arrow_reader(limits.SPARK_ROWS))
                return
            entries = rows.query("rows", _EVENTS if "quads" in schema.names else _HEADS)
            assert entries is not None
            found = entries.to_arrow_table()
        yield from events_of(_plain(found), schema).to_batches(limits.SPARK_ROWS)

    def _chosen(self, part: Part) -> duckdb.Expression:
        position = ColumnExpression("position")
        inside = (position > ConstantExpression(part.after)) & (position <= ConstantExpression(part.upto))
        others = every(self._conditions)
        return inside if others is None else inside & others

    def _condition(self, given: Filter) -> Condition | None:
        if self._options.what == "events" and isinstance(given, EqualTo | In) and given.attribute == ("event",):
            return condition(_graph(given), {"graph": "graph"})
        return condition(given, _COLUMNS[self._options.what])

    def _snapshot(self) -> Snapshot:
        # Only the driver plans: what it needs for that the executors do not load.
        from triplewire.spark.lakes import moment

        assert self._options.path is not None
        return _opened(self._options.path).files(moment(self._options.version, self._options.as_of))


@cache
def _opened(path: str) -> LakeReader:
    """Kept, so that who follows a table reads only what is new of its log."""
    from triplewire.spark.lakes import opened

    return opened(path)


def _graph(given: EqualTo | In) -> Filter:
    """An event's id is its graph without the brackets."""
    if isinstance(given, In):
        return replace(given, attribute=("graph",), value=tuple(f"<{each}>" for each in given.value))
    return replace(given, attribute=("graph",), value=f"<{given.value}>")


def _paths(snapshot: Snapshot, files: Iterable[DataFile]) -> tuple[str, ...]:
    return tuple(f"{snapshot.table}/{each.path}" for each in files)


def _within(files: Iterable[DataFile], after: int, upto: int) -> list[DataFile]:
    return [each for each in files if each.last > after and each.first <= upto]


def _groups(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """Neighbours together until they are worth a task."""
    group: list[DataFile] = []
    for each in files:
        if group and sum(one.size for one in group) + each.size > limits.SPARK_PART_BYTES:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _cuts(files: Sequence[DataFile], after: int, upto: int) -> list[int]:
    """Positions between which events are put together, each of them within one pair. A file that lies on several sides
    is read for each."""
    if not files:
        return []
    first = max(after, min(each.first for each in files) - 1)
    last = min(upto, max(each.last for each in files))
    size = sum(each.size for each in files)
    count = max(1, min(last - first, round(size / limits.SPARK_PART_BYTES)))
    return [first + (last - first) * number // count for number in range(count + 1)]


def _plain(entries: pa.Table) -> pa.Table:
    """Texts as texts, whatever DuckDB makes of them."""
    fields = [
        pa.field(name, pa.string()) if pa.types.is_string_view(kind) else pa.field(name, kind)
        for name, kind in zip(entries.schema.names, entries.schema.types, strict=True)
    ]
    return entries.cast(pa.schema(fields))
