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
    """How a query is to be answered; what is left out is up to the broker."""

    format: str
    """`json`, `xml`, `csv`, `tsv`; of graphs `turtle`, `ntriples`, `jsonld`, `rdfxml`."""
    engine: str
    """`duckdb` or `spark`."""
    timeout: float
    """Seconds after which the query is ended, less than what the broker allows."""
    entailment: str
    """`rdfs`."""
    explain: str
    """`text` or `json`: not the answer, but how it is found."""
    version: int
    """The version of the lake to ask, in place of the newest."""
    as_of: str
    """The lake as it was then: ISO 8601 with a zone, in place of `version`."""


@dataclass(frozen=True)
class QueryResponse:
    """An answer that has begun: its media type, and its bytes as they come."""

    content_type: str
    _content: aiohttp.StreamReader

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Raises Unavailable if the broker cuts the answer off; what was taken before is then not the whole."""
        try:
            async for piece in self._content.iter_any():
                yield piece
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"the answer was cut off, it may have gone over a limit: {error}") from error


class ResultParser:
    """Takes a SPARQL JSON results document in pieces and gives its solutions, each as soon as it is whole."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        """The variables, known with the first solution, or at the end."""
        self._text = ""
        self._decode = getincrementaldecoder("utf-8")().decode
        self._begun = False

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The solutions that are whole now. The iterator must be used up before the next call."""
        self._text += self._decode(data)
        if not self._begun and (found := _BINDINGS.search(self._text)):
            self.names = _names(self._text[: found.start()])
            self._text = self._text[found.end() :]
            self._begun = True
        return self._whole() if self._begun else iter(())

    def _whole(self) -> Iterator[dict[str, Any]]:
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
    """Of what stands before the solutions, made whole."""
    document = json.loads(before.rstrip().rstrip(",") + "}}")
    return tuple(document.get("head", {}).get("vars", ()))


# Pages: events of a broker's log as tables, a stretch of positions at a time.


@dataclass(frozen=True)
class LogPage:
    """Events in order, as a table of those columns of `ENTRIES` that say what happened."""

    events: pa.Table
    reached: int
    """The position up to which these are all."""
    earliest: int | None
    """The first position that is kept, if some that were asked for are gone."""


def parse_log_page(body: bytes) -> LogPage:
    table = pa.ipc.open_stream(body).read_all()
    told = {name.decode(): parse_position(value.decode()) for name, value in table.schema.metadata.items()}
    return LogPage(table.replace_schema_metadata(), told["reached"], told.get("earliest"))
