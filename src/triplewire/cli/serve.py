"""`up`, `edge`, `pipeline`, `status`: run the broker, or parts of it."""

from __future__ import annotations

import signal
from threading import Event as Flag
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from triplewire.cli.options import (
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
    settings_of,
)
from triplewire.config.settings import hide


def add_to(app: typer.Typer) -> None:
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
    from triplewire.compose.up import Up
    from triplewire.config.logs import configure_logging

    door = _door(tls_certificate, tls_key, open_)
    settings = settings_of(data, host, port, edges=edges, log_format=log_format, **door)
    configure_logging(settings.log_format, "up")
    console = Console()
    broker = Up(settings)
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
    from triplewire.compose.edge import run_edge

    run_edge(settings_of(data, host, port, log_format=log_format, **_door(tls_certificate, tls_key, open_)))


def _door(certificate: str | None, key: str | None, open_: bool) -> dict[str, str | None]:
    return {"tls_certificate": certificate, "tls_key": key, "door": "open" if open_ else None}


def pipeline(data: Data = None, log_format: LogFormat = None) -> None:
    """Start the Spark pipeline alone, over the log in the data directory."""
    from triplewire.compose.pipeline import run_pipeline

    run_pipeline(settings_of(data, log_format=log_format))


def restart(
    data: Data = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Return at once, and not when all of them are new.")
    ] = False,
) -> None:
    """Replace the edges of a broker that `up` started, one after the other, for new code: nobody loses anything."""
    from triplewire.compose.restarts import Restart

    restart = Restart.begun(settings_of(data))
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
