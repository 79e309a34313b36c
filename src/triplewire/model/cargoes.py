"""Cargoes: bodies that are no RDF, carried as they are inside of an event and never matched.

Such an event has two quads about itself: `tw:syntax`, its media type, and `tw:body`, its text, or its bytes as
xsd:base64Binary where they are no UTF-8. So log, lake, export and erasure hold it like any other.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model.terms import TW, XSD, iri, is_literal, literal, parse_literal

SYNTAX = iri(TW + "syntax")
BODY = iri(TW + "body")
_BINARY = XSD + "base64Binary"
_PROBED = len(SYNTAX) - 9
_PROBE = np.frombuffer(SYNTAX.encode()[_PROBED : _PROBED + 8], np.uint64)[0]


@dataclass(frozen=True)
class Cargo:
    """A body and the media type that its publisher gave it."""

    media_type: str
    body: bytes

    def text(self, event_id: str) -> str:
        """The text of the event that carries it."""
        lines = ((SYNTAX, literal(self.media_type)), (BODY, _term(self.body)))
        return "\n".join(f"{iri(event_id)}\t{predicate}\t{term}" for predicate, term in lines)


def cargo_of(event_id: str, text: str) -> Cargo | None:
    """What an event carries; None for an event of RDF."""
    first, between, second = text.partition(f"\n{iri(event_id)}\t{BODY}\t")
    start = f"{iri(event_id)}\t{SYNTAX}\t"
    if not between or not first.startswith(start) or "\n" in first + second or not is_literal(second):
        return None
    media_type, found = first.removeprefix(start), parse_literal(second)
    if not is_literal(media_type):
        return None
    body = b64decode(found.lexical) if found.datatype == _BINARY else found.lexical.encode()
    return Cargo(parse_literal(media_type).lexical, body)


def without_cargoes(entries: pa.Table) -> pa.Table:
    """The rows of a table of entries that are RDF: those that may match something."""
    likely = _likely(entries["event"], entries["text"])
    carried = [row for row in likely if _is_cargo(entries["event"][row].as_py(), entries["text"][row].as_py())]
    if not carried:
        return entries
    return entries.take(np.setdiff1d(np.arange(entries.num_rows), carried))


def _likely(events: pa.ChunkedArray, texts: pa.ChunkedArray) -> list[int]:
    """Rows whose text has the mark where that of a cargo has it. It is looked for at that one place, because all that
    is matched is looked at: some 70 ns an event, not 3 µs."""
    text = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
    if not pa.types.is_string(text.type) or not len(text):
        return pc.indices_nonzero(pc.match_substring(texts, f"\t{BODY}\t")).to_pylist()  # type: ignore[no-any-return]
    _, places, data = text.buffers()
    starts = np.frombuffer(places, np.int32)[text.offset : text.offset + len(text)].astype(np.int64)
    lengths = pc.binary_length(events).to_numpy()
    # The text begins with the id in angle brackets and a tab; eight bytes in the middle of the predicate tell enough.
    spots = starts + lengths + 3 + _PROBED
    inside = np.flatnonzero(spots + 8 <= data.size)
    signs = np.ndarray((max(data.size - 7, 0),), np.uint64, data, strides=(1,))[spots[inside]]
    return inside[signs == _PROBE].tolist()  # type: ignore[no-any-return]


def _is_cargo(event_id: str, text: str) -> bool:
    return cargo_of(event_id, text) is not None


def _term(body: bytes) -> str:
    try:
        return literal(body.decode())
    except UnicodeDecodeError:
        return literal(b64encode(body).decode(), _BINARY)
