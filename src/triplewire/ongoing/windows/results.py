"""Results: what windows told, as a table."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa


class Kind(StrEnum):
    """What a result is."""

    SELECT = "select"
    """Its payload is a SPARQL JSON results document."""
    CONSTRUCT = "construct"
    """Its payload is N-Triples."""
    SUSPENDED = "suspended"
    """The query reached a limit and is asked no more; its payload says which."""


RESULTS = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("into", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("at", pa.int64()),
        pa.field("revision", pa.int32(), nullable=False),
        pa.field("report", pa.string()),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("payload", pa.string(), nullable=False),
        pa.field("windows", pa.string()),
        pa.field("event", pa.string(), nullable=False),
    ]
)
"""A row is what a query, by its id, told at an instant: the moment `end`, and, where a window of triples closed, the
position `at` of the event that closed it, else 0. `position` is up to where events were known then. `start` is where
the first of the windows began that are shown at the instant; `windows` is a JSON list of all of them. `revision` 0 is
what was told when windows closed. `event` is the id of the event that carries it, the same whenever it is made again,
and `into` the stream which that is for. Rows are in the order of `end`, `at`, `query` and `revision`; suspensions come
last, and have no bounds."""
