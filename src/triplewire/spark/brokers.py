"""A running broker as an origin: what its log keeps, read over HTTP in pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual
from pyspark.sql.types import StructType

from triplewire.config import limits
from triplewire.model import START, format_position, parse_position
from triplewire.model.errors import BadRequest, NotFound
from triplewire.spark.options import Options
from triplewire.spark.origins import Part
from triplewire.spark.schemas import arrow_schema, events_of
from triplewire.storage.lake.data_files import connect_duckdb
from triplewire.storage.registry.streams import check_stream_name

if TYPE_CHECKING:
    from triplewire.client import Client


_POSITION = ("position",)


class BrokerOrigin:
    """Events or quads of a broker. Of filters it takes positions and the stream; the rest is left to Spark."""

    def __init__(self, options: Options) -> None:
        assert options.url is not None
        self._url = options.url
        self._options = options
        self._stream = options.stream
        self._after = options.after
        self._upto = options.upto

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        return [each for each in filters if not self._takes(each)]

    def reach(self, after: int, most: int | None = None) -> int:
        with _client(self._url, self._options.token) as client:
            head = parse_position(client.health()["head"])
            if most is None or head <= after:
                return max(after, head)
            # Who asks after the start asks for what is kept; whether something was before that is told to others.
            probe = max(after, START + 1)
            earliest = client.page(probe, probe + 1).earliest
        if earliest is not None and after > START and self._options.fail_on_gap:
            raise NotFound(
                f"events after {format_position(after)} are gone from the log of {self._url}, which begins at {format_position(earliest)}: "
                "read them from its lake (the option path), or go on without them (fail_on_gap false)"
            )
        return min(head, max(after, (earliest or 0) - 1) + most)

    def parts(self, after: int, upto: int) -> list[Part]:
        first, last = max(after, self._after), min(upto, self._upto)
        marks = [*range(first, last, limits.SPARK_PART_EVENTS), last] if first < last else []
        return [Part(begin, end) for begin, end in pairwise(marks)]

    def read(self, part: Part, schema: StructType) -> Iterator[pa.RecordBatch]:
        after = part.after
        with _client(self._url, self._options.token) as client:
            while after < part.upto:
                page = client.page(after, part.upto, self._stream)
                found = _quads(page.events, schema) if self._options.what == "quads" else events_of(page.events, schema)
                yield from found.to_batches(limits.SPARK_ROWS)
                if page.reached <= after:
                    return
                after = page.reached

    def _takes(self, given: Filter) -> bool:
        """Whether it is taken care of here, in full."""
        if isinstance(given, EqualTo) and given.attribute == ("stream",) and self._options.stream is None:
            return self._takes_stream(given.value)
        if not isinstance(given, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
            return False
        if given.attribute != _POSITION:
            return False
        if isinstance(given, EqualTo | GreaterThan | GreaterThanOrEqual):
            self._after = max(self._after, given.value - (not isinstance(given, GreaterThan)))
        if isinstance(given, EqualTo | LessThan | LessThanOrEqual):
            self._upto = min(self._upto, given.value - isinstance(given, LessThan))
        return True

    def _takes_stream(self, name: str) -> bool:
        """What is no name of a stream is left to Spark, which finds nothing; so is a second one."""
        try:
            wanted = check_stream_name(name)
        except BadRequest:
            return False
        if self._stream not in (None, wanted):
            return False
        self._stream = wanted
        return True


def _client(url: str, token: str | None) -> Client:
    # Whoever reads files does without the client and what it loads.
    from triplewire.client import Client

    return Client(url, token=token)


def _quads(entries: pa.Table, schema: StructType) -> pa.Table:
    """Log entries taken apart as the lake does it."""
    from triplewire.sparql import explode, to_sql

    columns = ", ".join(f'"{name}"' for name in schema.names)
    with connect_duckdb() as duck:
        duck.register("entries", entries)
        sql = to_sql(explode("entries", columns=tuple(schema.names)), "duckdb")
        return duck.sql(f"SELECT {columns} FROM ({sql})").to_arrow_table().cast(arrow_schema(schema))
