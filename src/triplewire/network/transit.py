"""Events in transit through a relay: as received, with the path behind them, in a bounded buffer.

An event that is not enriched is forwarded without parsing it. The header `Relay-Path` lists the streams and edges that
an event has passed, so that loops end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from triplewire.model import Event, EventHeaders, format_position, parse_position
from triplewire.model.terms import TW, literal
from triplewire.network.declaration import StreamAddress
from triplewire.rdf import N_QUADS, decode, to_nquads
from triplewire.rdf.headers import parse_time
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.rdf.ztreamy import encode_item

RELAY_HOPS: Final = 16
"""Streams that an event may pass on its way to another. More are a mistake that no loop explains."""

PATH_HEADER = "Relay-Path"


@dataclass(frozen=True)
class RelayPath:
    """The streams that an event has passed, `edge/stream` each, the first one first. An edge is named by its id.

    A hop is a stream and not an edge, because a stream may be made from another stream of the same edge.
    """

    hops: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> RelayPath:
        """Parse the header; words that are no hop are left out."""
        return cls(tuple(each for each in (text or "").split() if "/" in each))

    def __str__(self) -> str:
        return " ".join(self.hops)

    def then(self, edge: str, stream: str) -> RelayPath:
        return RelayPath((*self.hops, f"{edge}/{stream}"))

    def visits(self, edge: str, stream: str) -> bool:
        return f"{edge}/{stream}" in self.hops

    @property
    def too_long(self) -> bool:
        """Whether it has too many hops, or too many characters for a header: such an event is dropped."""
        return len(self.hops) > RELAY_HOPS or len(str(self)) > HEADER_CHARACTERS


@dataclass(frozen=True)
class TransitEvent:
    """An event as received, and its position upstream; or a bare position, if `event` is empty."""

    position: str
    event: str
    time: str
    body: str
    source: str | None = None
    application: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not self.event

    @property
    def path(self) -> RelayPath:
        return RelayPath.parse(self.headers.get(PATH_HEADER))

    def parse(self) -> Event:
        """Return the event, without its headers."""
        (event,) = decode(self.body.encode(), N_QUADS)
        return event


def parse_event_message(data: Mapping[str, Any]) -> TransitEvent:
    """Return the event of a message `event`."""
    origin = (data.get("source"), data.get("application"))
    return TransitEvent(data["position"], data["event"], data["time"], data["body"], *origin, data.get("headers") or {})


def make_position_marker(position: str) -> TransitEvent:
    """Return progress without an event: a filter may let little through."""
    return TransitEvent(position, "", "", "")


def make_gap_event(gap: Mapping[str, Any], source: StreamAddress, upstream: str, now: int) -> TransitEvent:
    """Return an event that says that events are missing here. The same gap always has the same id."""
    asked, earliest = gap["asked"], gap["earliest"]
    id = f"urn:triplewire:gap:{upstream}:{source.stream}:{asked}-{earliest}"
    properties = {"of": f"<{source}>", "after": literal(asked), "before": literal(earliest)}
    type = f"<{id}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{TW}Gap> <{id}> .\n"
    body = type + "".join(f"<{id}> <{TW}{name}> {value} <{id}> .\n" for name, value in properties.items())
    time = datetime.fromtimestamp(now / 1_000_000, UTC).isoformat()
    return TransitEvent(format_position(parse_position(earliest) - 1), id, time, body, application="triplewire-relay")


def encode_items(batch: Iterable[TransitEvent]) -> bytes:
    """Encode events as Ztreamy items, with all their headers."""
    return b"".join(_encode_transit_item(each) for each in batch)


def _encode_transit_item(event: TransitEvent) -> bytes:
    time = parse_time("time", event.time)
    headers = EventHeaders(event.source, event.application, time, N_QUADS.media_type, event.headers)
    return encode_item(event.event, headers, event.body.encode())


def encode_event_body(event: Event) -> str:
    return to_nquads(event.id, event.text)


class BoundedBuffer:
    """A queue of events between one producer and one consumer, bounded by bytes: the producer waits while it is full.

    It is full at `size` bytes, so that at worst it holds one event above that.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._events: deque[TransitEvent] = deque()
        self._end: BaseException | None = None
        self._changed = asyncio.Condition()

    def __len__(self) -> int:
        return len(self._events)

    async def put(self, event: TransitEvent) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._used < self._size)
            self._events.append(event)
            self._used += len(event.body)
            self._changed.notify_all()

    async def close(self, end: BaseException) -> None:
        """Let `take` raise `end` as soon as all events are taken."""
        async with self._changed:
            self._end = end
            self._changed.notify_all()

    async def take(self, count: int, size: int, through: str | None = None) -> list[TransitEvent]:
        """Wait for events and return them in order: at most `count`, and `size` bytes unless it is a single event.

        With `through`, return all events up to that position, however many: it waits for one at or above the position.
        Raises the exception that the buffer was closed with.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._end is not None or self._has_enough(through))
            if not self._has_enough(through):
                assert self._end is not None
                raise self._end
            batch = self._pop_first(count, size) if through is None else self._pop_through(through)
            self._used -= sum(len(each.body) for each in batch)
            self._changed.notify_all()
            return batch

    def _has_enough(self, through: str | None) -> bool:
        return bool(self._events) and (through is None or self._events[-1].position >= through)

    def _pop_through(self, position: str) -> list[TransitEvent]:
        batch = []
        while self._events and self._events[0].position <= position:
            batch.append(self._events.popleft())
        return batch

    def _pop_first(self, count: int, size: int) -> list[TransitEvent]:
        batch = [self._events.popleft()]
        free = size - len(batch[0].body)
        while self._events and len(batch) < count and len(self._events[0].body) <= free:
            free -= len(self._events[0].body)
            batch.append(self._events.popleft())
        return batch
