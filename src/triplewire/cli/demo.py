"""The demo's screen: a city publishes, subscriptions consume, and the terminal shows the traffic."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event as Flag
from typing import Any

from rich.console import Console, Group
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
"""The hour at which the city's day begins: the morning rush has something to tell at once."""
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
    """What the terminal shows."""

    url: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    published: int = 0
    rate: float = 0.0
    health: Mapping[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    said: deque[Text] = field(default_factory=lambda: deque(maxlen=SHOWN))

    def tell(self, scenario: Scenario, sentence: str, delay: float) -> None:
        self.counts[scenario.name] = self.counts.get(scenario.name, 0) + 1
        self.said.append(Text.assemble((f"{scenario.name:>14}  ", "cyan"), sentence, (f"  {delay:.1f} s", "dim")))

    def __rich__(self) -> Group:
        return Group(self._figures(), self._subscriptions(), self._notifications(), self._onwards())

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

    def _subscriptions(self) -> Panel:
        table = Table.grid(padding=(0, 2))
        for scenario in SCENARIOS:
            table.add_row(
                Text(scenario.name, "cyan"), scenario.title, f"{self.counts.get(scenario.name, 0):,}", style="default"
            )
        return Panel(table, title="subscriptions, and how often each was told", title_align="left", border_style="dim")

    def _notifications(self) -> Panel:
        waiting = [Text("nothing has happened yet that anybody asked for …", "dim")]
        lines = Group(*(self.said or waiting))
        return Panel(lines, title="notifications, as they arrive", title_align="left", border_style="dim")

    def _onwards(self) -> Panel:
        text = Text(_CURL.format(url=self.url))
        return Panel(
            text, title="your turn, in another terminal", title_align="left", subtitle="Ctrl-C stops everything"
        )


def run_demo(broker: Supervisor, stop: Flag) -> None:
    """Publish, listen and show until `stop` is set."""
    asyncio.run(_demo(broker, stop))


async def _demo(broker: Supervisor, stop: Flag) -> None:
    scene, console = DemoScreen(broker.settings.url), Console()
    async with AsyncClient(broker.settings.url) as client:
        listening = [asyncio.create_task(_listen(client, scene, each)) for each in await _subscriptions(client)]
        listening.append(asyncio.create_task(_publish(client, scene)))
        listening.append(asyncio.create_task(_look(client, scene)))
        with Live(scene, console=console, refresh_per_second=4, screen=console.is_terminal) as live:
            while not stop.is_set():
                broker.step()
                await asyncio.sleep(0.1)
                _raise_failure(listening)
            live.refresh()
        for task in listening:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    for line in scene.said:
        console.print(line)


def _raise_failure(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and task.exception():
            task.result()


async def _subscriptions(client: AsyncClient) -> list[tuple[str, Scenario]]:
    """Those of an earlier run go on; those that are missing are made."""
    there = {each["sparql"]: each["id"] for each in await client.subscriptions() if each["stream"] == STREAM}
    made = []
    for scenario in SCENARIOS:
        id = there.get(scenario.sparql)
        if id is None:
            id = (await client.subscribe(scenario.sparql, kind=scenario.kind, stream=STREAM))["id"]
        made.append((id, scenario))
    return made


async def _listen(client: AsyncClient, scene: DemoScreen, listened: tuple[str, Scenario]) -> None:
    id, scenario = listened
    async for notification in client.notifications(id, after="now"):
        delay = time.time() - datetime.fromisoformat(notification["time"]).timestamp()
        async for sentence in _sentences(scenario, notification):
            scene.tell(scenario, sentence, delay)


async def _sentences(scenario: Scenario, notification: Mapping[str, Any]) -> AsyncIterator[str]:
    rows = notification.get("results", {}).get("results", {}).get("bindings", [{}])
    for row in rows:
        yield scenario.say({name: term["value"] for name, term in row.items()})


async def _publish(client: AsyncClient, scene: DemoScreen) -> None:
    """A day of the city every few minutes; a broker that is away for a moment is waited for."""
    city, began, start = City(), time.monotonic(), datetime.now(UTC).replace(hour=DAWN, minute=30)
    while True:
        scene.at = start + timedelta(seconds=(time.monotonic() - began) * SPEED)
        events = city.observe(scene.at, round(RATE * TICK_SECONDS))
        with suppress(TriplewireError):
            await client.publish(STREAM, events)
            scene.published += len(events)
        await asyncio.sleep(TICK_SECONDS)
        scene.rate = scene.published / (time.monotonic() - began)


async def _look(client: AsyncClient, scene: DemoScreen) -> None:
    while True:
        with suppress(TriplewireError):
            scene.health = await client.health()
        await asyncio.sleep(1)
