"""Events as the log gives them, to be sifted."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from triplewire.model import Event, EventHeaders
from triplewire.storage.log.appending import entries_table


def entries(events: Iterable[Event], stream: str = "test", first: int = 1) -> pa.Table:
    """The events at positions from the first on."""
    return entries_table([[_row(event, stream, first + number) for number, event in enumerate(events)]])


def _row(
    event: Event, stream: str, position: int
) -> tuple[int, str, str, str, str | None, str | None, int, int, str, None]:
    headers: EventHeaders = event.headers
    return (position, stream, event.id, event.text, headers.source, headers.application, 0, 0, headers.syntax, None)


def positions(found: pa.Table) -> list[int]:
    told: list[int] = found["position"].to_pylist()
    return told
