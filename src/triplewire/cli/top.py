"""`top`: a live view of edges and streams."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.live import Live

from triplewire.cli.options import DEFAULT_URL, Json
from triplewire.cli.overviews import Looks, Overview
from triplewire.client import AsyncClient
from triplewire.model.errors import TriplewireError

EXAMPLES = """
[bold]Examples[/bold]

The broker on this machine, each second anew:

    triplewire top

Two machines, one below the other:

    triplewire top http://north:8080 http://south:8080

The share of bytes that compression leaves, in a script:

    triplewire top --once --json | jq '.brokers[].streams[] | {stream, share}'
"""

LOOK_SECONDS = 1.0
_ATTEMPTS = 5
"""Looks that `--once` takes at most until every edge has told twice."""


def add_to(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(top)


def top(
    urls: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads the annotation
        typer.Argument(
            metavar="[URLS]...", envvar="TRIPLEWIRE_URL", help="Brokers to look at.", show_default=DEFAULT_URL
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look for a second or two, print, and end.")] = False,
    json: Json = False,
) -> None:
    """Show what goes on, until Ctrl-C: edges, streams, how far behind pipeline and lake are.

    Any edge tells of all that share its directory, so one address is enough for those on one port. Of each stream:
    clients, messages and bytes in a second, before and after compression, the share that is left, how many bytes wait
    for the slowest client, how many were cut off, and the buffer window. With `--json`, one object a line.
    """
    watch = Watch([url.rstrip("/") for url in urls or [DEFAULT_URL]], Console(), json)
    try:
        asyncio.run(watch.once() if once else watch.run())
    except KeyboardInterrupt:
        raise typer.Exit from None


class Watch:
    """Looks at brokers, and shows what it sees."""

    def __init__(self, urls: Sequence[str], console: Console, json: bool) -> None:
        self._looks = [Looks(url) for url in urls]
        self._console = console
        self._json = json

    async def once(self) -> None:
        """Until there are rates, then print. Exits with 1 where no broker answers."""
        found: list[Overview] = []
        for attempt in range(_ATTEMPTS):
            await asyncio.sleep(LOOK_SECONDS if attempt else 0.0)
            found = await self.look()
            if all(look.settled or each.fault for look, each in zip(self._looks, found, strict=True)):
                break
        self._print(found)
        if all(each.fault for each in found):
            raise typer.Exit(1)

    async def run(self) -> None:
        """Until cancelled."""
        from triplewire.cli.panels import view

        if self._json:
            while True:
                self._print(await self.look())
                await asyncio.sleep(LOOK_SECONDS)
        with Live(console=self._console, screen=self._console.is_terminal, auto_refresh=False) as live:
            while True:
                live.update(view(await self.look(), max(5, self._console.height - 12)), refresh=True)
                await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> list[Overview]:
        """All brokers as they are now; rates are since the last look."""
        return list(await asyncio.gather(*map(_looked, self._looks)))

    def _print(self, found: Sequence[Overview]) -> None:
        import orjson

        from triplewire.cli.panels import view

        if self._json:
            typer.echo(orjson.dumps({"brokers": [each.document() for each in found]}))
        else:
            self._console.print(view(found))


async def _looked(looks: Looks) -> Overview:
    """A connection of its own each time: several processes may share the port, and any of them tells of all."""
    try:
        async with asyncio.timeout(LOOK_SECONDS * 5), AsyncClient(looks.url) as client:
            return looks.look(await client.health(), await client.edges())
    except TimeoutError:
        return Overview(looks.url, fault="no answer in time")
    except TriplewireError as error:
        return Overview(looks.url, fault=str(error))
