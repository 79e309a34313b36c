"""`simulate`: publish a simulated city."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console

from triplewire.cli.options import DEFAULT_URL, Url


def add_to(app: typer.Typer) -> None:
    app.command()(simulate)


def simulate(
    stream: Annotated[str, typer.Option("--stream", help="Name of the stream to publish to.")] = "city",
    rate: Annotated[float, typer.Option("--rate", help="Events a second.", min=0.1)] = 20.0,
    speed: Annotated[float, typer.Option("--speed", help="Simulated seconds in a second.", min=1)] = 240.0,
    seconds: Annotated[float, typer.Option("--seconds", help="How long; 0 is until Ctrl-C.", min=0)] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="Which city.")] = 1,
    url: Url = DEFAULT_URL,
) -> None:
    """Publish the observations of a simulated city: traffic, air, parking and noise through the hours of its day."""
    from triplewire.client import Client
    from triplewire.simulate import City

    console, city = Console(), City(seed)
    began, start, published = time.monotonic(), datetime.now(UTC), 0
    with Client(url) as client, console.status("publishing …") as status:
        while not seconds or time.monotonic() - began < seconds:
            at = start + timedelta(seconds=(time.monotonic() - began) * speed)
            events = city.observe(at, max(1, round(rate)))
            client.publish(stream, events)
            published += len(events)
            status.update(f"{published} events to {stream}; in the city it is {at:%A %H:%M}")
            time.sleep(max(0.0, began + published / rate - time.monotonic()))
    console.print(f"{published} events published to {stream}")
