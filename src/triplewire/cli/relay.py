"""`relay`: streams of other edges become streams here."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from triplewire.cli.options import DEFAULT_URL, Json, Url

if TYPE_CHECKING:
    from triplewire.relay import Declaration, Tally

SECONDS = 0.5
"""Between two looks that somebody gets at what changes all the time."""

_COUNTS = ("events", "loops", "far", "gaps", "refused", "breaks")
_EXAMPLE = """\
\b
    [[relay]]   # mirrored, under the same name
    from = "http://origin:8080/streams/weather"
\b
    [[relay]]   # two joined into one, some events of each
    from = ["http://a:8080/streams/x", "http://b:8080/streams/y"]
    stream = "roofs"
    source = "roof"
\b
    [[relay]]   # one split into two, and enriched
    from = "http://origin:8080/streams/city"
    split.hot = { ask = "ASK { ?s <urn:celsius> ?t FILTER(?t > 30) }" }
    split.air = { vocabulary = "http://example.org/air#" }
    enrich.annotation.turtle = "<> <urn:passed> 'north' ."
"""


def add_to(app: typer.Typer) -> None:
    app.command(help=HELP)(relay)


_MARKED = _EXAMPLE.replace("[[relay]]", r"[\[relay]]")
"""As it must be written to be shown as it is."""

HELP = f"""Carry streams from edges to an edge: mirror, join, split, filter and enrich them, until Ctrl-C.

A small TOML file says what is carried:

{_MARKED}
`to = "http://…"`, at the top or in a table, names the edge that the streams go to; by default it is that of --url.
After whatever ended it a relay goes on where it was, and what it publishes is there once."""


def relay(
    file: Annotated[Path, typer.Argument(help="The TOML file that declares what is carried.")],
    check: Annotated[bool, typer.Option("--check", help="Only say what the file declares, or what is wrong.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    from triplewire.compose.relay import run_relay
    from triplewire.relay import enrichers_of, read

    declaration = read(file, url)
    enrichers_of(declaration)
    if check:
        _describe(declaration, json)
        return
    if json:
        tallies = run_relay(declaration, _write, SECONDS)
    elif sys.stdout.isatty():
        tallies = _live(lambda tell: run_relay(declaration, tell, SECONDS))
    else:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        tallies = run_relay(declaration, _report, 10 * SECONDS)
    if any(each.state == "refused" for each in tallies):
        raise typer.Exit(1)


def _describe(declaration: Declaration, json: bool) -> None:
    rows = [
        {
            "from": str(each.source),
            "to": str(each.target),
            "after": each.after,
            "filters": [list(pair) for pair in each.filters],
            "enrich": [one.name for one in each.enrichments],
        }
        for each in declaration.strands
    ]
    if json:
        _line({"name": declaration.name, "positions": str(declaration.positions), "strands": rows})
        return
    table = _columns("from", "to", "filters", "enriched by")
    for row in rows:
        filters = "\n".join(f"{name}={value}" for name, value in row["filters"])
        table.add_row(str(row["from"]), str(row["to"]), filters, ", ".join(map(str, row["enrich"])))
    Console().print(table)


def _live(run: Callable[[Callable[[list[Tally]], None]], list[Tally]]) -> list[Tally]:
    with Live(console=Console(), auto_refresh=False) as live:
        return run(lambda tallies: live.update(_table(tallies), refresh=True))


def _table(tallies: list[Tally]) -> Table:
    table = _columns("from", "to", "state", "position", *_COUNTS)
    for each in tallies:
        counts = [f"{getattr(each, name):,}" for name in _COUNTS]
        state = each.state if each.trouble is None else f"{each.state}: {each.trouble}"
        table.add_row(str(each.strand.source), str(each.strand.target), state, each.position or "", *counts)
    return table


def _columns(*names: str) -> Table:
    """A table that shows addresses whole, on several lines where it must."""
    table = Table(box=None, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _report(tallies: list[Tally]) -> None:
    for each in tallies:
        typer.echo(f"{each.strand}: {each.state}, {each.events:,} events, at {each.position or 'the beginning'}")


def _write(tallies: list[Tally]) -> None:
    _line({"strands": [each.document() for each in tallies]})


def _line(document: dict[str, Any]) -> None:
    sys.stdout.write(orjson.dumps(document).decode() + "\n")
    sys.stdout.flush()
