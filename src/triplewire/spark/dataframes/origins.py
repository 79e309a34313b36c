"""Scan origins: a lake's table, with files skipped by pushed-down filters, and a broker, read over HTTP in pages.

A file that is skipped has no row that a filter lets through. Rows are chosen by DuckDB, which orders numbers (NaN
last) and texts (by bytes) as Spark does, so that Spark need not look again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa
from duckdb import ColumnExpression, ConstantExpression, Expression, FunctionExpression
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from triplewire.model import START, format_position, parse_position
from triplewire.model.errors import BadRequest, NotFound
from triplewire.spark.dataframes.format import QUADS, ReadOptions, ScanRange, arrow_schema, entries_to_events
from triplewire.storage.lake.data_files import connect_duckdb
from triplewire.storage.lake.ports import ColumnRange, DataFile
from triplewire.storage.registry.streams import check_stream_name

if TYPE_CHECKING:
    from triplewire.client import Client
    from triplewire.storage.lake.ports import LakeReader, Snapshot

SPARK_PART_BYTES: Final = 16 * 1024 * 1024
"""Files of the lake that one task of a Spark program reads: some seconds, and at worst about 500 MB for events, which
are put together in memory."""

SPARK_PART_EVENTS: Final = 50_000
"""Positions of a broker's log that one task of a Spark program reads: a few pages."""

SPARK_ROWS: Final = 10_000
"""Rows of one Arrow batch that a task hands to Spark: as many as Spark makes of its own."""


