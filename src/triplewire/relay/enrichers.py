"""Enrichers: what adds triples to events on their way. A deployment brings its own as entry points.

    [project.entry-points."triplewire.enrichers"]
    districts = "city.districts:Districts"

`Districts(options)` is called once for each strand that names it, with what the file says to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

from triplewire.codec import N_TRIPLES, decode
from triplewire.model import Event
from triplewire.model.errors import BadRequest, InputError
from triplewire.relay.annotations import Annotation
from triplewire.relay.strands import Enrichment

GROUP = "triplewire.enrichers"


class Enricher(Protocol):
    """May keep memory from one call to the next. A relay that was killed may show it the same events again."""

    def enrich(self, events: Sequence[Event]) -> Sequence[str]:
        """What is added to each of the events, in their order, as N-Triples; an empty text adds nothing. Events come
        in the order of their stream, some at a time. What it raises stops the strand, which tries again later."""


Make = Callable[[Mapping[str, Any]], Enricher]

_OWN: Mapping[str, Make] = {"annotation": Annotation}


def make(enrichment: Enrichment) -> Enricher:
    """The enricher of that name. Raises BadRequest if there is none, or if it does not take its options."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    if enrichment.name not in {*_OWN, *points}:
        names = ", ".join(sorted({*_OWN, *points}))
        raise BadRequest(f"no enricher is called {enrichment.name!r}; known are {names}, more come as {GROUP}")
    made: Make = points[enrichment.name].load() if enrichment.name in points else _OWN[enrichment.name]
    try:
        return made(enrichment.options)
    except (TypeError, ValueError, KeyError, InputError) as error:
        raise BadRequest(f"the enricher {enrichment.name} does not take its options: {error}") from error


def enriched(events: Sequence[Event], enrichers: Sequence[Enricher]) -> list[Event]:
    """The events with what each enricher adds, one after the other. Raises BadRequest for what is no N-Triples."""
    done = list(events)
    for enricher in enrichers:
        added = enricher.enrich(done)
        done = [_with(event, text) for event, text in zip(done, added, strict=True)]
    return done


def _with(event: Event, text: str) -> Event:
    if not text.strip():
        return event
    (parsed,) = decode(text.encode(), N_TRIPLES, event_id=event.id)
    lines = dict.fromkeys([*event.text.split("\n"), *parsed.text.split("\n")])
    return Event(event.id, "\n".join(lines), event.headers)
