"""Results of windows: the difference that a query reports, its payload, the result table, and the events made of it.

Event ids are a function of query, instant and revision, so that a replayed batch publishes the same events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.continuous.windows.evaluation import Row, Rows
from triplewire.continuous.windows.panes import WindowView
from triplewire.continuous.windows.plans import WindowPlan
from triplewire.model import Event, EventHeaders
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import QueryLimit
from triplewire.model.events import OpaquePayload
from triplewire.model.subscriptions import ReportStrategy
from triplewire.model.terms import results_document
from triplewire.rdf.checks import BODY_BYTES
from triplewire.sparql.construct import build_graph


class ResultKind(StrEnum):
    """The kind of a result."""

    SELECT = "select"
    """Its payload is a SPARQL JSON results document."""
    CONSTRUCT = "construct"
    """Its payload is N-Triples."""
    SUSPENDED = "suspended"
    """The query exceeded a limit and is suspended; its payload says which."""


RESULTS = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("into", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("at", pa.int64()),
        pa.field("revision", pa.int32(), nullable=False),
        pa.field("report", pa.string()),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("payload", pa.string(), nullable=False),
        pa.field("windows", pa.string()),
        pa.field("event", pa.string(), nullable=False),
    ]
)
"""A row is what a query, by its id, told at an instant: the moment `end`, and, where a window of triples closed, the
position `at` of the event that closed it, else 0. `position` is up to where events were known then. `start` is where
the first of the windows began that are shown at the instant; `windows` is a JSON list of all of them. `revision` 0 is
what was told when windows closed. `event` is the id of the event that carries it, the same whenever it is made again,
and `into` the stream which that is for. Rows are in the order of `end`, `at`, `query` and `revision`; suspensions come
last, and have no bounds."""


_MEDIA_TYPES: Mapping[str, str] = {
    ResultKind.SELECT: "application/sparql-results+json",
    ResultKind.CONSTRUCT: "application/n-triples",
    ResultKind.SUSPENDED: "application/problem+json",
}


def results_to_events(results: pa.Table) -> list[tuple[str, Event]]:
    """Return the events for the rows of a `RESULTS` table, in order, each with its stream; equal rows give equal
    events. Rows without a stream are left out."""
    return [(row["into"], _result_event(row)) for row in results.to_pylist() if row["into"] is not None]


def suspended_queries(results: pa.Table) -> Mapping[str, str]:
    """Return the queries that exceeded a limit, by id, and which."""
    rows = results.filter(pc.equal(results["kind"], ResultKind.SUSPENDED.value)).to_pylist()
    return {row["query"]: orjson.loads(row["payload"])["detail"] for row in rows}


def _result_event(row: Mapping[str, Any]) -> Event:
    media_type, text = _event_body(row)
    headers = EventHeaders(time=row["end"], syntax=media_type, extensions=dict(_event_extensions(row)))
    return Event(row["event"], text, headers)


def _event_body(row: Mapping[str, Any]) -> tuple[str, str]:
    payload = row["payload"]
    media_type = _MEDIA_TYPES[row["kind"]]
    if row["kind"] == ResultKind.CONSTRUCT and payload:
        return media_type, "\n".join(_tab_separated(line) for line in payload.rstrip("\n").split("\n"))
    # An event needs a triple, and an empty answer is reported, too.
    return media_type, OpaquePayload(media_type, payload.encode()).text(row["event"])


def _tab_separated(line: str) -> str:
    """A line of N-Triples as a line of an event. Subjects and predicates are IRIs, which hold no space."""
    subject, predicate, rest = line.split(" ", 2)
    return f"{subject}\t{predicate}\t{rest.removesuffix(' .')}"


def _event_extensions(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "query", row["query"]
    for name in ("start", "end"):
        if row[name] is not None:
            yield f"window-{name}", format_timestamp(row[name])
    if row["report"] is not None:
        yield "report", row["report"]
    if row["revision"]:
        yield "revision", str(row["revision"])


def comparable_rows(plan: WindowPlan, solutions: Rows) -> Rows:
    """Return the rows by which answers are compared: the triples of a CONSTRUCT, or solutions without a template and
    for templates with blank nodes, which are never equal."""
    return solutions if plan.template is None or plan.fresh else tuple(sorted(_build_triples(plan, solutions, "")))


def write_triples(plan: WindowPlan, rows: Rows, name: str, limit: int) -> str:
    """Return the triples of comparable rows as N-Triples. `name` tells the graph from all others. Raises QueryLimit
    for more triples than `limit`."""
    found: Sequence[Row] = _build_triples(plan, rows, name) if plan.fresh else rows
    if len(found) > limit:
        raise QueryLimit(f"it builds more than {limit} triples at once")
    return "".join(f"{subject} {predicate} {object_} .\n" for subject, predicate, object_ in found)


def write_solutions(plan: WindowPlan, rows: Rows, beside: dict[str, Any]) -> str:
    """A SPARQL JSON results document, with more members. Raises QueryLimit."""
    text = orjson.dumps({**results_document(plan.names, rows), **beside}).decode()
    if len(text) > BODY_BYTES:
        raise QueryLimit(f"its answer has more than {BODY_BYTES} characters")
    return text


def write_bounds(plan: WindowPlan, view: WindowView) -> list[dict[str, str | None]]:
    """Return the bounds of windows as JSON; a window that never closed has none."""
    return [
        {
            "name": clause.name,
            "stream": clause.stream,
            "start": None if content.bounds is None else format_timestamp(content.bounds.start),
            "end": None if content.bounds is None else format_timestamp(content.bounds.end),
        }
        for clause, content in zip(plan.windows, view.contents, strict=True)
    ]


def _build_triples(plan: WindowPlan, rows: Rows, name: str) -> list[tuple[str, str, str]]:
    named = (dict(zip(plan.names, row, strict=True)) for row in rows)
    return build_graph(plan.template or (), (), named, name)


def select_reported(report: ReportStrategy, now: Rows, before: Rows) -> Rows:
    """Return the rows that are reported, compared as bags, in the order of the answer that has them."""
    match report:
        case ReportStrategy.ALL:
            return now
        case ReportStrategy.NEW:
            return _subtract_rows(now, before)
        case ReportStrategy.OLD:
            return _subtract_rows(before, now)


def _subtract_rows(rows: Rows, others: Rows) -> Rows:
    left, kept = Counter(others), []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
        else:
            kept.append(row)
    return tuple(kept)
