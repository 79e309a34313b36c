"""Entries: events as rows of the log, the same in every twin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final, TypeAlias

import orjson
import pyarrow as pa

from triplewire.log.ports import Publication
from triplewire.model import ENTRIES, Event

Row: TypeAlias = tuple[int, str, str, str, str | None, str | None, int, int, str, str | None]
"""The values of one entry in the order of `ENTRIES`."""

_TEXT: Final = 3
_EXTENSIONS: Final = 9


@cache
def nothing() -> pa.Table:
    """Made once: readers ask ten times a second and mostly there is nothing new."""
    return ENTRIES.empty_table()


def rows(events: Iterable[tuple[str, Event]], positions: Iterator[int], received: int) -> Iterator[Row]:
    """What is stored for events of streams, which take the next positions one after the other."""
    for stream, event in events:
        headers = event.headers
        yield (
            next(positions),
            stream,
            event.id,
            event.text,
            headers.source,
            headers.application,
            received if headers.time is None else headers.time,
            received,
            headers.syntax,
            orjson.dumps(dict(headers.extensions)).decode() if headers.extensions else None,
        )


def table(pages: Iterable[Sequence[Row]]) -> pa.Table:
    """Rows as an `ENTRIES` table. They come in pages: tuples that live shortly cost the garbage collector little."""
    columns: list[list[int | str | None]] = [[] for _ in ENTRIES]
    for page in pages:
        for column, values in zip(columns, zip(*page, strict=True), strict=False):
            column.extend(values)
    if not columns[0]:
        return nothing()
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ENTRIES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ENTRIES)


def keys(publications: Sequence[Publication]) -> list[str]:
    return [publication.key for publication in publications if publication.key is not None]


def size(row: Row) -> int:
    """What an event counts for retention and for pages: its text and its extensions, in bytes as UTF-8."""
    text, others = row[_TEXT], row[_EXTENSIONS]
    return _bytes(text) + (_bytes(others) if others else 0)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