_COMPARISONS: Mapping[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
_FUNCTIONS: Mapping[type[Filter], str] = {
    StringStartsWith: "starts_with",
    StringEndsWith: "suffix",
    StringContains: "contains",
}


@dataclass(frozen=True)
class PushedFilter:
    """A filter on one column of quads. If it is `negated`, rows pass for which it is false; never those with null."""

    filter: Filter
    column: str
    negated: bool = False

    def may_hold(self, file: DataFile) -> bool:
        """False only where no row of the file can pass."""
        bounds = file.ranges.get(self.column)
        if bounds is None:
            return True
        if isinstance(self.filter, IsNull):
            return not self.negated or bounds[0] is not None
        if bounds[0] is None:
            return isinstance(self.filter, IsNotNull) and self.negated
        return self.negated or _overlaps(self.filter, bounds)

    @property
    def expression(self) -> Expression:
        made = _expression(self.filter, ColumnExpression(self.column))
        return ~made if self.negated else made


def push_filter(given: Filter, columns: Mapping[str, str]) -> PushedFilter | None:
    """Return a condition that is pushed down, if it can be. `columns` maps columns of the frame to columns of quads."""
    inner, negated = (given.child, True) if isinstance(given, Not) else (given, False)
    (name, *rest) = getattr(inner, "attribute", ("",))
    if rest or name not in columns or not _is_supported(inner):
        return None
    return PushedFilter(inner, columns[name], negated)


def combine_filters(conditions: Iterable[PushedFilter]) -> Expression | None:
    """Join filters by AND; None if there are none."""
    made = [each.expression for each in conditions]
    return reduce(operator.and_, made) if made else None


def _is_supported(given: Filter) -> bool:
    if isinstance(given, In):
        return bool(given.value) and all(map(_is_value, given.value))
    if type(given) in _COMPARISONS or type(given) in _FUNCTIONS:
        return _is_value(getattr(given, "value", None))
    return isinstance(given, IsNull | IsNotNull)


def _is_value(value: object) -> bool:
    """Whether a value means the same to DuckDB and Python: a time with a zone, a number that is not NaN, a text."""
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return isinstance(value, str | int | float) and value == value


def _expression(given: Filter, column: Expression) -> Expression:
    if isinstance(given, IsNull | IsNotNull):
        return column.isnull() if isinstance(given, IsNull) else column.isnotnull()
    if isinstance(given, In):
        return column.isin(*map(ConstantExpression, given.value))
    constant = ConstantExpression(getattr(given, "value", None))
    if type(given) in _FUNCTIONS:
        return FunctionExpression(_FUNCTIONS[type(given)], column, constant)
    made: Expression = _COMPARISONS[type(given)](column, constant)
    return made


def _overlaps(given: Filter, bounds: ColumnRange) -> bool:
    """Whether a value within the bounds may pass."""
    least, greatest = bounds
    if isinstance(given, In):
        return any(least <= each <= greatest for each in given.value)
    value: Any = getattr(given, "value", None)
    if isinstance(given, StringStartsWith):
        return bool(str(least)[: len(value)] <= value <= str(greatest)[: len(value)])
    if isinstance(given, EqualTo):
        return bool(least <= value <= greatest)
    if isinstance(given, GreaterThan | GreaterThanOrEqual):
        return bool(_COMPARISONS[type(given)](greatest, value))
    if isinstance(given, LessThan | LessThanOrEqual):
        return bool(_COMPARISONS[type(given)](least, value))
    return True


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
"""Without the column `quads`, the first quad of each event has all columns."""


class TableOrigin:
    """Events or quads of a table, at one version or, for streams, as it grows."""

    def __init__(self, options: ReadOptions, part_bytes: int = SPARK_PART_BYTES) -> None:
        assert options.path is not None
        self._options = options
        self._part_bytes = part_bytes
        self._conditions: list[PushedFilter] = []
        if options.stream is not None:
            self._conditions.append(PushedFilter(EqualTo(("stream",), options.stream), "stream"))

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        left = []
        for each in filters:
            if found := self._make_filter(each):
                self._conditions.append(found)
            else:
                left.append(each)
        return left

    def reach(self, after: int, most: int | None = None) -> int:
        snapshot = self._snapshot()
        if most is None:
            return max(after, snapshot.position)
        begin = min((each.first - 1 for each in snapshot.files if each.last > after), default=snapshot.position)
        return max(after, min(snapshot.position, max(after, begin) + most))

    def parts(self, after: int, through: int) -> list[ScanRange]:
        snapshot = self._snapshot()
        files = _within(snapshot.files, after, through)
        chosen = [each for each in files if all(one.may_hold(each) for one in self._conditions)]
        if self._options.what == "quads":
            groups = _group_files(chosen, self._part_bytes)
            return [ScanRange(after, through, _paths(snapshot, group)) for group in groups]
        cuts = pairwise(_split_positions(chosen, after, through, self._part_bytes))
        found = (ScanRange(first, last, _paths(snapshot, _within(chosen, first, last))) for first, last in cuts)
        return [each for each in found if each.files]

    def read(self, part: ScanRange, schema: StructType) -> Iterator[pa.RecordBatch]:
        if not part.files:
            return
        wanted = arrow_schema(schema)
        with connect_duckdb() as duck:
            rows = duck.read_parquet(list(part.files)).filter(self._make_condition(part))
            if self._options.what == "quads":
                chosen = rows.select(*map(ColumnExpression, schema.names))
                yield from (batch.cast(wanted) for batch in chosen.to_arrow_reader(SPARK_ROWS))
                return
            entries = rows.query("rows", _EVENTS if "quads" in schema.names else _HEADS)
            assert entries is not None
            found = entries.to_arrow_table()
        yield from entries_to_events(_plain_strings(found), schema).to_batches(SPARK_ROWS)

    def _make_condition(self, part: ScanRange) -> duckdb.Expression:
        position = ColumnExpression("position")
        inside = (position > ConstantExpression(part.after)) & (position <= ConstantExpression(part.through))
        others = combine_filters(self._conditions)
        return inside if others is None else inside & others

    def _make_filter(self, given: Filter) -> PushedFilter | None:
        if self._options.what == "events" and isinstance(given, EqualTo | In) and given.attribute == ("event",):
            return push_filter(_filter_by_graph(given), {"graph": "graph"})
        return push_filter(given, _COLUMNS[self._options.what])

    def _snapshot(self) -> Snapshot:
        # Only the driver plans: what it needs for that the executors do not load.
        from triplewire.spark.dataframes.lakes import parse_version

        assert self._options.path is not None
        return _open_table(self._options.path).files(parse_version(self._options.version, self._options.as_of))


@cache
def _open_table(path: str) -> LakeReader:
    """Open a lake once: a stream then reads only the new entries of its log."""
    from triplewire.spark.dataframes.lakes import open_lake

    return open_lake(path)


def _filter_by_graph(given: EqualTo | In) -> Filter:
    """Filter by graph instead of by event: the graph is the event's id in brackets."""
    if isinstance(given, In):
        return replace(given, attribute=("graph",), value=tuple(f"<{each}>" for each in given.value))
    return replace(given, attribute=("graph",), value=f"<{given.value}>")


def _paths(snapshot: Snapshot, files: Iterable[DataFile]) -> tuple[str, ...]:
    return tuple(f"{snapshot.table}/{each.path}" for each in files)


def _within(files: Iterable[DataFile], after: int, through: int) -> list[DataFile]:
    return [each for each in files if each.last > after and each.first <= through]


def _group_files(files: Sequence[DataFile], part_bytes: int) -> Iterator[list[DataFile]]:
    """Yield neighbours together until they are worth a task."""
    group: list[DataFile] = []
    for each in files:
        if group and sum(one.size for one in group) + each.size > part_bytes:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _split_positions(files: Sequence[DataFile], after: int, through: int, part_bytes: int) -> list[int]:
    """Return the bounds of parts: each event is assembled in one of them. A file that reaches into several parts is
    read for each."""
    if not files:
        return []
    first = max(after, min(each.first for each in files) - 1)
    last = min(through, max(each.last for each in files))
    size = sum(each.size for each in files)
    count = max(1, min(last - first, round(size / part_bytes)))
    return [first + (last - first) * number // count for number in range(count + 1)]


def _plain_strings(entries: pa.Table) -> pa.Table:
    """Convert DuckDB's string views to strings."""
    fields = [
        pa.field(name, pa.string()) if pa.types.is_string_view(kind) else pa.field(name, kind)
        for name, kind in zip(entries.schema.names, entries.schema.types, strict=True)
    ]
    return entries.cast(pa.schema(fields))


_POSITION = ("position",)


class BrokerOrigin:
    """Events or quads of a broker. Filters on position and stream are pushed down; Spark applies the others."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.url is not None
        self._url = options.url
        self._options = options
        self._stream = options.stream
        self._after = options.after
        self._through = options.through

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        return [each for each in filters if not self._push_filter(each)]

    def reach(self, after: int, most: int | None = None) -> int:
        with _open_client(self._url, self._options.token) as client:
            head = parse_position(client.health()["head"])
            if most is None or head <= after:
                return max(after, head)
            # A reader that begins later reads what is there; only one that resumes is told of a gap.
            probe = max(after, START + 1)
            earliest = client.page(probe, probe + 1).earliest
        if earliest is not None and after > START and self._options.fail_on_gap:
            raise NotFound(
                f"events after {format_position(after)} are gone from the log of {self._url}, "
                f"which begins at {format_position(earliest)}: "
                "read them from its lake (the option path), or go on without them (fail_on_gap false)"
            )
        return min(head, max(after, (earliest or 0) - 1) + most)

    def parts(self, after: int, through: int) -> list[ScanRange]:
        first, last = max(after, self._after), min(through, self._through)
        marks = [*range(first, last, SPARK_PART_EVENTS), last] if first < last else []
        return [ScanRange(begin, end) for begin, end in pairwise(marks)]

    def read(self, part: ScanRange, schema: StructType) -> Iterator[pa.RecordBatch]:
        after = part.after
        with _open_client(self._url, self._options.token) as client:
            while after < part.through:
                page = client.page(after, part.through, self._stream)
                found = (
                    _explode_quads(page.events, schema)
                    if self._options.what == "quads"
                    else entries_to_events(page.events, schema)
                )
                yield from found.to_batches(SPARK_ROWS)
                if page.position <= after:
                    return
                after = page.position

    def _push_filter(self, given: Filter) -> bool:
        """Apply a filter here if possible; return whether Spark need not apply it."""
        if isinstance(given, EqualTo) and given.attribute == ("stream",) and self._options.stream is None:
            return self._push_stream(given.value)
        if not isinstance(given, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
            return False
        if given.attribute != _POSITION:
            return False
        if isinstance(given, EqualTo | GreaterThan | GreaterThanOrEqual):
            self._after = max(self._after, given.value - (not isinstance(given, GreaterThan)))
        if isinstance(given, EqualTo | LessThan | LessThanOrEqual):
            self._through = min(self._through, given.value - isinstance(given, LessThan))
        return True

    def _push_stream(self, name: str) -> bool:
        """Leave a value that is no stream name to Spark, which finds nothing, and a second name, too."""
        try:
            wanted = check_stream_name(name)
        except BadRequest:
            return False
        if self._stream not in (None, wanted):
            return False
        self._stream = wanted
        return True


def _open_client(url: str, token: str | None) -> Client:
    # A program that reads files does without the client and the libraries that it loads.
    from triplewire.client import Client

    return Client(url, token=token)


def _explode_quads(entries: pa.Table, schema: StructType) -> pa.Table:
    """Explode log entries into quads as the lake does it."""
    from triplewire.sparql import explode, to_sql

    columns = ", ".join(f'"{name}"' for name in schema.names)
    with connect_duckdb() as duck:
        duck.register("entries", entries)
        sql = to_sql(explode("entries", columns=tuple(schema.names)), "duckdb")
        return duck.sql(f"SELECT {columns} FROM ({sql})").to_arrow_table().cast(arrow_schema(schema))
