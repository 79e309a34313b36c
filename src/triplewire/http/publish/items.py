"""Items of a request body: each holds its events, or the error for which it is refused. The publish policy refuses an
item whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triplewire.http.problems import describe_error
from triplewire.model import Event, EventHeaders, format_position
from triplewire.model.errors import DuplicateId, Forbidden, InputError, TriplewireError
from triplewire.rdf import new_id
from triplewire.rdf.envelopes import Envelope
from triplewire.rdf.splitting import RawItem, Splitter
from triplewire.security import PublishPermit
from triplewire.storage.log.ports import AppendResult, Publication


@dataclass
class EventIds:
    """Makes ids, and knows which: all others were given by publishers."""

    made: set[str] = field(default_factory=set)

    def __call__(self) -> str:
        made = new_id()
        self.made.add(made)
        return made

    def given(self, events: Iterable[Event]) -> frozenset[str]:
        return frozenset(event.id for event in events if event.id not in self.made)


@dataclass(frozen=True)
class PublishItem:
    """One item: its number from 1 on, the line at which it begins, and what was found."""

    number: int
    line: int
    found: Publication | TriplewireError

    @property
    def publication(self) -> Publication | None:
        return self.found if isinstance(self.found, Publication) else None


@dataclass(frozen=True)
class ItemResult:
    """What became of a parcel: positions, or why it is refused."""

    parcel: PublishItem
    answer: Sequence[int] | TriplewireError

    @property
    def positions(self) -> Sequence[int]:
        return () if isinstance(self.answer, TriplewireError) else self.answer

    @property
    def repeated(self) -> int:
        return self.answer.repeated if isinstance(self.answer, AppendResult) else 0

    def told(self) -> dict[str, Any]:
        """As an acknowledgement says it."""
        item: dict[str, Any] = {"item": self.parcel.number}
        if isinstance(self.answer, TriplewireError):
            line = {"line": self.parcel.line} if self.parcel.line else {}
            return {**item, **line, "problem": describe_error(self.answer)}
        told = {**item, "events": len(self.answer), "position": format_position(max(self.answer))}
        return {**told, "repeated": self.repeated} if self.repeated else told


class ItemReader:
    """Takes a body as it comes and gives its parcels."""

    def __init__(self, wrapping: Envelope, stream: str, headers: EventHeaders, count: int = 0) -> None:
        """`count` items came before."""
        self.wrapping = wrapping
        self._cutter: Splitter = wrapping.cutter()
        self._stream = stream
        self._headers = headers
        self.count = count
        self.lost = False
        """Nothing more can be told apart: what comes is not looked at."""

    def feed(self, data: bytes) -> Iterator[PublishItem]:
        return self._parcels(self._cutter.feed(data))

    def end(self) -> Iterator[PublishItem]:
        return iter(()) if self.lost else self._parcels(self._cutter.end())

    def _parcels(self, cuts: Iterator[RawItem]) -> Iterator[PublishItem]:
        if self.lost:
            return
        try:
            for cut in cuts:
                parcel = self._parcel(cut)
                if parcel is not None:
                    yield parcel
        except InputError as error:
            self.lost = True
            self.count += 1
            yield PublishItem(self.count, 0, error)

    def _parcel(self, cut: RawItem) -> PublishItem | None:
        """None for an item that is no event."""
        self.count += 1
        ids = EventIds()
        try:
            events = self.wrapping.read(cut.data, self._headers, ids)
        except InputError as error:
            return PublishItem(self.count, cut.line, error)
        if not events:
            return None
        return PublishItem(self.count, cut.line, Publication(self._stream, events, given=ids.given(events)))


def read_items(body: bytes, wrapping: Envelope, stream: str, headers: EventHeaders) -> list[PublishItem]:
    """The parcels of a whole body."""
    unpacking = ItemReader(wrapping, stream, headers)
    return [*unpacking.feed(body), *unpacking.end()]


def split_items(parcels: Iterable[PublishItem]) -> Iterator[PublishItem]:
    """The parcels, with those whose events are taken apart as one for each event."""
    for parcel in parcels:
        publication = parcel.publication
        if publication is None or not publication.apart:
            yield parcel
            continue
        for number, event in enumerate(publication.events, parcel.number):
            given = publication.given & {event.id}
            yield replace(parcel, number=number, found=replace(publication, events=[event], given=given, apart=False))


def pair_results(parcels: Sequence[PublishItem], answers: Sequence[Sequence[int]]) -> list[ItemResult]:
    """What became of them, when those with events got these answers."""
    each, found = iter(answers), list[ItemResult]()
    for parcel in parcels:
        if isinstance(parcel.found, TriplewireError):
            found.append(ItemResult(parcel, parcel.found))
        else:
            found += _results_of_item(parcel, parcel.found, next(each))
    return found


def _results_of_item(parcel: PublishItem, publication: Publication, answer: Sequence[int]) -> list[ItemResult]:
    """One, but where some events of a parcel are refused by themselves: one more for each of these."""
    if not publication.apart or not isinstance(answer, AppendResult) or not answer.others:
        return [ItemResult(parcel, check_append(answer))]
    parts = list(split_items([parcel]))
    pairs = list(zip(publication.events, answer, strict=True))
    taken = AppendResult((position for event, position in pairs if event.id not in answer.others), answer.repeated)
    refused = [
        ItemResult(part, DuplicateId(event.id, format_position(position)))
        for part, (event, position) in zip(parts, pairs, strict=True)
        if event.id in answer.others
    ]
    return [ItemResult(parcel, taken), *refused] if taken else refused


def check_append(answer: Sequence[int]) -> Sequence[int] | DuplicateId:
    """The positions, or the error where an id is taken by other content."""
    if not isinstance(answer, AppendResult) or not answer.others:
        return answer
    id, position = next(iter(answer.others.items()))
    return DuplicateId(id, format_position(position))


# Permits: what of a body may be published, by the policy.


def apply_publish_policy(parcels: Sequence[PublishItem], permit: PublishPermit) -> list[PublishItem]:
    """The parcels; in the place of one with an event that must not be published is why."""
    return [_apply_to_item(each, permit) for each in split_items(parcels)]


def _check_permitted(publication: Publication, permit: PublishPermit) -> None:
    """Raises Forbidden for the first event that must not be published, with the rule that says so."""
    streams = publication.stream
    of_each = [streams] * len(publication.events) if isinstance(streams, str) else streams
    for stream, event in zip(of_each, publication.events, strict=True):
        refusal = permit.refusal(stream, event.id, event.text)
        if refusal is not None:
            raise Forbidden(refusal)


def _apply_to_item(parcel: PublishItem, permit: PublishPermit) -> PublishItem:
    if parcel.publication is None:
        return parcel
    try:
        _check_permitted(parcel.publication, permit)
    except Forbidden as error:
        return replace(parcel, found=error)
    return parcel
