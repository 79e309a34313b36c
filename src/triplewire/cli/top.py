"""`top`: a live view of edges and streams.

Counters of edges are read twice and shown as rates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from triplewire.cli.common import DEFAULT_URL, Json, format_size
from triplewire.config.status import EdgeStatus, parse_status
from triplewire.config.traffic import StreamTraffic
from triplewire.model.errors import TriplewireError
from triplewire.model.positions import parse_position


@dataclass(frozen=True)
class EdgeRow:
    """An edge. `cpu` is the share of a core; names that end in `_s` are rates per second."""

    name: str
    pid: int
    state: str
    cpu: float
    memory: int
    listeners: int
    max_listeners: int
    published_s: float
    messages_s: float
    sent_bytes_s: float


@dataclass(frozen=True)
class StreamRow:
    """A stream, summed over the edges of a broker. `share` is bytes sent by bytes before compression."""

    stream: str
    clients: int = 0
    messages_s: float = 0.0
    plain_bytes_s: float = 0.0
    sent_bytes_s: float = 0.0
    waiting: int = 0
    dropped: int = 0
    linger: float = 0.0

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
            max(self.linger, other.linger),
        )


@dataclass(frozen=True)
class Overview:
    """A broker. If it does not answer, `fault` says why and the rest is empty."""

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


class RateTracker:
    """Turns the counters of the edges of a broker into rates, by the difference to the status before."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pairs: dict[int, tuple[EdgeStatus, EdgeStatus]] = {}

    @property
    def settled(self) -> bool:
        """Whether every edge has reported at least twice."""
        return bool(self._pairs) and all(before.at < now.at for before, now in self._pairs.values())

    def update(self, health: Mapping[str, Any], edges: Iterable[Mapping[str, Any]]) -> Overview:
        """Return an overview. An edge without a new report keeps its rates."""
        statuses = [parse_status(each) for each in edges]
        self._pairs = {each.pid: _pair(self._pairs.get(each.pid), each) for each in statuses}
        pairs = [self._pairs[each.pid] for each in statuses]
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
        now.connected,
        now.max_listeners,
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
            flow.linger,
        )


def _by_stream(rows: Iterable[StreamRow]) -> list[StreamRow]:
    """Sum rows by stream, the busiest first."""
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


EXAMPLES = """
[bold]Examples[/bold]

The broker on this machine, refreshed every second:

    triplewire top

Two machines, one below the other:

    triplewire top http://north:8080 http://south:8080

The compression ratio of each stream, in a script:

    triplewire top --once --json | jq '.brokers[].streams[] | {stream, share}'
"""

POLL_SECONDS = 1.0
_ATTEMPTS = 5
"""Polls of `--once` at most, until every edge has reported twice."""


def top(
    urls: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URLS]...", envvar="TRIPLEWIRE_URL", help="Addresses of brokers.", show_default=DEFAULT_URL
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Measure for a second or two, print, and exit.")] = False,
    json: Json = False,
) -> None:
    """Show the load of edges and streams, and the lag of pipeline and lake, refreshed until Ctrl-C.

    One address is enough for all edges that share a data directory. For each stream: clients, messages and bytes per
    second before and after compression, their ratio, bytes that wait for the slowest client, clients that were
    disconnected, and the linger time. With `--json`, one object per line.
    """
    watch = BrokerWatcher([url.rstrip("/") for url in urls or [DEFAULT_URL]], Console(), json)
    try:
        asyncio.run(watch.once() if once else watch.run())
    except KeyboardInterrupt:
        raise typer.Exit from None


class BrokerWatcher:
    """Polls brokers and prints their overviews."""

    def __init__(self, urls: Sequence[str], console: Console, json: bool) -> None:
        self._trackers = [RateTracker(url) for url in urls]
        self._console = console
        self._json = json

    async def once(self) -> None:
        """Poll until there are rates, and print them. Exits with 1 if no broker answers."""
        found: list[Overview] = []
        for attempt in range(_ATTEMPTS):
            await asyncio.sleep(POLL_SECONDS if attempt else 0.0)
            found = await self.poll()
            if all(tracker.settled or each.fault for tracker, each in zip(self._trackers, found, strict=True)):
                break
        self._print(found)
        if all(each.fault for each in found):
            raise typer.Exit(1)

    async def run(self) -> None:
        if self._json:
            while True:
                self._print(await self.poll())
                await asyncio.sleep(POLL_SECONDS)
        with Live(console=self._console, screen=self._console.is_terminal, auto_refresh=False) as live:
            while True:
                live.update(render_overviews(await self.poll(), max(5, self._console.height - 12)), refresh=True)
                await asyncio.sleep(POLL_SECONDS)

    async def poll(self) -> list[Overview]:
        """Return an overview of each broker, with rates since the last poll."""
        return list(await asyncio.gather(*map(_poll, self._trackers)))

    def _print(self, found: Sequence[Overview]) -> None:
        import orjson

        if self._json:
            typer.echo(orjson.dumps({"brokers": [each.document() for each in found]}))
        else:
            self._console.print(render_overviews(found))


