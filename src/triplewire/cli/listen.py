"""`consume` and `subscribe`: hear what is published, all of it or what you asked for."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Optional

import orjson
import typer
from rich.console import Console
from rich.markup import escape

from triplewire.cli.options import DEFAULT_URL, Json, Url
from triplewire.cli.texts import read_text
from triplewire.client import Client
from triplewire.model import Kind

After = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option("--after", help="Where to start: a position that you received, or `earliest`.", show_default="now"),
]
Count = Annotated[Optional[int], typer.Option("--count", "-n", help="Stop after that many.")]  # noqa: UP045

ATTEMPTS = 8
"""Broken connections in a row that are borne, about half a minute: a broker may restart, a script must not hang."""


def add_to(app: typer.Typer) -> None:
    app.command()(consume)
    app.command()(subscribe)


def consume(
    stream: Annotated[str, typer.Argument(help="Name of the stream.")],
    after: After = None,
    count: Count = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Follow a stream: every event, as it happens, until Ctrl-C."""
    console = Console()
    with Client(url, attempts=ATTEMPTS) as client:
        for number, message in enumerate(client.consume(stream, after=after), 1):
            _show(console, message, json)
            if number == count:
                break


def subscribe(
    sparql: Annotated[
        str, typer.Argument(help="A SPARQL SELECT or ASK, a file that holds one, or - for standard input.")
    ],
    kind: Annotated[Kind, typer.Option("--kind", help="How much to be told.")] = Kind.BINDINGS,
    stream: Annotated[Optional[str], typer.Option("--stream", help="Only this stream.")] = None,  # noqa: UP045
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the subscription in place when you stop listening.")
    ] = False,
    count: Count = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Ask a standing question about each event, and be told when the answer is there, until Ctrl-C."""
    console = Console()
    with Client(url, attempts=ATTEMPTS) as client:
        made = client.subscribe(read_text(sparql), kind=kind, stream=stream)
        if json:
            _write(made)
        else:
            console.print(f"[dim]subscription {made['id']}, from position {made['since']} on[/dim]")
        try:
            for number, message in enumerate(client.notifications(made["id"]), 1):
                _show(console, message, json)
                if number == count:
                    break
        finally:
            if not keep:
                client.unsubscribe(made["id"])


def _show(console: Console, message: dict[str, Any], json: bool) -> None:
    if json:
        _write(message)
    else:
        console.print(_lines(message), soft_wrap=True, highlight=False)


def _write(message: dict[str, Any]) -> None:
    """One line of JSON, at once, for whoever reads along."""
    sys.stdout.write(orjson.dumps(message).decode() + "\n")
    sys.stdout.flush()


def _lines(message: dict[str, Any]) -> str:
    head = f"[bold]{message['position']}[/bold] [dim]{message['time']}[/dim] {escape(message['event'])}"
    rows = message.get("results", {}).get("results", {}).get("bindings", [])
    told = ["  " + "  ".join(f"?{name} = {each['value']}" for name, each in row.items()) for row in rows]
    body = message.get("body", "").rstrip().splitlines()
    return "\n".join([head, *(escape(line) for line in [*told, *body])])
