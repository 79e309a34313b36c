"""The demo's screen: a city publishes, subscriptions consume, and the terminal shows the traffic."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event as Flag
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from triplewire.client import AsyncClient
from triplewire.model.errors import TriplewireError
from triplewire.service.city import SCENARIOS, City, Scenario
from triplewire.service.supervisor import Supervisor

STREAM = "city"
RATE = 40
SPEED = 240.0
"""Simulated seconds in a second: a day of the city takes six minutes."""
DAWN = 7
"""The hour at which the city's day begins: the morning rush has incidents at once."""
TICK_SECONDS = 0.5
SHOWN = 12

_CURL = """publish  curl {url}/streams/city -H 'Content-Type: text/turtle' \\
           -d '<urn:o> <http://www.w3.org/ns/sosa/hasSimpleResult> 250 .'
listen   curl -N {url}/streams/city
query    curl {url}/sparql --data-urlencode \\
           'query=SELECT ?s ?v {{ ?o <http://www.w3.org/ns/sosa/madeBySensor> ?s ;
                                  <http://www.w3.org/ns/sosa/hasSimpleResult> ?v FILTER(?v > 200) }} LIMIT 5'"""


@dataclass
class DemoScreen:
    """The content of the terminal."""

    url: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    published: int = 0
    rate: float = 0.0
    health: Mapping[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    lines: deque[Text] = field(default_factory=lambda: deque(maxlen=SHOWN))

    def add(self, scenario: Scenario, sentence: str, delay: float) -> None:
        self.counts[scenario.name] = self.counts.get(scenario.name, 0) + 1
        self.lines.append(Text.assemble((f"{scenario.name:>14}  ", "cyan"), sentence, (f"  {delay:.1f} s", "dim")))

    def __rich__(self) -> Group:
        waiting = [Text("no notification yet …", "dim")]
        return Group(
            self._figures(),
            _make_panel(self._subscriptions(), "subscriptions, with their notifications"),
            _make_panel(Group(*(self.lines or waiting)), "notifications, as they arrive"),
            Panel(
                Text(_CURL.format(url=self.url)),
                title="your turn, in another terminal",
                title_align="left",
                subtitle="Ctrl-C stops everything",
            ),
        )

    def _figures(self) -> Table:
        table = Table.grid(padding=(0, 3))
        lag, state = self.health.get("lag", "–"), self.health.get("status", "starting")
        table.add_row(
            f"[bold]Triplewire[/bold] {self.url}",
            f"[dim]status[/dim] {state}",
            f"[dim]published[/dim] {self.published:,} ({self.rate:.0f}/s)",
            f"[dim]not yet matched[/dim] {lag}",
            f"[dim]in the city[/dim] {self.at:%A %H:%M}",
        )
        return table

    def _subscriptions(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for each in SCENARIOS:
            table.add_row(Text(each.name, "cyan"), each.title, f"{self.counts.get(each.name, 0):,}", style="default")
        return table


def _make_panel(content: RenderableType, title: str) -> Panel:
    return Panel(content, title=title, title_align="left", border_style="dim")


def run_demo(broker: Supervisor, stop: Flag) -> None:
    """Publish, listen and show until `stop` is set."""
    asyncio.run(_demo(broker, stop))


async def _demo(broker: Supervisor, stop: Flag) -> None:
    screen, console = DemoScreen(broker.settings.url), Console()
    async with AsyncClient(broker.settings.url) as client:
        listeners = [_listen(client, screen, id, each) for id, each in await _subscribe(client)]
        tasks = [asyncio.create_task(each) for each in (*listeners, _publish(client, screen), _look(client, screen))]
        with Live(screen, console=console, refresh_per_second=4, screen=console.is_terminal) as live:
            while not stop.is_set():
                broker.step()
                await asyncio.sleep(0.1)
                for task in tasks:
                    if task.done():
                        task.result()
            live.refresh()
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    for line in screen.lines:
        console.print(line)


async def _subscribe(client: AsyncClient) -> list[tuple[str, Scenario]]:
    """Return the subscriptions, those of an earlier run among them, by id."""
    known = {each["sparql"]: each["id"] for each in await client.subscriptions() if each["stream"] == STREAM}
    for each in SCENARIOS:
        if each.sparql not in known:
            known[each.sparql] = (await client.subscribe(each.sparql, kind=each.kind, stream=STREAM))["id"]
    return [(known[each.sparql], each) for each in SCENARIOS]


async def _listen(client: AsyncClient, screen: DemoScreen, id: str, scenario: Scenario) -> None:
    async for notification in client.notifications(id, after="now"):
        delay = time.time() - datetime.fromisoformat(notification["time"]).timestamp()
        for row in notification.get("results", {}).get("results", {}).get("bindings", [{}]):
            screen.add(scenario, scenario.say({name: term["value"] for name, term in row.items()}), delay)


async def _publish(client: AsyncClient, screen: DemoScreen) -> None:
    """Publish a day of the city every few minutes; wait for a broker that is away for a moment."""
    city, began, start = City(), time.monotonic(), datetime.now(UTC).replace(hour=DAWN, minute=30)
    while True:
        screen.at = start + timedelta(seconds=(time.monotonic() - began) * SPEED)
        events = city.observe(screen.at, round(RATE * TICK_SECONDS))
        with suppress(TriplewireError):
            await client.publish(STREAM, events)
            screen.published += len(events)
        await asyncio.sleep(TICK_SECONDS)
        screen.rate = screen.published / (time.monotonic() - began)


async def _look(client: AsyncClient, screen: DemoScreen) -> None:
    while True:
        with suppress(TriplewireError):
            screen.health = await client.health()
        await asyncio.sleep(1)
