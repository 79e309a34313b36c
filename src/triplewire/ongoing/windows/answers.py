"""Answers: what windows told, as events of the streams which that is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.codec.headers import written
from triplewire.model import Event, EventHeaders
from triplewire.model.events import OpaquePayload
from triplewire.ongoing.windows.results import Kind

_TYPES: Mapping[str, str] = {
    Kind.SELECT: "application/sparql-results+json",
    Kind.CONSTRUCT: "application/n-triples",
    Kind.SUSPENDED: "application/problem+json",
}


def answer_events(results: pa.Table) -> list[tuple[str, Event]]:
    """The events that carry the rows of a `RESULTS` table, in order, each with its stream. Their ids are always the
    same, and so are they. What is for no stream is left out."""
    return [(row["into"], _event(row)) for row in results.to_pylist() if row["into"] is not None]


def suspensions(results: pa.Table) -> Mapping[str, str]:
    """Which queries reached a limit, by their ids, and what they did."""
    rows = results.filter(pc.equal(results["kind"], Kind.SUSPENDED.value)).to_pylist()
    return {row["query"]: orjson.loads(row["payload"])["detail"] for row in rows}


def _event(row: Mapping[str, Any]) -> Event:
    media_type, text = _body(row)
    headers = EventHeaders(time=row["end"], syntax=media_type, extensions=dict(_extensions(row)))
    return Event(row["event"], text, headers)


def _body(row: Mapping[str, Any]) -> tuple[str, str]:
    payload = row["payload"]
    media_type = _TYPES[row["kind"]]
    if row["kind"] == Kind.CONSTRUCT and payload:
        return media_type, "\n".join(_tabbed(line) for line in payload.rstrip("\n").split("\n"))
    # That a window has no triples any more is told, too, and an event has some.
    return media_type, OpaquePayload(media_type, payload.encode()).text(row["event"])


def _tabbed(line: str) -> str:
    """A line of N-Triples as a line of an event. Subjects and predicates are IRIs, which hold no space."""
    subject, predicate, rest = line.split(" ", 2)
    return f"{subject}\t{predicate}\t{rest.removesuffix(' .')}"


def _extensions(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "query", row["query"]
    for name in ("start", "end"):
        if row[name] is not None:
            yield f"window-{name}", written(row[name])
    if row["report"] is not None:
        yield "report", row["report"]
    if row["revision"]:
        yield "revision", str(row["revision"])
