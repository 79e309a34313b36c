"""Payloads: an answer as it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from triplewire.codec.headers import written
from triplewire.config import limits
from triplewire.model.errors import QueryLimit
from triplewire.model.terms import results_document
from triplewire.ongoing.windows.evaluations import Row, Rows
from triplewire.ongoing.windows.plans import Plan
from triplewire.ongoing.windows.views import View
from triplewire.sparql.construct import build_graph


def comparable(plan: Plan, solutions: Rows) -> Rows:
    """What one answer is compared with another by: the triples that it builds; solutions, where there is no template,
    or where it makes blank nodes, which are never the same."""
    return solutions if plan.template is None or plan.fresh else tuple(sorted(_graph(plan, solutions, "")))


def triples(plan: Plan, rows: Rows, name: str) -> str:
    """The triples of what is comparable, as N-Triples. `name` tells the graph from all others. Raises QueryLimit."""
    found: Sequence[Row] = _graph(plan, rows, name) if plan.fresh else rows
    if len(found) > limits.EVENT_QUADS:
        raise QueryLimit(f"it builds more than {limits.EVENT_QUADS} triples at once")
    return "".join(f"{subject} {predicate} {object_} .\n" for subject, predicate, object_ in found)


def solutions(plan: Plan, rows: Rows, beside: dict[str, Any]) -> str:
    """A SPARQL JSON results document, with more members. Raises QueryLimit."""
    text = orjson.dumps({**results_document(plan.names, rows), **beside}).decode()
    if len(text) > limits.BODY_BYTES:
        raise QueryLimit(f"its answer has more than {limits.BODY_BYTES} characters")
    return text


def bounds(plan: Plan, view: View) -> list[dict[str, str | None]]:
    """Of the windows that are shown, as JSON; of one that has not closed yet there are none."""
    return [
        {
            "name": clause.name,
            "stream": clause.stream,
            "start": None if content.bounds is None else written(content.bounds.start),
            "end": None if content.bounds is None else written(content.bounds.end),
        }
        for clause, content in zip(plan.windows, view.contents, strict=True)
    ]


def _graph(plan: Plan, rows: Rows, name: str) -> list[tuple[str, str, str]]:
    named = (dict(zip(plan.names, row, strict=True)) for row in rows)
    return build_graph(plan.template or (), (), named, name)
