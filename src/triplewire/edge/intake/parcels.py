"""Parcels: the items of a body, each with its events or with why it is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triplewire.model import Event, EventHeaders, format_position
from triplewire.model.errors import DuplicateId, InputError, TriplewireError
from triplewire.problems import described
from triplewire.rdf import new_id
from triplewire.rdf.envelopes import Envelope
from triplewire.rdf.splitting import RawItem, Splitter
from triplewire.storage.log.ports import AppendResult, Publication


@dataclass
class Ids:
    """Makes ids, and knows which: all others were given by publishers."""

    made: set[str] = field(default_factory=set)

    def __call__(self) -> str:
        made = new_id()
        self.made.add(made)
        return made

    def given(self, events: Iterable[Event]) -> frozenset[str]:
        return frozenset(event.id for event in events if event.id not in self.made)


@dataclass(frozen=True)
class Parcel:
    """One item: its number from 1 on, the line at which it begins, and what was found."""

    number: int
    line: int
    found: Publication | TriplewireError

    @property
    def publication(self) -> Publication | None:
        return self.found if isinstance(self.found, Publication) else None


@dataclass(frozen=True)
class Outcome:
    """What became of a parcel: positions, or why it is refused."""

    parcel: Parcel
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
            return {**item, **line, "problem": described(self.answer)}
        told = {**item, "events": len(self.answer), "position": format_position(max(self.answer))}
        return {**told, "repeated": self.repeated} if self.repeated else told


class Unpacking:
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

    def feed(self, data: bytes) -> Iterator[Parcel]:
        return self._parcels(self._cutter.feed(data))

    def end(self) -> Iterator[Parcel]:
        return iter(()) if self.lost else self._parcels(self._cutter.end())

    def _parcels(self, cuts: Iterator[RawItem]) -> Iterator[Parcel]:
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
            yield Parcel(self.count, 0, error)

    def _parcel(self, cut: RawItem) -> Parcel | None:
        """None for an item that is no event."""
        self.count += 1
        ids = Ids()
        try:
            events = self.wrapping.read(cut.data, self._headers, ids)
        except InputError as error:
            return Parcel(self.count, cut.line, error)
        if not events:
            return None
        return Parcel(self.count, cut.line, Publication(self._stream, events, given=ids.given(events)))


def unpacked(body: bytes, wrapping: Envelope, stream: str, headers: EventHeaders) -> list[Parcel]:
    """The parcels of a whole body."""
    unpacking = Unpacking(wrapping, stream, headers)
    return [*unpacking.feed(body), *unpacking.end()]


def parted(parcels: Iterable[Parcel]) -> Iterator[Parcel]:
    """The parcels, with those whose events are taken apart as one for each event."""
    for parcel in parcels:
        publication = parcel.publication
        if publication is None or not publication.apart:
            yield parcel
            continue
        for number, event in enumerate(publication.events, parcel.number):
            given = publication.given & {event.id}
            yield replace(parcel, number=number, found=replace(publication, events=[event], given=given, apart=False))


def outcomes(parcels: Sequence[Parcel], answers: Sequence[Sequence[int]]) -> list[Outcome]:
    """What became of them, when those with events got these answers."""
    each, found = iter(answers), list[Outcome]()
    for parcel in parcels:
        if isinstance(parcel.found, TriplewireError):
            found.append(Outcome(parcel, parcel.found))
        else:
            found += _outcomes(parcel, parcel.found, next(each))
    return found


def _outcomes(parcel: Parcel, publication: Publication, answer: Sequence[int]) -> list[Outcome]:
    """One, but where some events of a parcel are refused by themselves: one more for each of these."""
    if not publication.apart or not isinstance(answer, AppendResult) or not answer.others:
        return [Outcome(parcel, checked(answer))]
    parts = list(parted([parcel]))
    pairs = list(zip(publication.events, answer, strict=True))
    taken = AppendResult((position for event, position in pairs if event.id not in answer.others), answer.repeated)
    refused = [
        Outcome(part, DuplicateId(event.id, format_position(position)))
        for part, (event, position) in zip(parts, pairs, strict=True)
        if event.id in answer.others
    ]
    return [Outcome(parcel, taken), *refused] if taken else refused


def checked(answer: Sequence[int]) -> Sequence[int] | DuplicateId:
    """The positions, or the error where an id is taken by other content."""
    if not isinstance(answer, AppendResult) or not answer.others:
        return answer
    id, position = next(iter(answer.others.items()))
    return DuplicateId(id, format_position(position))
