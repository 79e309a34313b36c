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
    likely = pc.indices_nonzero(pc.match_substring(entries["text"], f"\t{BODY}\t")).to_pylist()
    carried = [row for row in likely if _is_cargo(entries["event"][row].as_py(), entries["text"][row].as_py())]
    if not carried:
        return entries
    return entries.take(np.setdiff1d(np.arange(entries.num_rows), carried))


def _is_cargo(event_id: str, text: str) -> bool:
    return cargo_of(event_id, text) is not None


def _term(body: bytes) -> str:
    try:
        return literal(body.decode())
    except UnicodeDecodeError:
        return literal(b64encode(body).decode(), _BINARY)
