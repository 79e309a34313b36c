"""The gate: parcels for streams that have shapes are judged; all others pass at the price of a look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from triplewire.config import limits
from triplewire.edge.intake.parcels import Parcel, parted
from triplewire.edge.shapes.judges import Judges, Verdict
from triplewire.model import Event
from triplewire.model.errors import InputError, ShapeViolation, TriplewireError, Unavailable
from triplewire.model.events import parse_payload
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.streams import ShapesCache, StreamShapes, ValidationMode

HEADER = "Shapes"
"""Says of an event that it does not conform. Whoever publishes cannot say it."""


class Gate:
    """What is published must pass it. In a stream whose mode is `refuse` a parcel passes if all its events conform; in
    one whose mode is `mark` all pass, and those that do not conform say so."""

    def __init__(self, shapes: ShapesCache, judges: Judges) -> None:
        self.shapes = shapes
        self.judges = judges
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def judged(self, parcels: Sequence[Parcel]) -> Sequence[Parcel]:
        """The parcels, of which some may be refused now. Whoever comes first is through first, so that what one
        publisher sends stays in its order."""
        if not any(self._concerns(each.publication) for each in parcels):
            return parcels
        async with self._in_turn():
            return [await self._parcel(each) for each in parted(parcels)]

    async def publication(self, given: Publication) -> Publication:
        """One publication. Raises ShapeViolation, or Unavailable where that is not found out."""
        if not self._concerns(given):
            return given
        async with self._in_turn():
            return await self._publication(given)

    def _concerns(self, given: Publication | None) -> bool:
        if given is None or not self.shapes:
            return False
        streams = (given.stream,) if isinstance(given.stream, str) else given.stream
        return any(self.shapes.of(each) is not None for each in streams)

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        if self._waiting >= limits.SHAPES_WAITING:
            raise Unavailable(f"{self._waiting} bodies wait to be judged by shapes; try again later")
        self._waiting += 1
        try:
            async with self._turn:
                yield
        finally:
            self._waiting -= 1

    async def _publication(self, given: Publication) -> Publication:
        streams = [given.stream] * len(given.events) if isinstance(given.stream, str) else list(given.stream)
        events = list(given.events)
        for stream in dict.fromkeys(streams):
            shaped = self.shapes.of(stream)
            if shaped is not None:
                places = [place for place, each in enumerate(streams) if each == stream]
                for place, event in zip(places, await self._events(shaped, [events[n] for n in places]), strict=True):
                    events[place] = event
        return replace(given, events=events)

    async def _parcel(self, parcel: Parcel) -> Parcel:
        if not isinstance(parcel.found, Publication):
            return parcel
        try:
            return replace(parcel, found=await self._publication(parcel.found))
        except TriplewireError as error:
            return replace(parcel, found=error)

    async def _events(self, shaped: StreamShapes, events: Sequence[Event]) -> list[Event]:
        try:
            verdicts = await self.judges.judge(shaped.key, shaped.text, [each.text for each in events])
        except (Unavailable, InputError):
            if shaped.mode is ValidationMode.REFUSE:
                raise
            return [_marked(each, "undecided") for each in events]
        return [_passed(shaped, event, verdict) for event, verdict in zip(events, verdicts, strict=True)]


def _passed(shaped: StreamShapes, event: Event, verdict: Verdict) -> Event:
    # What is carried is no RDF, and has no shape.
    if verdict is None or parse_payload(event.id, event.text) is not None:
        return _marked(event, None)
    if shaped.mode is ValidationMode.REFUSE:
        raise ShapeViolation(event.id, shaped.stream, verdict["violations"], verdict["results"], verdict["report"])
    return _marked(event, f"violated {verdict['violations']}")


def _marked(event: Event, mark: str | None) -> Event:
    """The event with its mark, or without what its publisher may have put in its place."""
    kept = {name: value for name, value in event.headers.extensions.items() if name.lower() != HEADER.lower()}
    if mark is None and len(kept) == len(event.headers.extensions):
        return event
    extensions = kept if mark is None else {**kept, HEADER: mark}
    return replace(event, headers=replace(event.headers, extensions=extensions))
