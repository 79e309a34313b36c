"""Enrichers: plug-ins that add triples to events on their way through a relay.

A deployment brings its own as entry points:

    [project.entry-points."triplewire.enrichers"]
    districts = "city.districts:Districts"

`Districts(options)` is called once for each route that names it, with the options of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

from triplewire.model import Event
from triplewire.model.errors import BadRequest, InputError
from triplewire.network.declaration import Enrichment
from triplewire.rdf import N_TRIPLES, TURTLE, decode, to_ntriples

ENTRY_POINT_GROUP = "triplewire.enrichers"


class Enricher(Protocol):
    """Adds triples to events. It may keep state between calls; after a crash it may see the same events again."""

    def enrich(self, events: Sequence[Event]) -> Sequence[str]:
        """Return the triples to add to each event, in order, as N-Triples; an empty text adds nothing.

        Events come in the order of their stream, in batches. An exception stops the route, which tries again later.
        """


_EVENT = "urn:triplewire:this-event"
"""Stands for the event in the triples of an annotation until there is one."""


class Annotation:
    """The built-in enricher: it adds the triples of its option `turtle`, in which `<>` is the event."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raises BadRequest or MalformedRdf for options other than `turtle` with triples."""
        text = options.get("turtle")
        if set(options) != {"turtle"} or not isinstance(text, str):
            raise BadRequest("annotation takes `turtle`, a text of triples in which <> is the event, and nothing else")
        events = decode(f"BASE <{_EVENT}>\n{text}".encode(), TURTLE, event_id=_EVENT)
        self._triples = "".join(to_ntriples(each.text) for each in events)

    def enrich(self, events: Sequence[Event]) -> Sequence[str]:
        return [self._triples.replace(f"<{_EVENT}>", f"<{each.id}>") for each in events]


EnricherFactory = Callable[[Mapping[str, Any]], Enricher]

_BUILT_IN: Mapping[str, EnricherFactory] = {"annotation": Annotation}


def make_enricher(enrichment: Enrichment) -> Enricher:
    """Make the enricher of that name. Raises BadRequest if there is none, or if it refuses its options."""
    points = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if enrichment.name not in {*_BUILT_IN, *points}:
        names = ", ".join(sorted({*_BUILT_IN, *points}))
        raise BadRequest(
            f"no enricher is named {enrichment.name!r}; known are {names}; entry points {ENTRY_POINT_GROUP} add more"
        )
    make: EnricherFactory = points[enrichment.name].load() if enrichment.name in points else _BUILT_IN[enrichment.name]
    try:
        return make(enrichment.options)
    except (TypeError, ValueError, KeyError, InputError) as error:
        raise BadRequest(f"the enricher {enrichment.name} refuses its options: {error}") from error


def enrich_events(events: Sequence[Event], enrichers: Sequence[Enricher]) -> list[Event]:
    """Return the events with the triples of all enrichers, applied in order. Raises MalformedRdf for bad N-Triples."""
    enriched = list(events)
    for enricher in enrichers:
        added = enricher.enrich(enriched)
        enriched = [_add_triples(event, text) for event, text in zip(enriched, added, strict=True)]
    return enriched


def _add_triples(event: Event, text: str) -> Event:
    if not text.strip():
        return event
    (parsed,) = decode(text.encode(), N_TRIPLES, event_id=event.id)
    lines = dict.fromkeys([*event.text.split("\n"), *parsed.text.split("\n")])
    return Event(event.id, "\n".join(lines), event.headers)