async def _poll(tracker: RateTracker) -> Overview:
    """Ask over a new connection: several processes may share the port, and each reports on all of them."""
    from triplewire.client import AsyncClient

    try:
        async with asyncio.timeout(POLL_SECONDS * 5), AsyncClient(tracker.url) as client:
            return tracker.update(await client.health(), await client.edges())
    except TimeoutError:
        return Overview(tracker.url, fault="no answer in time")
    except TriplewireError as error:
        return Overview(tracker.url, fault=str(error))


_CELLS = 6
"""Length of the bar of a whole core, or of all connections in use."""
_COLOURS = {"ok": "green", "ready": "green", "lagging": "yellow", "starting": "yellow", "closing": "yellow"}


def render_overviews(overviews: Sequence[Overview], rows: int = 20) -> Group:
    """Draw all brokers, one below the other, with at most `rows` streams each."""
    return Group(*(part for each in overviews for part in _broker(each, rows)))


def _broker(overview: Overview, rows: int) -> list[RenderableType]:
    if overview.fault:
        return [Text.assemble((overview.url, "bold"), "  ", (overview.fault, "red"))]
    return [_head(overview), _edges(overview.edges), Text(), _streams(overview.streams, rows), Text()]


def _head(overview: Overview) -> Text:
    health = overview.health
    status = str(health.get("status", "?"))
    line = Text.assemble((overview.url, "bold"), "  ", (status, _COLOURS.get(status, "red")))
    facts = {
        "pipeline": health.get("pipeline", "?"),
        "to match": f"{health.get('lag', 0):,} ({health.get('lag_seconds', 0.0):.1f} s)",
        **{f"lane {name}": f"{each['lag']:,}" for name, each in health.get("lanes", {}).items()},
        **_lake(health),
    }
    for name, value in facts.items():
        line.append(f"   {name} ", "dim").append(str(value))
    return line


def _lake(health: Mapping[str, Any]) -> dict[str, str]:
    """Return the size of the lake, as the maintenance job reported it, and how many positions are not stored yet."""
    stored = health.get("stored")
    behind = (
        {} if stored is None else {"to store": f"{max(0, parse_position(health['head']) - parse_position(stored)):,}"}
    )
    lake = health.get("lake", {})
    if "files" not in lake:
        return behind
    held = f"{lake['files']:,} files, {lake.get('fresh', 0):,} fresh, {format_size(lake.get('bytes', 0))}"
    return behind | {"lake": held}


def _edges(edges: Sequence[EdgeRow]) -> Table:
    table = _table("edge")
    for name in ("state", "pid", "cpu", "memory", "listeners", "full", "in/s", "out/s", "sent/s"):
        table.add_column(name, justify="left" if name == "state" else "right", no_wrap=True)
    for each in edges:
        full = each.listeners / each.max_listeners if each.max_listeners else 0.0
        table.add_row(
            each.name,
            Text(each.state, _COLOURS.get(each.state, "red")),
            str(each.pid),
            _bar(each.cpu),
            format_size(each.memory),
            f"{each.listeners:,}",
            _bar(full),
            format_number(each.published_s),
            format_number(each.messages_s),
            format_size(each.sent_bytes_s),
        )
    return table


def _streams(streams: Sequence[StreamRow], rows: int) -> Table:
    table = _table("stream")
    for name in ("clients", "msgs/s", "plain/s", "sent/s", "share", "behind", "cut off", "linger"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in streams[:rows]:
        table.add_row(
            each.stream,
            f"{each.clients:,}",
            format_number(each.messages_s),
            format_size(each.plain_bytes_s),
            format_size(each.sent_bytes_s),
            "–" if each.share is None else f"{each.share:.1%}",
            Text(format_size(each.waiting), "yellow" if each.waiting else ""),
            Text(f"{each.dropped:,}", "red" if each.dropped else ""),
            f"{each.linger:.2f} s",
        )
    if len(streams) > rows:
        table.add_row(Text(f"and {len(streams) - rows:,} more", "dim"))
    if not streams:
        table.add_row(Text("no clients", "dim"))
    return table


def _table(first: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True, min_width=10)
    return table


def _bar(share: float) -> Text:
    filled = min(_CELLS, round(share * _CELLS))
    colour = "red" if share > 0.9 else "yellow" if share > 0.7 else "green"
    return Text.assemble(("█" * filled, colour), ("░" * (_CELLS - filled), "dim"), f" {share:4.0%}")


def format_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"
