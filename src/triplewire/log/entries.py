"""Entries: events as rows of the log, the same in every twin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import TypeAlias

import orjson
import pyarrow as pa

from triplewire.log.ports import Publication
from triplewire.model import ENTRIES

Row: TypeAlias = tuple[int, str, str, str, str | None, str | None, int, int, str, str | None]
"""The values of one entry in the order of `ENTRIES`."""


@cache
def nothing() -> pa.Table:
    """Made once: readers ask ten times a second and mostly there is nothing new."""
    return ENTRIES.empty_table()


def rows(publications: Iterable[Publication], positions: Iterator[int], received: int) -> Iterator[Row]:
    """What is stored for publications whose events take the next positions, one after the other."""
    for publication in publications:
        streams = repeat(publication.stream) if isinstance(publication.stream, str) else publication.stream
        for stream, event in zip(streams, publication.events, strict=False):
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


def fresh(publications: Sequence[Publication], known: Mapping[str, range]) -> list[Publication]:
    """Those to store: of a key, the first, if it is not known."""
    keyed = {publication.key: publication for publication in reversed(publications)}
    return [each for each in publications if each.key is None or (each.key not in known and keyed[each.key] is each)]


def ranges(publications: Sequence[Publication], first: int, known: Mapping[str, range]) -> list[range]:
    """The positions of each publication when the first event of those that are stored takes `first`."""
    found, had = [], dict(known)
    for publication in publications:
        taken = had.get(publication.key or "")
        if taken is None:
            taken = range(first, first + len(publication.events))
            first = taken.stop
        found.append(taken)
        if publication.key is not None:
            had[publication.key] = taken
    return found


def keys(publications: Sequence[Publication]) -> list[str]:
    return [publication.key for publication in publications if publication.key is not None]


def size(text: str) -> int:
    """What an event's text counts for retention: its bytes as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
