"""Pages: events of a broker's log as tables, a stretch of positions at a time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from triplewire.model import parse_position


@dataclass(frozen=True)
class Page:
    """Events in order, as a table of those columns of `ENTRIES` that say what happened."""

    events: pa.Table
    reached: int
    """The position up to which these are all."""
    earliest: int | None
    """The first position that is kept, if some that were asked for are gone."""


def read(body: bytes) -> Page:
    table = pa.ipc.open_stream(body).read_all()
    told = {name.decode(): parse_position(value.decode()) for name, value in table.schema.metadata.items()}
    return Page(table.replace_schema_metadata(), told["reached"], told.get("earliest"))
