"""Events as the log gives them, to be sifted."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from triplewire.log.entries import table
from triplewire.model import Event, Headers


def entries(events: Iterable[Event], stream: str = "test", first: int = 1) -> pa.Table:
    """The events at positions from the first on."""
    return table([[_row(event, stream, first + number) for number, event in enumerate(events)]])


def _row(
    event: Event, stream: str, position: int
) -> tuple[int, str, str, str, str | None, str | None, int, int, str, None]:
    headers: Headers = event.headers
    return (position, stream, event.id, event.text, headers.source, headers.application, 0, 0, headers.syntax, None)


def positions(found: pa.Table) -> list[int]:
    told: list[int] = found["position"].to_pylist()
    return told
