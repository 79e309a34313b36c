"""Overviews: what edges tell of themselves, looked at twice, as rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from triplewire.config.metrics import StreamTraffic
from triplewire.config.status import EdgeStatus, parse_status


@dataclass(frozen=True)
class EdgeRow:
    """One edge. `cpu` is a share of a core, the others with `_s` are in a second."""

    name: str
    pid: int
    state: str
    cpu: float
    memory: int
    listeners: int
    seats: int
    published_s: float
    messages_s: float
    sent_bytes_s: float


@dataclass(frozen=True)
class StreamRow:
    """One stream, over all edges of a broker. `share` is bytes sent of bytes before compression."""

    stream: str
    clients: int = 0
    messages_s: float = 0.0
    plain_bytes_s: float = 0.0
    sent_bytes_s: float = 0.0
    waiting: int = 0
    dropped: int = 0
    window: float = 0.0

    @property
    def share(self) -> float | None:
        return self.sent_bytes_s / self.plain_bytes_s if self.plain_bytes_s else None

    def __add__(self, other: StreamRow) -> StreamRow:
        return StreamRow(
            self.stream,
            self.clients + other.clients,
            self.messages_s + other.messages_s,
            self.plain_bytes_s + other.plain_bytes_s,
            self.sent_bytes_s + other.sent_bytes_s,
            max(self.waiting, other.waiting),
            self.dropped + other.dropped,
            max(self.window, other.window),
        )


@dataclass(frozen=True)
class Overview:
    """One broker, by the address of which it was asked. Without health it does not answer, for the reason given."""

    url: str
    health: Mapping[str, Any] = field(default_factory=dict)
    edges: Sequence[EdgeRow] = ()
    streams: Sequence[StreamRow] = ()
    fault: str = ""

    def document(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "fault": self.fault or None,
            "health": dict(self.health),
            "edges": [asdict(each) for each in self.edges],
            "streams": [{**asdict(each), "share": each.share} for each in self.streams],
        }


class Looks:
    """Remembers what each edge of one broker told before, and turns what it tells now into rates."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pairs: dict[int, tuple[EdgeStatus, EdgeStatus]] = {}

    @property
    def settled(self) -> bool:
        """Every edge has told at least twice."""
        return bool(self._pairs) and all(before.at < now.at for before, now in self._pairs.values())

    def look(self, health: Mapping[str, Any], edges: Iterable[Mapping[str, Any]]) -> Overview:
        """An edge that has told nothing new keeps the rates that it had."""
        told = [parse_status(each) for each in edges]
        self._pairs = {each.pid: _pair(self._pairs.get(each.pid), each) for each in told}
        pairs = [self._pairs[each.pid] for each in told]
        flows = (row for pair in pairs for row in _stream_rows(*pair))
        return Overview(self.url, health, [_edge_row(*pair) for pair in pairs], _by_stream(flows))


def _pair(known: tuple[EdgeStatus, EdgeStatus] | None, now: EdgeStatus) -> tuple[EdgeStatus, EdgeStatus]:
    if known is None:
        return now, now
    return known if known[1].at == now.at else (known[1], now)


def _edge_row(before: EdgeStatus, now: EdgeStatus) -> EdgeRow:
    seconds = _seconds(before, now)
    sent, old = _sum(now.streams), _sum(before.streams)
    return EdgeRow(
        now.name,
        now.pid,
        now.state,
        _rate(now.cpu - before.cpu, seconds),
        now.memory,
        now.taken,
        now.seats,
        _rate(now.published - before.published, seconds),
        _rate(sent.messages - old.messages, seconds),
        _rate(sent.sent_bytes - old.sent_bytes, seconds),
    )


def _stream_rows(before: EdgeStatus, now: EdgeStatus) -> Iterable[StreamRow]:
    seconds, known = _seconds(before, now), {each.stream: each for each in before.streams}
    for flow in now.streams:
        old = known.get(flow.stream, StreamTraffic(flow.stream))
        yield StreamRow(
            flow.stream,
            flow.clients,
            _rate(flow.messages - old.messages, seconds),
            _rate(flow.plain_bytes - old.plain_bytes, seconds),
            _rate(flow.sent_bytes - old.sent_bytes, seconds),
            flow.waiting,
            flow.dropped,
            flow.window,
        )


def _by_stream(rows: Iterable[StreamRow]) -> list[StreamRow]:
    """The busiest first."""
    found: dict[str, StreamRow] = {}
    for row in rows:
        found[row.stream] = found[row.stream] + row if row.stream in found else row
    return sorted(found.values(), key=lambda row: (-row.clients, -row.messages_s, row.stream))


def _sum(flows: Iterable[StreamTraffic]) -> StreamTraffic:
    total = StreamTraffic("")
    for each in flows:
        total += each
    return total


def _seconds(before: EdgeStatus, now: EdgeStatus) -> float:
    return (now.at - before.at) / 1_000_000


def _rate(amount: float, seconds: float) -> float:
    return round(max(0.0, amount) / seconds, 3) if seconds > 0 else 0.0
