"""Events: what is published, stored, matched and delivered whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class Headers:
    """What a publisher says about an event beside its quads."""

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
    headers: Headers = Headers()

    @property
    def quads(self) -> tuple[Quad, ...]:
        graph = f"<{self.id}>"
        rows = (line.split("\t") for line in self.text.split("\n"))
        return tuple(Quad(subject, predicate, obj, graph) for subject, predicate, obj in rows)


@dataclass(frozen=True)
class Addressed:
    """An event, and the stream that it is for."""

    stream: str
    event: Event


@dataclass(frozen=True)
class Entry:
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

MATTER = ("position", "stream", "event", "text", "source", "application", "time", "received", "extensions")
"""The columns of `ENTRIES` that are matched, stored and told; the other says how an event was written."""
