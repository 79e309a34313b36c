"""`up`, `edge`, `pipeline`, `restart`, `status`, `relay`: run the broker, parts of it, or a relay between brokers."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated, Any, Optional

import orjson
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from triplewire.cli.common import (
    DEFAULT_URL,
    Data,
    Host,
    Json,
    LogFormat,
    Open,
    Port,
    TlsCertificate,
    TlsKey,
    Url,
    load_settings,
)
from triplewire.config.settings import hide

if TYPE_CHECKING:
    from triplewire.network.declaration import RelayDeclaration
    from triplewire.network.route import RouteStatus


def add_serve_commands(app: typer.Typer) -> None:
    app.command()(up)
    app.command()(edge)
    app.command()(pipeline)
    app.command()(restart)
    app.command()(status)


def up(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    edges: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option(
            "--edges",
            help="How many HTTP processes share the port: a number, `auto` for as many as the load asks for, up to one "
            "more than there are cores, or `auto:8` for eight at most.",
            show_default="1",
        ),
    ] = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    open_: Open = False,
    log_format: LogFormat = None,
    demo: Annotated[bool, typer.Option("--demo", help="Publish a simulated city and show what flows.")] = False,
) -> None:
    """Start the whole broker on this machine, and watch over it until Ctrl-C. SIGHUP replaces its edges, as
    `triplewire restart` does."""
    from triplewire.cli.demo import run_demo
    from triplewire.config.logs import configure_logging
    from triplewire.service.supervisor import Supervisor

    auth = _auth_settings(tls_certificate, tls_key, open_)
    settings = load_settings(data, host, port, edges=edges, log_format=log_format, **auth)
    configure_logging(settings.log_format, "up")
    console = Console()
    broker = Supervisor(settings)
    stop = _stop_flag()
    signal.signal(signal.SIGHUP, lambda *_: broker.restart.set())
    broker.start()
    try:
        with console.status(f"starting on {settings.url} (data in {settings.data}) …"):
            broker.wait_ready(stop)
        if stop.is_set():
            return
        if demo:
            run_demo(broker, stop)
        else:
            console.print(f"Triplewire is ready on [bold]{settings.url}[/bold]. Ctrl-C stops it.")
            broker.watch(stop)
    finally:
        with console.status("stopping …"):
            broker.stop()
        console.print("stopped; everything published is in", str(settings.data))


def edge(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    open_: Open = False,
    log_format: LogFormat = None,
) -> None:
    """Start the HTTP edge alone. It needs no JVM; several may share one directory."""
    hide("pandas")
    from triplewire.service.edge import run_edge

    run_edge(load_settings(data, host, port, log_format=log_format, **_auth_settings(tls_certificate, tls_key, open_)))


def _auth_settings(certificate: str | None, key: str | None, open_: bool) -> dict[str, str | None]:
    return {"tls_certificate": certificate, "tls_key": key, "auth": "open" if open_ else None}


def pipeline(data: Data = None, log_format: LogFormat = None) -> None:
    """Start the Spark pipeline alone, over the log in the data directory."""
    from triplewire.service.pipeline import run_pipeline

    run_pipeline(load_settings(data, log_format=log_format))


def restart(
    data: Data = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Return at once, and not when all of them are new.")
    ] = False,
) -> None:
    """Replace the edges of a broker that `up` started, one after the other, for new code: nobody loses anything."""
    from triplewire.service.supervisor import RollingRestart

    restart = RollingRestart.begun(load_settings(data))
    console = Console()
    if not no_wait:
        with console.status(f"replacing {len(restart.before)} edges …"):
            restart.wait()
    console.print(f"{len(restart.before)} edges {'are being replaced' if no_wait else 'are new'}")


def status(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell how the broker is: heads, lag, pipeline, listeners."""
    import orjson

    from triplewire.client import Client

    with Client(url) as client:
        health = client.health()
    console = Console()
    if json:
        console.print_json(orjson.dumps(health).decode())
    else:
        for name, value in _flat(health):
            console.print(f"[dim]{name:>24}[/dim]  {value}")
    if health.get("status") == "down":
        raise typer.Exit(1)


def _flat(value: Any, name: str = "") -> list[tuple[str, Any]]:  # noqa: ANN401 - a JSON value
    if not isinstance(value, dict):
        return [(name, value)]
    return [row for key, each in value.items() for row in _flat(each, f"{name}.{key}" if name else key)]


def _stop_flag() -> Flag:
    stop = Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


# `relay`: streams of other edges become streams here.

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


def add_relay_command(app: typer.Typer) -> None:
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
    from triplewire.network.declaration import read_declaration
    from triplewire.network.relay import make_enrichers, run_relay

    declaration = read_declaration(file, url)
    make_enrichers(declaration)
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


def _describe(declaration: RelayDeclaration, json: bool) -> None:
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


def _live(run: Callable[[Callable[[list[RouteStatus]], None]], list[RouteStatus]]) -> list[RouteStatus]:
    with Live(console=Console(), auto_refresh=False) as live:
        return run(lambda tallies: live.update(_table(tallies), refresh=True))


def _table(tallies: list[RouteStatus]) -> Table:
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


def _report(tallies: list[RouteStatus]) -> None:
    for each in tallies:
        typer.echo(f"{each.strand}: {each.state}, {each.events:,} events, at {each.position or 'the beginning'}")


def _write(tallies: list[RouteStatus]) -> None:
    _line({"strands": [each.document() for each in tallies]})


def _line(document: dict[str, Any]) -> None:
    sys.stdout.write(orjson.dumps(document).decode() + "\n")
    sys.stdout.flush()
