"""Events are published, stored, matched and delivered whole or not at all; each has one position in the log.

A match is a row of `MATCHES` and stays symbolic where possible: most subscriptions belong to a group that differs in
one threshold, and a match names the group and the value of the event; the edge expands it for connected subscribers.
Solutions are the numbers of the quads that gave them, or terms where something was computed; such a match names its
one subscription by the position at which that was made.

An opaque payload is a body that is not RDF. It is carried inside an event and never matched: two quads about the event
itself hold its media type (`tw:syntax`) and its text, or its bytes as xsd:base64Binary (`tw:body`). Log, lake, export
and erasure therefore treat it like any other event.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model.terms import TW, XSD, iri, is_literal, literal, parse_literal


@dataclass(frozen=True)
class EventHeaders:
    """Properties of an event that its publisher gives beside its quads."""

    source: str | None = None
    application: str | None = None
    time: int | None = None
    """When it happened, in microseconds since the epoch; None means when it arrived."""
    syntax: str = "application/n-quads"
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Quad:
    """One statement of an event, as terms in canonical N-Triples text."""

    subject: str
    predicate: str
    object: str
    graph: str


@dataclass(frozen=True)
class Event:
    """A compound event: quads that share one graph, which is the event's id.

    `text` holds one quad a line, `subject⇥predicate⇥object`, in the publisher's order, without repeats and
    without a newline at the end. `id` is the graph's IRI without angle brackets.
    """

    id: str
    text: str
    headers: EventHeaders = EventHeaders()

    @property
    def quads(self) -> tuple[Quad, ...]:
        graph = f"<{self.id}>"
        rows = (line.split("\t") for line in self.text.split("\n"))
        return tuple(Quad(subject, predicate, obj, graph) for subject, predicate, obj in rows)


@dataclass(frozen=True)
class EventColumns(Sequence[Event]):
    """Events of one body as columns, with the headers that they have in common."""

    ids: Sequence[str]
    texts: pa.StringArray
    headers: EventHeaders

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> EventColumns: ...

    def __getitem__(self, index: int | slice) -> Event | EventColumns:
        if isinstance(index, slice):
            return EventColumns(self.ids[index], self.texts[index], self.headers)
        return Event(self.ids[index], self.texts[index].as_py(), self.headers)


@dataclass(frozen=True)
class StreamEvent:
    """An event, and the stream that it is for."""

    stream: str
    event: Event


@dataclass(frozen=True)
class LogEntry:
    """An event as the log holds it: at a position of a stream, with the time at which it was taken in."""

    position: int
    stream: str
    event: Event
    received: int


ENTRIES = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("stream", pa.string(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("application", pa.string()),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("received", pa.int64(), nullable=False),
        pa.field("syntax", pa.string(), nullable=False),
        pa.field("extensions", pa.string()),
    ]
)
"""Log entries as a table, the form in which Spark reads them. `event` is the id; times are microseconds;
`extensions` is a JSON object or null."""

MATCHED_COLUMNS = ("position", "stream", "event", "text", "source", "application", "time", "received", "extensions")
"""The columns of `ENTRIES` that are matched, stored and delivered; `syntax` is not."""


class LimitReached(StrEnum):
    """The limit that one subscription has reached on one event."""

    SOLUTIONS = "solutions"
    """It matches, with more solutions than are told."""
    WORK = "work"
    """Whether it matches was not found out."""
    STATE = "state"
    """A continuous query held more than it may, and is suspended: nothing more is told."""


MATCHES = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("subscription", pa.int64()),
        pa.field("group", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("solutions", pa.list_(pa.int32())),
        pa.field("terms", pa.list_(pa.string())),
        pa.field("limit", pa.string()),
    ]
)
"""A row belongs to an event (`position`), and either to a `group`, with the `value` that members compare with their
thresholds, or to one `subscription` (its `since`). A group has one row per solution; or one row in all, with the value
that passes most thresholds, if no member wants solutions. A subscription has at most one row. `solutions` holds,
solution after solution, the index of the quad that each pattern of the shape has matched; `terms` holds the rank and
the terms of each solution instead, null where a variable is unbound. Both are null for subscriptions that do not want
bindings. `limit` names the limit, one of `LimitReached`, that a subscription has reached on the event: such a row says
nothing else. It is null in all others."""


@cache
def no_matches() -> pa.Table:
    """An empty table of matches. It is made at its first use: Arrow's allocator reserves a gigabyte at the first
    allocation, which processes that limit their memory may not do before."""
    return MATCHES.empty_table()


STREAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
"""Names stand in URLs, so no character in them may need escaping."""

STREAM_NAME_CHARACTERS: Final = 128
"""The longest stream name; it is part of every stored quad and of metrics labels."""


SYNTAX = iri(TW + "syntax")
BODY = iri(TW + "body")
_BINARY = XSD + "base64Binary"
_PROBED = len(SYNTAX) - 9
_PROBE = np.frombuffer(SYNTAX.encode()[_PROBED : _PROBED + 8], np.uint64)[0]


@dataclass(frozen=True)
class OpaquePayload:
    """A body and the media type that its publisher gave it."""

    media_type: str
    body: bytes

    def text(self, event_id: str) -> str:
        """The text of the event that carries it."""
        lines = ((SYNTAX, literal(self.media_type)), (BODY, _body_term(self.body)))
        return "\n".join(f"{iri(event_id)}\t{predicate}\t{term}" for predicate, term in lines)


def parse_payload(event_id: str, text: str) -> OpaquePayload | None:
    """The opaque payload of an event; None for an event of RDF."""
    first, between, second = text.partition(f"\n{iri(event_id)}\t{BODY}\t")
    start = f"{iri(event_id)}\t{SYNTAX}\t"
    if not between or not first.startswith(start) or "\n" in first + second or not is_literal(second):
        return None
    media_type, found = first.removeprefix(start), parse_literal(second)
    if not is_literal(media_type):
        return None
    body = b64decode(found.lexical) if found.datatype == _BINARY else found.lexical.encode()
    return OpaquePayload(parse_literal(media_type).lexical, body)


def drop_opaque_payloads(entries: pa.Table) -> pa.Table:
    """The rows of a table of entries that are RDF: those that may match something."""
    likely = _find_candidates(entries["event"], entries["text"])
    carried = [row for row in likely if _is_payload(entries["event"][row].as_py(), entries["text"][row].as_py())]
    if not carried:
        return entries
    return entries.take(np.setdiff1d(np.arange(entries.num_rows), carried))


def _find_candidates(events: pa.ChunkedArray, texts: pa.ChunkedArray) -> list[int]:
    """Rows whose text has eight bytes of the predicate where an opaque payload has them. Only that place is read,
    because every event that is matched is checked: 70 ns an event, not 3 µs."""
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


def _is_payload(event_id: str, text: str) -> bool:
    return parse_payload(event_id, text) is not None


def _body_term(body: bytes) -> str:
    try:
        return literal(body.decode())
    except UnicodeDecodeError:
        return literal(b64encode(body).decode(), _BINARY)
