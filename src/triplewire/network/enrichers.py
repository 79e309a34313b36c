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

# Annotations: the enricher that adds the same triples to every event, about the event itself or about anything.

_EVENT = "urn:triplewire:this-event"
"""Stands for the event in the triples until there is one."""


class Annotation:
    """Adds the triples of its option `turtle`, in which `<>` is the event."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raises BadRequest or MalformedRdf for options that are not just `turtle`, with triples in it."""
        text = options.get("turtle")
        if set(options) != {"turtle"} or not isinstance(text, str):
            raise BadRequest("annotation takes `turtle`, a text of triples in which <> is the event, and nothing else")
        found = decode(f"BASE <{_EVENT}>\n{text}".encode(), TURTLE, event_id=_EVENT)
        self._triples = "".join(to_ntriples(each.text) for each in found)

    def enrich(self, events: Sequence[Event]) -> Sequence[str]:
        return [self._triples.replace(f"<{_EVENT}>", f"<{each.id}>") for each in events]


#     [project.entry-points."triplewire.enrichers"]
#     districts = "city.districts:Districts"
#
# `Districts(options)` is called once for each strand that names it, with what the file says to it.

ENTRY_POINT_GROUP = "triplewire.enrichers"


class Enricher(Protocol):
    """May keep memory from one call to the next. A relay that was killed may show it the same events again."""

    def enrich(self, events: Sequence[Event]) -> Sequence[str]:
        """What is added to each of the events, in their order, as N-Triples; an empty text adds nothing. Events come
        in the order of their stream, some at a time. What it raises stops the strand, which tries again later."""


EnricherFactory = Callable[[Mapping[str, Any]], Enricher]

_OWN: Mapping[str, EnricherFactory] = {"annotation": Annotation}


def make_enricher(enrichment: Enrichment) -> Enricher:
    """The enricher of that name. Raises BadRequest if there is none, or if it does not take its options."""
    points = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if enrichment.name not in {*_OWN, *points}:
        names = ", ".join(sorted({*_OWN, *points}))
        raise BadRequest(
            f"no enricher is called {enrichment.name!r}; known are {names}, more come as {ENTRY_POINT_GROUP}"
        )
    made: EnricherFactory = points[enrichment.name].load() if enrichment.name in points else _OWN[enrichment.name]
    try:
        return made(enrichment.options)
    except (TypeError, ValueError, KeyError, InputError) as error:
        raise BadRequest(f"the enricher {enrichment.name} does not take its options: {error}") from error


def enrich_events(events: Sequence[Event], enrichers: Sequence[Enricher]) -> list[Event]:
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
