"""`up`, `edge`, `pipeline`, `precompile`, `restart`, `status`, `relay`: run the broker, parts of it, or a relay."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated, Any

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
    open_client,
    print_json,
    write_json_line,
)
from triplewire.config.settings import hide

if TYPE_CHECKING:
    from triplewire.network.declaration import RelayDeclaration
    from triplewire.network.route import RouteStatus


def up(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    edges: Annotated[
        str | None,
        typer.Option(
            "--edges",
            help="How many HTTP processes share the port: a number, `auto` to follow the load, up to one more than "
            "there are cores, or `auto:8` for at most eight.",
            show_default="1",
        ),
    ] = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    open_: Open = False,
    log_format: LogFormat = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Publish events of a simulated city, and show subscriptions at work.")
    ] = False,
) -> None:
    """Start a whole broker on this machine: HTTP edges and the Spark pipeline.

    It restarts processes that fail, and stops them in order on Ctrl-C. SIGHUP replaces the edges one by one, as
    `triplewire restart` does.
    """
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
        with console.status(f"starting on {settings.url}, data in {settings.data} …"):
            broker.wait_ready(stop)
        if stop.is_set():
            return
        _precompile_in_background()
        if demo:
            from triplewire.cli.demo import run_demo

            run_demo(broker, stop)
        else:
            console.print(f"Triplewire is ready on [bold]{settings.url}[/bold]. Stop it with Ctrl-C.")
            broker.watch(stop)
    finally:
        with console.status("stopping …"):
            broker.stop()
        console.print(f"Stopped. All events are in {settings.data}.")


def edge(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    open_: Open = False,
    log_format: LogFormat = None,
) -> None:
    """Start one HTTP edge, without the pipeline. It needs no JVM. Several edges may share a data directory."""
    hide("pandas")
    from triplewire.service.edge import run_edge

    run_edge(load_settings(data, host, port, log_format=log_format, **_auth_settings(tls_certificate, tls_key, open_)))


def _auth_settings(certificate: str | None, key: str | None, open_: bool) -> dict[str, str | None]:
    return {"tls_certificate": certificate, "tls_key": key, "auth": "open" if open_ else None}


def pipeline(data: Data = None, log_format: LogFormat = None) -> None:
    """Start the Spark pipeline, without an edge, over the log in the data directory."""
    from triplewire.spark.session import do_without_pandas

    do_without_pandas()
    from triplewire.service.pipeline import run_pipeline

    run_pipeline(load_settings(data, log_format=log_format))


def precompile() -> None:
    """Prepare this installation: compile the matching code and cache the classes of Spark's JVM, in about a minute.

    `up` then starts in half the time. `make setup` does it; after `pip install` the first `up` does it in the
    background. The results are in the user's cache directory; when they are there, nothing is done.
    """
    from triplewire.kernels.cache import is_compiled

    # Java writes pages about what it records, so that it runs in a process whose output is kept back.
    making = [sys.executable, "-c", "from triplewire.spark.session import make_class_cache as make; make()"]
    with Console(stderr=True).status("compiling …"):
        classes = subprocess.Popen(making, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if not is_compiled():
            from triplewire.matching.index.groups import compile_kernels

            compile_kernels()
        _, errors = classes.communicate()
    if classes.returncode:
        reason = errors.strip().rpartition("\n")[2]
        typer.echo(f"Spark will start without a class cache: {reason}", err=True)


def _precompile_in_background() -> None:
    """Start `precompile`, unless it was run, in a process that yields to all others; its failure has no effect. The
    matching code is compiled by now: the pipeline is ready only then."""
    from triplewire.spark.java import class_cache, java_home

    if class_cache(java_home()).path.exists():
        return
    command = [sys.executable, "-m", "triplewire", "precompile"]
    quiet = subprocess.DEVNULL
    subprocess.Popen(["nice", "-n", "19", *command], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def restart(
    data: Data = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return at once, before the edges are replaced.")] = False,
) -> None:
    """Replace the edges that `up` started, one by one, for example by new code. No event and no request is lost."""
    from triplewire.service.supervisor import RollingRestart

    restart = RollingRestart.request(load_settings(data))
    console = Console()
    if not no_wait:
        with console.status(f"replacing {len(restart.before)} edges …"):
            restart.wait()
    console.print(f"{len(restart.before)} edges {'are being' if no_wait else 'were'} replaced")


def status(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show the health of a broker: head of the log, lag, pipeline, clients. Exits with 1 if it is down."""
    with open_client(url) as client:
        health = client.health()
    if json:
        print_json(health)
    else:
        console = Console()
        for name, value in _flatten(health):
            console.print(f"[dim]{name:>24}[/dim]  {value}")
    if health.get("status") == "down":
        raise typer.Exit(1)


