"""Items of a request body: each holds its events, or the error for which it is refused. The publish policy refuses an
item whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triplewire.model import Event, EventHeaders, format_position
from triplewire.model.errors import DuplicateId, Forbidden, InputError, TriplewireError
from triplewire.model.problems import describe_error
from triplewire.rdf import new_id
from triplewire.rdf.envelopes import Envelope
from triplewire.rdf.splitting import RawItem, Splitter
from triplewire.security import PublishPermit
from triplewire.storage.log.ports import AppendResult, Publication


@dataclass
class EventIds:
    """Generates event ids, and remembers them: all other ids are the publisher's."""

    generated: set[str] = field(default_factory=set)

    def __call__(self) -> str:
        id = new_id()
        self.generated.add(id)
        return id

    def given(self, events: Iterable[Event]) -> frozenset[str]:
        return frozenset(event.id for event in events if event.id not in self.generated)


@dataclass(frozen=True)
class PublishItem:
    """One item of a body: its number from 1, the line at which it begins, and its events or its error."""

    number: int
    line: int
    content: Publication | TriplewireError

    @property
    def publication(self) -> Publication | None:
        return self.content if isinstance(self.content, Publication) else None


@dataclass(frozen=True)
class ItemResult:
    """The result of an item: positions, or the error for which it is refused."""

    item: PublishItem
    answer: Sequence[int] | TriplewireError

    @property
    def positions(self) -> Sequence[int]:
        return () if isinstance(self.answer, TriplewireError) else self.answer

    @property
    def repeated(self) -> int:
        return self.answer.repeated if isinstance(self.answer, AppendResult) else 0

    def to_json(self) -> dict[str, Any]:
        """The acknowledgement of the item."""
        number: dict[str, Any] = {"item": self.item.number}
        if isinstance(self.answer, TriplewireError):
            line = {"line": self.item.line} if self.item.line else {}
            return {**number, **line, "problem": describe_error(self.answer)}
        repeated = {"repeated": self.repeated} if self.repeated else {}
        return {**number, "events": len(self.answer), "position": format_position(max(self.answer)), **repeated}


class ItemReader:
    """Splits a body into items, piece by piece."""

    def __init__(self, wrapping: Envelope, stream: str, headers: EventHeaders, count: int = 0) -> None:
        """`count` items were read before."""
        self.wrapping = wrapping
        self._cutter: Splitter = wrapping.cutter()
        self._stream = stream
        self._headers = headers
        self.count = count
        self.lost = False
        """The boundaries of items are lost: the rest of the body is ignored."""

    def feed(self, data: bytes) -> Iterator[PublishItem]:
        return self._items(self._cutter.feed(data))

    def end(self) -> Iterator[PublishItem]:
        return iter(()) if self.lost else self._items(self._cutter.end())

    def _items(self, cuts: Iterator[RawItem]) -> Iterator[PublishItem]:
        if self.lost:
            return
        try:
            for cut in cuts:
                item = self._item(cut)
                if item is not None:
                    yield item
        except InputError as error:
            self.lost = True
            self.count += 1
            yield PublishItem(self.count, 0, error)

    def _item(self, cut: RawItem) -> PublishItem | None:
        """None for an item without events."""
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
    reader = ItemReader(wrapping, stream, headers)
    return [*reader.feed(body), *reader.end()]


def split_items(items: Iterable[PublishItem]) -> Iterator[PublishItem]:
    """The items; one whose events are accepted separately becomes one item for each event."""
    for item in items:
        publication = item.publication
        if publication is None or not publication.apart:
            yield item
            continue
        for number, event in enumerate(publication.events, item.number):
            given = publication.given & {event.id}
            yield replace(item, number=number, content=replace(publication, events=[event], given=given, apart=False))


def pair_results(items: Sequence[PublishItem], answers: Sequence[Sequence[int]]) -> list[ItemResult]:
    """The results of items; `answers` are those of the log to the items with events."""
    each, results = iter(answers), list[ItemResult]()
    for item in items:
        if isinstance(item.content, TriplewireError):
            results.append(ItemResult(item, item.content))
        else:
            results += _results_of_item(item, item.content, next(each))
    return results


def _results_of_item(item: PublishItem, publication: Publication, answer: Sequence[int]) -> list[ItemResult]:
    """One result, and one more for each event of the item that is refused separately."""
    if not publication.apart or not isinstance(answer, AppendResult) or not answer.others:
        return [ItemResult(item, check_append(answer))]
    parts = list(split_items([item]))
    pairs = list(zip(publication.events, answer, strict=True))
    taken = AppendResult((position for event, position in pairs if event.id not in answer.others), answer.repeated)
    refused = [
        ItemResult(part, DuplicateId(event.id, format_position(position)))
        for part, (event, position) in zip(parts, pairs, strict=True)
        if event.id in answer.others
    ]
    return [ItemResult(item, taken), *refused] if taken else refused


def check_append(answer: Sequence[int]) -> Sequence[int] | DuplicateId:
    """The positions, or the error if an id is in use for other content."""
    if not isinstance(answer, AppendResult) or not answer.others:
        return answer
    id, position = next(iter(answer.others.items()))
    return DuplicateId(id, format_position(position))


def apply_publish_policy(items: Sequence[PublishItem], permit: PublishPermit) -> list[PublishItem]:
    """Return the items; one with an event that must not be published has the error, with the policy rule, instead."""
    refusals = [(each, _find_refusal(each.publication, permit)) for each in split_items(items)]
    return [item if refusal is None else replace(item, content=Forbidden(refusal)) for item, refusal in refusals]


def _find_refusal(publication: Publication | None, permit: PublishPermit) -> str | None:
    if publication is None:
        return None
    streams = publication.stream
    of_each = [streams] * len(publication.events) if isinstance(streams, str) else streams
    pairs = zip(of_each, publication.events, strict=True)
    refusals = (permit.refusal(stream, event.id, event.text) for stream, event in pairs)
    return next((each for each in refusals if each is not None), None)
