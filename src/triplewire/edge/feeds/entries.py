"""Entries of the log as the pieces of JSON that messages are put together from, each made once and only if needed."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from triplewire.access import Sight
from triplewire.edge.telling.frames import members
from triplewire.matching.results import format_timestamp
from triplewire.model import format_position
from triplewire.rdf import to_nquads

_FORMAT = "application/n-quads"


def moment(microseconds: int) -> str:
    """`timestamp`, at a tenth of the price where many fall into the same seconds."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_second(seconds)}.{rest:06}Z" if rest else f"{_second(seconds)}Z"


@lru_cache(4096)
def _second(seconds: int) -> str:
    return format_timestamp(seconds * 1_000_000).removesuffix("Z")


class Pieces:
    """The entries of one table, by position, or what is in sight of them."""

    def __init__(self, table: pa.Table, sight: Sight | None = None) -> None:
        self._table = table
        self._sight = sight
        self._seen: dict[int, str | None] = {}
        self._columns: dict[str, list[Any]] = {}
        self._briefs: dict[int, bytes] = {}
        self._bodies: dict[int, bytes] = {}
        self._whole: dict[int, bytes] = {}

    @cached_property
    def rows(self) -> dict[int, int]:
        """The row of each position, in order; a position that is not in it was trimmed away."""
        return {position: row for row, position in enumerate(self._column("position"))}

    def shows(self, position: int) -> bool:
        """Whether anything of it is in sight; of one that is not in the table nothing is."""
        return position in self.rows and (self._sight is None or self._text_in_sight(position) is not None)

    def brief(self, position: int) -> bytes:
        """Where and when it happened: `"position", "stream", "event", "time"`."""
        found = self._briefs.get(position)
        if found is None:
            found = self._briefs[position] = members(
                {
                    "position": format_position(position),
                    "stream": self._text("stream", position),
                    "event": self._text("event", position),
                    "time": self.time(position),
                }
            )
        return found

    def time(self, position: int) -> str:
        """When it happened."""
        return moment(self._column("time")[self.rows[position]])

    def id(self, position: int) -> str:
        """Of the event."""
        return self._text("event", position)

    def body(self, position: int) -> bytes:
        """What happened: `"format", "body"`."""
        found = self._bodies.get(position)
        if found is None:
            found = self._bodies[position] = members({"format": _FORMAT, "body": self.nquads(position)})
        return found

    def nquads(self, position: int) -> str:
        return to_nquads(self._text("event", position), self.text(position))

    def text(self, position: int) -> str:
        """What of it is in sight."""
        if self._sight is None:
            return self._text("text", position)
        found = self._text_in_sight(position)
        assert found is not None, "nobody tells of what is out of sight"
        return found

    def _text_in_sight(self, position: int) -> str | None:
        assert self._sight is not None
        if position not in self._seen:
            told = (self._text(name, position) for name in ("stream", "event", "text"))
            self._seen[position] = self._sight.redacted(*told)
        return self._seen[position]

    def origin(self, position: int) -> bytes:
        """Who said so: `"source", "application"`, and `"headers"` where there are others."""
        row = self.rows[position]
        told = members({name: self._column(name)[row] for name in ("source", "application")})
        others = self._column("extensions")[row]
        return told + b',"headers":' + others.encode() if others else told

    def headers(self) -> list[str | None]:
        """What publishers said of each event beside that, as JSON; None where they said nothing."""
        return self._column("extensions") if "extensions" in self._table.column_names else []

    def members(self, position: int) -> bytes:
        """All of that, as the members of a JSON object."""
        found = self._whole.get(position)
        if found is None:
            parts = (self.brief(position), self.origin(position), self.body(position))
            found = self._whole[position] = b",".join(parts)
        return found

    def entry(self, position: int) -> dict[str, Any]:
        """The entry as a row."""
        told = {name: self._column(name)[self.rows[position]] for name in self._table.column_names}
        return told if self._sight is None else {**told, "text": self.text(position)}

    def _text(self, name: str, position: int) -> str:
        found: str = self._column(name)[self.rows[position]]
        return found

    def _column(self, name: str) -> list[Any]:
        if name not in self._columns:
            self._columns[name] = self._table.column(name).to_pylist()
        return self._columns[name]