def _flatten(value: Any, name: str = "") -> list[tuple[str, Any]]:  # noqa: ANN401 - a JSON value
    if not isinstance(value, dict):
        return [(name, value)]
    return [row for key, each in value.items() for row in _flatten(each, f"{name}.{key}" if name else key)]


def _stop_flag() -> Flag:
    stop = Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


SECONDS = 0.5
"""Seconds between two refreshes of the table of `relay`."""

_COUNTS = ("events", "loops", "far", "gaps", "refused", "breaks")

RELAY_HELP = r"""Mirror, join, split, filter and enrich streams of other edges, until Ctrl-C.

A small TOML file declares the routes:

\b
    [\[relay]]   # mirror a stream under the same name
    from = "http://origin:8080/streams/weather"
\b
    [\[relay]]   # join two streams, some events of each
    from = ["http://a:8080/streams/x", "http://b:8080/streams/y"]
    stream = "roofs"
    source = "roof"
\b
    [\[relay]]   # split a stream into two, and enrich its events
    from = "http://origin:8080/streams/city"
    split.hot = { ask = "ASK { ?s <urn:celsius> ?t FILTER(?t > 30) }" }
    split.air = { vocabulary = "http://example.org/air#" }
    enrich.annotation.turtle = "<> <urn:passed> 'north' ."

`to = "http://…"`, at the top or in a table, names the edge that the streams go to; by default it is that of --url.
A relay that was stopped or killed resumes where it was, and no event is published twice."""


def relay(
    file: Annotated[Path, typer.Argument(help="The TOML file that declares the routes.")],
    check: Annotated[bool, typer.Option("--check", help="Only check the file and print its routes.")] = False,
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
        statuses = run_relay(declaration, _write_statuses, SECONDS)
    elif sys.stdout.isatty():
        with Live(console=Console(), auto_refresh=False) as live:
            statuses = run_relay(declaration, lambda each: live.update(_status_table(each), refresh=True), SECONDS)
    else:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        statuses = run_relay(declaration, _report, 10 * SECONDS)
    if any(each.state == "refused" for each in statuses):
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
        for each in declaration.routes
    ]
    if json:
        write_json_line({"name": declaration.name, "positions": str(declaration.positions), "routes": rows})
        return
    table = _columns("from", "to", "filters", "enriched by")
    for row in rows:
        filters = "\n".join(f"{name}={value}" for name, value in row["filters"])
        table.add_row(str(row["from"]), str(row["to"]), filters, ", ".join(map(str, row["enrich"])))
    Console().print(table)


def _status_table(statuses: list[RouteStatus]) -> Table:
    table = _columns("from", "to", "state", "position", *_COUNTS)
    for each in statuses:
        counts = [f"{getattr(each, name):,}" for name in _COUNTS]
        state = each.state if each.trouble is None else f"{each.state}: {each.trouble}"
        table.add_row(str(each.route.source), str(each.route.target), state, each.position or "", *counts)
    return table


def _columns(*names: str) -> Table:
    """A table that folds addresses rather than truncate them."""
    table = Table(box=None, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _report(statuses: list[RouteStatus]) -> None:
    for each in statuses:
        typer.echo(f"{each.route}: {each.state}, {each.events:,} events, at {each.position or 'the beginning'}")


def _write_statuses(statuses: list[RouteStatus]) -> None:
    write_json_line({"routes": [each.document() for each in statuses]})
