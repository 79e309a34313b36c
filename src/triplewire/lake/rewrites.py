"""Rewrites: the rows of some files of the table, written into others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from triplewire.lake.ports import DataFile
from triplewire.lake.quads import FileWriter
from triplewire.lake.relations import parquet, quoted


@dataclass(frozen=True)
class Rewrite:
    """What one task does. SQL in it is made of the zone map and of settings, never of what a user wrote."""

    inputs: tuple[str, ...]
    """Relative to the table."""
    rows: int
    """How many a file should have, about."""
    zones: tuple[str, ...]
    """Those whose rows are written; an empty one is for what stays fresh."""
    assigned: str = ""
    """An expression that gives the zone of a row, where there are several."""
    kept: str = "true"
    """A condition for the rows that stay."""


def rewritten(table: Path, rewrite: Rewrite) -> Iterator[DataFile]:
    """Files that wait for their commit, each on the disk when it is told of. None is empty."""
    writer = FileWriter(table)
    try:
        _load(writer, table, rewrite)
        for zone, rows in _found(writer):
            for low, high in _pieces(writer, zone, rows, rewrite.rows):
                inside = f"zone = {quoted(zone)} AND position > {low} AND position <= {high}"
                yield writer.write_quads(f"(FROM moved WHERE {inside})", zone or None)
    finally:
        writer.close()


def _load(writer: FileWriter, table: Path, rewrite: Rewrite) -> None:
    zone = rewrite.assigned or quoted(rewrite.zones[0])
    zones = ", ".join(map(quoted, rewrite.zones))
    source = parquet(str(table / each) for each in rewrite.inputs)
    writer.duck.execute(
        f"CREATE OR REPLACE TEMP TABLE moved AS SELECT *, {zone} AS zone FROM {source} "
        f"WHERE ({rewrite.kept}) AND {zone} IN ({zones})"
    )


def _found(writer: FileWriter) -> Sequence[tuple[str, int]]:
    return writer.duck.execute("SELECT zone, count(*) FROM moved GROUP BY zone ORDER BY zone").fetchall()


def _pieces(writer: FileWriter, zone: str, rows: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Stretches of positions, each open below, with about as many rows as are wanted; the rows of one position stay
    together."""
    count = max(1, rows // wanted)
    shares = ", ".join(str(each / count) for each in range(1, count))
    query = f"SELECT min(position) - 1, max(position), quantile_disc(position, [{shares}]) FROM moved WHERE zone = $1"
    ((before, last, cuts),) = writer.duck.execute(query, [zone]).fetchall()
    yield from pairwise(sorted({before, *(cuts or ()), last}))
