"""Origins: where events or quads come from, as Spark reads them. A lake's table is one, a running broker another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql.datasource import Filter, InputPartition
from pyspark.sql.types import StructType


@dataclass
class Part(InputPartition):
    """What one task reads: the positions p with `after < p <= upto`, of these files if they are in files."""

    after: int
    upto: int
    files: tuple[str, ...] = ()


class Origin(Protocol):
    """It travels to the executors, and opens there what it needs. All but `read` is called in the driver."""

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        """Hold to these from now on; those that are left to Spark come back."""

    def reach(self, after: int, most: int | None = None) -> int:
        """The position up to which everything can be read now, with at most so many positions after the first that
        holds something; `after` itself if there is nothing new."""

    def parts(self, after: int, upto: int) -> list[Part]:
        """What tasks are to read of the positions between two, each row in one part."""

    def read(self, part: Part, schema: StructType) -> Iterator[pa.RecordBatch]:
        """The rows of one part, with these columns. The same part gives the same rows each time."""
