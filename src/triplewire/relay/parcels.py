"""Parcels: events on their way, as they were heard. What is not enriched is carried as it came, without a parse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from triplewire.codec import N_QUADS, decode, nquads
from triplewire.codec.headers import instant
from triplewire.codec.ztreamy import encode_item
from triplewire.model import Event, EventHeaders, format_position, parse_position
from triplewire.model.terms import TW, literal
from triplewire.relay.strands import Address
from triplewire.relay.trails import HEADER, Trail


@dataclass(frozen=True)
class Parcel:
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
    def trail(self) -> Trail:
        return Trail.parse(self.headers.get(HEADER))

    def opened(self) -> Event:
        """The event, without its headers."""
        (event,) = decode(self.body.encode(), N_QUADS)
        return event


def of_message(told: Mapping[str, Any]) -> Parcel:
    """What a message `event` tells."""
    headers = told.get("headers") or {}
    said = (told.get("source"), told.get("application"))
    return Parcel(told["position"], told["event"], told["time"], told["body"], *said, headers)


def of_position(position: str) -> Parcel:
    """What is told where no event is: a filter may let little through."""
    return Parcel(position, "", "", "")


def of_gap(told: Mapping[str, Any], source: Address, upstream: str, now: int) -> Parcel:
    """A gap as an event of its own, which says that here some are missing. Its id is the same whenever it is told."""
    asked, earliest = told["asked"], told["earliest"]
    id = f"urn:triplewire:gap:{upstream}:{source.stream}:{asked}-{earliest}"
    said = {"of": f"<{source}>", "after": literal(asked), "before": literal(earliest)}
    type = f"<{id}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{TW}Gap> <{id}> .\n"
    body = type + "".join(f"<{id}> <{TW}{name}> {value} <{id}> .\n" for name, value in said.items())
    time = datetime.fromtimestamp(now / 1_000_000, UTC).isoformat()
    return Parcel(format_position(parse_position(earliest) - 1), id, time, body, application="triplewire-relay")


def packed(parcels: Iterable[Parcel]) -> bytes:
    """The body by which they are published: items, each with what is said of it, the publisher's own headers too."""
    return b"".join(_packed(each) for each in parcels)


def _packed(parcel: Parcel) -> bytes:
    time = instant("time", parcel.time)
    headers = EventHeaders(parcel.source, parcel.application, time, N_QUADS.media_type, parcel.headers)
    return encode_item(parcel.event, headers, parcel.body.encode())


def rewritten(event: Event) -> str:
    """The body of an event."""
    return nquads(event.id, event.text)
