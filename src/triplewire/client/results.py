"""Results of queries and pages of the log, read as they arrive."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import aiohttp
import pyarrow as pa

from triplewire.model import parse_position
from triplewire.model.errors import Unavailable

_BINDINGS = re.compile(r'"bindings"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


class QueryOptions(TypedDict, total=False):
    """Options of a query; the broker decides those that are omitted."""

    format: str
    """`json`, `xml`, `csv`, `tsv`; for graphs `turtle`, `ntriples`, `jsonld`, `rdfxml`."""
    engine: str
    """`duckdb` or `spark`."""
    timeout: float
    """Seconds after which the query is cancelled, at most the limit of the broker."""
    entailment: str
    """`rdfs`."""
    explain: str
    """`text` or `json`: the plan and its profile in place of the answer."""
    version: int
    """The version of the lake to read, in place of the newest."""
    as_of: str
    """The lake at a time, in place of `version`: ISO 8601 with a zone."""


@dataclass(frozen=True)
class QueryResponse:
    """An answer that has begun: its media type, and its bytes as they arrive."""

    content_type: str
    _content: aiohttp.StreamReader

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Raises Unavailable if the broker cuts the answer off; the pieces before are then not the whole answer."""
        try:
            async for piece in self._content.iter_any():
                yield piece
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"the answer was cut off, it may have gone over a limit: {error}") from error


class ResultParser:
    """An incremental parser of SPARQL JSON results: pieces in, each solution out as soon as it is complete."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        """The variables, known with the first solution, or at the end."""
        self._text = ""
        self._decode = getincrementaldecoder("utf-8")().decode
        self._begun = False

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the solutions that are complete now. The iterator must be exhausted before the next call."""
        self._text += self._decode(data)
        if not self._begun and (found := _BINDINGS.search(self._text)):
            self.names = _names(self._text[: found.start()])
            self._text = self._text[found.end() :]
            self._begun = True
        return self._complete() if self._begun else iter(())

    def _complete(self) -> Iterator[dict[str, Any]]:
        start = 0
        while self._text.startswith("{", start := _after_comma(self._text, start)):
            try:
                row, start = _DECODER.raw_decode(self._text, start)
            except json.JSONDecodeError:
                break
            yield row
        self._text = self._text[start:]


def _after_comma(text: str, start: int) -> int:
    found = _BETWEEN.match(text, start)
    return found.end() if found else start


def _names(before: str) -> tuple[str, ...]:
    """Parse the text before the solutions, closed to a document."""
    document = json.loads(before.rstrip().rstrip(",") + "}}")
    return tuple(document.get("head", {}).get("vars", ()))


@dataclass(frozen=True)
class LogPage:
    """A range of the log: events in order, as a table of columns of `ENTRIES`."""

    events: pa.Table
    position: int
    """The page holds all events up to this position."""
    earliest: int | None
    """The first position that the log keeps, if earlier ones were requested."""


def parse_log_page(body: bytes) -> LogPage:
    table = pa.ipc.open_stream(body).read_all()
    positions = {name.decode(): parse_position(value.decode()) for name, value in table.schema.metadata.items()}
    return LogPage(table.replace_schema_metadata(), positions["position"], positions.get("earliest"))
