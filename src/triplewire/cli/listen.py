"""`consume` and `subscribe`: hear what is published, all of it or what you asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, List, Optional  # noqa: UP035 - typer reads the annotation

import orjson
import typer
from rich.console import Console

from triplewire.cli.messages import show, write
from triplewire.cli.options import DEFAULT_URL, Json, Url
from triplewire.cli.template import pairs
from triplewire.cli.texts import read_text
from triplewire.client import Client
from triplewire.model import Kind

After = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option(
        "--after",
        help="Where to start: a position that you received, `earliest`, a time such as 2026-11-15T08:30:00Z, or the "
        "IRI of an event.",
        show_default="now",
    ),
]
Count = Annotated[Optional[int], typer.Option("--count", "-n", help="Stop after that many.")]  # noqa: UP045

Several = Optional[List[str]]  # noqa: UP006, UP045
Names = Annotated[Several, typer.Option("--stream", help="Only this stream; may be repeated.")]

Sources = Annotated[Several, typer.Option("--source", help="Only from this source; may be repeated.")]
Applications = Annotated[Several, typer.Option("--application", help="Only from this application; may be repeated.")]
Vocabularies = Annotated[
    Several, typer.Option("--vocabulary", help="Only with a predicate or class that begins so; may be repeated.")
]

ATTEMPTS = 8
"""Broken connections in a row that are borne, about half a minute: a broker may restart, a script must not hang."""


def add_to(app: typer.Typer) -> None:
    app.command()(consume)
    app.command()(subscribe)


def consume(
    stream: Annotated[str, typer.Argument(help="Name of the stream.")],
    after: After = None,
    source: Sources = None,
    application: Applications = None,
    vocabulary: Vocabularies = None,
    ask: Annotated[
        Several,
        typer.Option(
            "--ask",
            metavar="SPARQL",
            help="Only events on which this ASK query is true: its text, a file that holds it, or - for standard "
            "input; may be repeated, and any of them will do.",
        ),
    ] = None,
    filter: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--filter", metavar="NAME", help="Only what a filter of the deployment lets through: `changed`."),
    ] = None,
    parameters: Annotated[
        Several,
        typer.Option(
            "--parameter", metavar="NAME=VALUE", help="For the filter, such as property=IRI; may be repeated."
        ),
    ] = None,
    count: Count = None,
    format: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--format", metavar="NAME", help="Print what comes as it is: `cloudevents`, `jelly`, `trig`, …"),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Follow a stream: every event that the options let through, as it happens, until Ctrl-C."""
    console, given = Console(), {"source": source, "application": application, "vocabulary": vocabulary}
    asked = {"ask": [read_text(each) for each in ask or []], "filter": filter}
    filled = {"parameters": pairs(parameters or [], "--parameter")}
    through: Any = {name: each for name, each in {**given, **asked, **filled}.items() if each}
    with Client(url, attempts=ATTEMPTS) as client:
        if format is not None:
            for piece in client.written(stream, format, after, **through):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            return
        for number, message in enumerate(client.consume(stream, after=after, **through), 1):
            show(console, message, json)
            if number == count:
                break


def subscribe(
    sparql: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="A SPARQL SELECT, ASK or CONSTRUCT, a file that holds one, or - for standard input.",
            show_default="every event",
        ),
    ] = None,
    kind: Annotated[Kind, typer.Option("--kind", help="How much to be told.")] = Kind.BINDINGS,
    stream: Names = None,
    source: Sources = None,
    application: Applications = None,
    vocabulary: Vocabularies = None,
    begins: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--from",
            metavar="BEGINNING",
            help="The past first: `earliest`, a position that you received, or a time such as 2026-11-15T08:30:00Z.",
            show_default="no past",
        ),
    ] = None,
    template: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--template", metavar="NAME", help="A template in the place of a query."),
    ] = None,
    values: Annotated[
        Several, typer.Option("--value", metavar="PARAMETER=VALUE", help="For the template; may be repeated.")
    ] = None,
    bulk: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--bulk", help="Make the subscriptions of a file, a JSON object a line, and leave them in place."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the subscription in place when you stop listening.")
    ] = False,
    count: Count = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Ask a standing question about each event, and be told when the answer is there, until Ctrl-C."""
    if bulk is not None:
        _subscribe_bulk(bulk, url, json)
        return
    text = None if sparql is None else read_text(sparql)
    given = {"source": source, "application": application, "vocabulary": vocabulary, "begins": begins}
    filled = {name: _value(each) for name, each in pairs(values or [], "--value").items()}
    wanted: Any = {name: each for name, each in {**given, "template": template, "values": filled}.items() if each}
    with Client(url, attempts=ATTEMPTS) as client:
        made = client.subscribe(text, kind=kind, stream=stream or None, **wanted)
        try:
            _tell(client, made, count, json)
        finally:
            if not keep:
                client.unsubscribe(made["id"])


def _value(text: str) -> object:
    """A number or a truth value as JSON has them, else the text."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return found if isinstance(found, bool | int | float) else text


def _tell(client: Client, made: dict[str, Any], count: int | None, json: bool) -> None:
    console = Console()
    if json:
        write(made)
    else:
        begins = made.get("from", made["since"])
        where = "the first event" if begins == "earliest" else f"position {begins}"
        console.print(f"[dim]subscription {made['id']}, from {where} on[/dim]")
    for number, message in enumerate(client.notifications(made["id"]), 1):
        show(console, message, json)
        if number == count:
            break


def _subscribe_bulk(file: Path, url: str, json: bool) -> None:
    """Tells of each line that was refused, or with `json` of every line; ends with 1 if there was any."""
    refused = made = 0
    with Client(url) as client, sys.stdin.buffer if str(file) == "-" else file.open("rb") as lines:
        for told in client.subscribe_bulk(lines):
            error = told.get("error")
            refused, made = refused + (error is not None), made + (error is None)
            if json:
                write(told)
            elif error:
                typer.secho(f"line {told['line']}: {error['detail']}", fg="red", err=True)
    if not json:
        Console(highlight=False).print(f"{made:,} subscriptions made, {refused:,} refused")
    if refused:
        raise typer.Exit(1)
