"""Bounds: zone maps are made of texts of terms. One that tells the name of what was erased becomes another, which has
the same rows on both its sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from triplewire.config.files import replacing
from triplewire.lake.assignments import under
from triplewire.lake.blots import UNFINISHED, pad
from triplewire.lake.houses import House
from triplewire.lake.keys import DIMENSIONS
from triplewire.lake.logs import LogBook
from triplewire.lake.ports import DataFile
from triplewire.lake.relations import engine
from triplewire.lake.transformations import transformation
from triplewire.model import Erasure, Scope
from triplewire.model.terms import iri
from triplewire.sparql import to_sql

_LEAST = "<"
"""Below all IRIs, and above everything else."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of all zone maps that a lake has had."""

    house: House
    erasure: Erasure

    def revise(self) -> int:
        """Write anew, in their own places, the maps that tell the name; how many. Rows are looked at as they are: what
        is erased must be gone from them. Done again it does nothing."""
        if self.erasure.scope is Scope.SOURCE:
            return 0
        table = self.house.maps.path
        revised = {path: self._revised(path) for path in table.glob("*.parquet")}
        known = {path.name: _written(path, found) for path, found in revised.items() if found is not None}
        if known:
            LogBook(table, known).revise()
            self.house.maps.forget()
        return len(known)

    def _revised(self, path: Path) -> pa.Table | None:
        """A map without the name; None for one that does not tell it."""
        zones = pq.read_table(path, partitioning=None)
        (order,) = set(zones["transformation"].to_pylist())
        needle = transformation(order).of_key(iri(self.erasure.name)).strip("<>")
        found = zones
        for dimension in DIMENSIONS:
            bounds = sorted(_bounds(zones, dimension))
            for place, bound in enumerate(bounds):
                if needle in bound:
                    bounds[place] = self._instead(dimension, bound, order, max([_LEAST, *bounds[:place]]))
                    found = _replaced(found, dimension, bound, bounds[place])
        return None if found is zones else found

    def _instead(self, dimension: str, bound: str, order: str, lower: str) -> str:
        """A bound that parts the same rows, and is above another."""
        paths = list(self.house.lake.files().paths)
        placed = transformation(order)
        column = to_sql(placed.of_column(exp.column(dimension)), "duckdb")
        below = to_sql(under(dimension, bound, placed), "duckdb")
        plain = " AND object_number IS NULL AND object_time IS NULL" if dimension == "object" else ""
        source = "read_parquet($files, hive_partitioning = false)"
        with engine() as duck:
            query = f"SELECT max({column}) FROM {source} WHERE {below}{plain}"
            ((last,),) = duck.execute(query, {"files": paths}).fetchall() if paths else [(None,)]
        return between(max(lower, last or ""), bound)


def between(under: str, over: str) -> str:
    """A text that is greater than one and at most another, made of the first."""
    place = next((at for at, (mine, other) in enumerate(zip(under, over, strict=False)) if mine != other), len(under))
    if place < len(under) and not 0xD7FF <= ord(under[place]) < 0xE000:
        following = under[:place] + chr(ord(under[place]) + 1)
        if following < over:
            return following
    return under + "\x01"


def _bounds(zones: pa.Table, dimension: str) -> Iterator[str]:
    for end in ("least", "below"):
        yield from {text for text in zones[f"{end}_{dimension}"].to_pylist() if text}


def _replaced(zones: pa.Table, dimension: str, bound: str, other: str) -> pa.Table:
    for end in ("least", "below"):
        name = f"{end}_{dimension}"
        texts = [other if text == bound else text for text in zones[name].to_pylist()]
        zones = zones.set_column(zones.column_names.index(name), zones.schema.field(name), pa.array(texts, pa.string()))
    return zones


def _written(path: Path, zones: pa.Table) -> DataFile:
    """Put a map in the place of another, durably."""
    with replacing(path, scratch=path.with_name(path.name + UNFINISHED)) as file:
        pq.write_table(zones, file, compression="zstd", write_statistics=False, store_schema=False)
        file.flush()
        pad(Path(file.name), path.stat().st_size)
    return DataFile(path.name, path.stat().st_size, zones.num_rows, {})
