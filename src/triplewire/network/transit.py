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
"""Streams through which an event may come to another. More are a mistake that no loop explains."""


# Trails: through which streams of which edges an event has come, as it says itself in the header `Relay-Path`.

PATH_HEADER = "Relay-Path"


@dataclass(frozen=True)
class RelayPath:
    """The stations of an event, `edge/stream` each, the first one first. An edge is named by its id.

    A station is a stream and not a whole edge, because a stream may well be made from another one of the same edge.
    """

    stations: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> RelayPath:
        """What a header says; stations that are none are left out."""
        return cls(tuple(each for each in (text or "").split() if "/" in each))

    def __str__(self) -> str:
        return " ".join(self.stations)

    def then(self, edge: str, stream: str) -> RelayPath:
        """The path with one station more."""
        return RelayPath((*self.stations, f"{edge}/{stream}"))

    def visits(self, edge: str, stream: str) -> bool:
        return f"{edge}/{stream}" in self.stations

    @property
    def long(self) -> bool:
        """Whether it has more stations, or is a longer header, than an event is carried on with."""
        return len(self.stations) > RELAY_HOPS or len(str(self)) > HEADER_CHARACTERS


@dataclass(frozen=True)
class TransitEvent:
    """One event, and the position of the edge above at which everything up to it was heard."""

    position: str
    event: str
    time: str
    body: str
    source: str | None = None
    application: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """It tells how far everything was heard, and no event."""
        return not self.event

    @property
    def trail(self) -> RelayPath:
        return RelayPath.parse(self.headers.get(PATH_HEADER))

    def opened(self) -> Event:
        """The event, without its headers."""
        (event,) = decode(self.body.encode(), N_QUADS)
        return event


def parse_event_message(told: Mapping[str, Any]) -> TransitEvent:
    """What a message `event` tells."""
    headers = told.get("headers") or {}
    said = (told.get("source"), told.get("application"))
    return TransitEvent(told["position"], told["event"], told["time"], told["body"], *said, headers)


def make_position_marker(position: str) -> TransitEvent:
    """What is told where no event is: a filter may let little through."""
    return TransitEvent(position, "", "", "")


def make_gap_event(told: Mapping[str, Any], source: StreamAddress, upstream: str, now: int) -> TransitEvent:
    """A gap as an event of its own, which says that here some are missing. Its id is the same whenever it is told."""
    asked, earliest = told["asked"], told["earliest"]
    id = f"urn:triplewire:gap:{upstream}:{source.stream}:{asked}-{earliest}"
    said = {"of": f"<{source}>", "after": literal(asked), "before": literal(earliest)}
    type = f"<{id}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{TW}Gap> <{id}> .\n"
    body = type + "".join(f"<{id}> <{TW}{name}> {value} <{id}> .\n" for name, value in said.items())
    time = datetime.fromtimestamp(now / 1_000_000, UTC).isoformat()
    return TransitEvent(format_position(parse_position(earliest) - 1), id, time, body, application="triplewire-relay")


def encode_items(parcels: Iterable[TransitEvent]) -> bytes:
    """The body by which they are published: items, each with what is said of it, the publisher's own headers too."""
    return b"".join(_encode_transit_item(each) for each in parcels)


def _encode_transit_item(parcel: TransitEvent) -> bytes:
    time = parse_time("time", parcel.time)
    headers = EventHeaders(parcel.source, parcel.application, time, N_QUADS.media_type, parcel.headers)
    return encode_item(parcel.event, headers, parcel.body.encode())


def encode_event_body(event: Event) -> str:
    """The body of an event."""
    return to_nquads(event.id, event.text)


# Inboxes: what was heard and is not yet published. A bounded number of bytes; who has more to bring waits.


class BoundedBuffer:
    """Between one who brings and one who takes."""

    def __init__(self, size: int) -> None:
        """It takes more as long as it holds less than `size` bytes: at worst one parcel above that."""
        self._size = size
        self._held = 0
        self._parcels: deque[TransitEvent] = deque()
        self._end: BaseException | None = None
        self._changed = asyncio.Condition()

    def __len__(self) -> int:
        return len(self._parcels)

    async def put(self, parcel: TransitEvent) -> None:
        """When there is room."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._held < self._size)
            self._parcels.append(parcel)
            self._held += len(parcel.body)
            self._changed.notify_all()

    async def close(self, end: BaseException) -> None:
        """Nothing more will come; whoever takes is told by the exception, once everything is taken."""
        async with self._changed:
            self._end = end
            self._changed.notify_all()

    async def take(self, count: int, size: int, upto: str | None = None) -> list[TransitEvent]:
        """As many as there are, in order: at most `count`, of at most `size` bytes unless it is one alone.

        With `upto` it is those up to that position, however many, and they are complete: it waits for one above.
        Raises what it was closed with.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._end is not None or self._enough(upto))
            if not self._enough(upto):
                assert self._end is not None
                raise self._end
            taken = self._first(count, size) if upto is None else self._up_to(upto)
            self._held -= sum(len(each.body) for each in taken)
            self._changed.notify_all()
            return taken

    def _enough(self, upto: str | None) -> bool:
        return bool(self._parcels) and (upto is None or self._parcels[-1].position >= upto)

    def _up_to(self, upto: str) -> list[TransitEvent]:
        taken = []
        while self._parcels and self._parcels[0].position <= upto:
            taken.append(self._parcels.popleft())
        return taken

    def _first(self, count: int, size: int) -> list[TransitEvent]:
        taken = [self._parcels.popleft()]
        room = size - len(taken[0].body)
        while self._parcels and len(taken) < count and len(self._parcels[0].body) <= room:
            room -= len(self._parcels[0].body)
            taken.append(self._parcels.popleft())
        return taken
