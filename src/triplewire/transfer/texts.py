"""Texts: a page of events as N-Quads or TriG.

Both are made of the text that the lake has, by one SQL expression for a page. No quad is parsed or looked at by
itself:
terms are canonical N-Triples, which both formats take as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from triplewire.model.terms import TW, XSD
from triplewire.storage.lake.data_files import connect_duckdb
from triplewire.transfer.formats import Format

_ESCAPED = r"""replace(replace({0}, '\', '\\'), '"', '\"')"""
_INSTANT = r"regexp_replace(strftime(make_timestamp({0}), '%Y-%m-%dT%H:%M:%S.%f'), '\.?0*$', '') || 'Z'"

_VALUES: Mapping[str, str] = {
    "stream": _ESCAPED.format("stream"),
    "source": _ESCAPED.format("source"),
    "application": _ESCAPED.format("application"),
    "time": _INSTANT.format("time"),
    "received": _INSTANT.format("received"),
    "extensions": _ESCAPED.format("extensions"),
}
_TIMES = ("time", "received")

HEADS: Mapping[Format, bytes] = {
    Format.NQUADS: b"",
    Format.TRIG: f"@prefix tw: <{TW}> .\n@prefix xsd: <{XSD}> .\n".encode(),
}
"""What stands before the first event where headers are written."""


class TextWriter:
    """Writes pages of entries in one of the formats. Belongs to one thread."""

    def __init__(self, format: Format, *, headers: bool) -> None:
        self._duck = connect_duckdb()
        said = _SAID[format]() if headers else "''"
        self._sql = f"SELECT {said} || {_QUADS[format]} AS text FROM entries"
        self.head = HEADS[format] if headers else b""

    def write(self, entries: pa.Table) -> memoryview:
        """The events, one after the other."""
        self._duck.register("entries", entries)
        made = pa.table(self._duck.sql(self._sql))["text"].cast(pa.large_string()).combine_chunks()
        self._duck.unregister("entries")
        return _bytes(made)


def _bytes(texts: pa.LargeStringArray) -> memoryview:
    """Arrow keeps the texts of an array next to one another, so that they need not be put together."""
    texts = texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
    if not len(texts):
        return memoryview(b"")
    _, places, data = texts.buffers()
    ends = np.frombuffer(places, np.int64)
    return memoryview(data)[ends[texts.offset] : ends[texts.offset + len(texts)]]


def _line(name: str) -> str:
    type = f"^^<{XSD}dateTime>" if name in _TIMES else ""
    return f"""coalesce('<' || event || '> <{TW}{name}> "' || {_VALUES[name]} || '"{type} .' || chr(10), '')"""


def _lines() -> str:
    return " || ".join(_line(name) for name in _VALUES)


def _list() -> str:
    """Predicates of one subject; the stream is always there."""
    written = [
        f"""coalesce('{" ;" if name != "stream" else ""} tw:{name} "' || {value} || '"{type}', '')"""
        for name, value in _VALUES.items()
        for type in ["^^xsd:dateTime" if name in _TIMES else ""]
    ]
    return f"'<' || event || '>' || {' || '.join(written)} || ' .' || chr(10)"


_SAID = {Format.NQUADS: _lines, Format.TRIG: _list}

_SPACED = "replace(text, chr(9), ' ')"

_END = "' <' || event || '> .' || chr(10)"

_QUADS: Mapping[Format, str] = {
    Format.NQUADS: f"replace({_SPACED}, chr(10), {_END}) || {_END}",
    Format.TRIG: f"'<' || event || '> {{' || chr(10) || '  ' || replace({_SPACED}, chr(10), ' .' || chr(10) || '  ') "
    "|| ' .' || chr(10) || '}' || chr(10)",
}
