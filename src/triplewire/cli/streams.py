"""`publish`, `consume`, `subscribe`, `simulate`: send events, and receive all of them or those that match."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, List, Optional  # noqa: UP035 - typer reads the annotation

import orjson
import typer
from rich.console import Console

from triplewire.cli.common import DEFAULT_URL, Json, Url, print_message, read_text, write_json_line
from triplewire.cli.resources import parse_pairs
from triplewire.client import Client
from triplewire.model import Kind
from triplewire.model.errors import UnknownMediaType
from triplewire.rdf import SYNTAXES

REFUSED = 3
"""The exit code where some items were refused, and the rest is in."""

_PIECE = 64 * 1024

PUBLISH_EXAMPLES = """
[bold]Examples[/bold]

A file of events, each of which is a named graph:

    triplewire publish home readings.trig

What another program writes, line by line, for as long as it does; each line is acknowledged when it is on disk:

    tail -F readings.ndjson | triplewire publish home --each
"""


def add_publish_command(app: typer.Typer) -> None:
    app.command(epilog=PUBLISH_EXAMPLES)(publish)


def publish(
    stream: Annotated[str, typer.Argument(help="Name of the stream.")],
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045 - typer reads the annotation
        typer.Argument(
            help="RDF, Ztreamy items or lines of JSON, also with .gz; without any, standard input is read.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    syntax: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--type", help="Media type; by default from the file's ending, for standard input TriG, with --each NDJSON."
        ),
    ] = None,
    format: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--format", metavar="NAME", help="The same by a name: `cloudevents`, `jelly`, `messages-trig`, …"),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Publish item by item over one request, and print what becomes of each.")
    ] = False,
    gzip: Annotated[bool, typer.Option("--gzip", help="With --each: compress what is sent.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Publish RDF: each named graph is one event, a triple format is one event. Of Ztreamy items, and of lines of JSON,
    each is taken or refused by itself; if any is refused the exit code is 3."""
    from triplewire.client import Client

    refused, syntax = 0, syntax if format is None else _media_type_of_format(format)
    with Client(url) as client:
        given: list[Path | None] = [*files] if files else [None]
        for path in given:
            told = _by_item(client, stream, path, syntax, packed=gzip) if each else _whole(client, stream, path, syntax)
            for one in told:
                refused += _show(one, "standard input" if path is None else str(path), json=json)
    if refused:
        raise typer.Exit(REFUSED)


def _media_type_of_format(format: str) -> str:
    """The media type of a format, by the names that listeners use. Raises UnknownMediaType."""
    from triplewire.rdf import N_QUADS, N_TRIPLES, TRIG, TURTLE
    from triplewire.rdf.envelopes import CLOUD_EVENT, CLOUD_EVENTS, JELLY, MESSAGES, NDJSON, ZTREAMY

    plain = {"nquads": N_QUADS, "trig": TRIG, "turtle": TURTLE, "ntriples": N_TRIPLES}
    items = {"cloudevents": CLOUD_EVENT, "cloudevents-batch": CLOUD_EVENTS, "jelly": JELLY, "ndjson": NDJSON}
    known = {name: each.media_type for name, each in plain.items()}
    known |= {f"messages-{name}": MESSAGES[each].media_type for name, each in plain.items()}
    known |= {name: each.media_type for name, each in items.items()} | {"ztreamy": ZTREAMY.media_type}
    if format not in known:
        raise UnknownMediaType(format, tuple(known))
    return known[format]


def _whole(client: Client, stream: str, path: Path | None, syntax: str | None) -> Iterator[dict[str, Any]]:
    if path is None:
        yield client.publish(stream, sys.stdin.buffer.read(), content_type=syntax or "application/trig")
        return
    name = path.name.removesuffix(".gz")
    given = {"encoding": "gzip"} if path.name.endswith(".gz") else {}
    yield client.publish(stream, path.read_bytes(), content_type=syntax or _type_of(name), **given)


def _by_item(
    client: Client, stream: str, path: Path | None, syntax: str | None, *, packed: bool
) -> Iterator[dict[str, Any]]:
    if path is None:
        pieces = _pieces(sys.stdin.buffer)  # type: ignore[arg-type]
        yield from client.publish_each(stream, pieces, syntax or "application/x-ndjson", compress=packed)
        return
    with path.open("rb") as file:
        yield from client.publish_each(stream, _pieces(file), syntax or _type_of(path.name), compress=packed)


def _pieces(file: BufferedReader) -> Iterator[bytes]:
    """What there is, as soon as it is there."""
    while piece := file.read1(_PIECE):
        yield piece


def _type_of(name: str) -> str:
    """The media type that a file's name ends in. Raises UnknownMediaType."""
    from triplewire.rdf.envelopes import ENVELOPES

    endings = {ending: each.media_type for each in ENVELOPES for ending in each.endings}
    endings |= {syntax.ending: syntax.media_type for syntax in SYNTAXES}
    found = next((media_type for ending, media_type in endings.items() if name.lower().endswith(ending)), None)
    if found is None:
        raise UnknownMediaType(name, tuple(endings))
    return found


def _show(told: dict[str, Any], name: str, *, json: bool) -> int:
    """Print a receipt or an acknowledgement; how many items it says are refused."""
    import orjson

    refused = told.get("refused", [told] if "problem" in told else [])
    if json:
        sys.stdout.write(orjson.dumps(told).decode() + "\n")
        sys.stdout.flush()
    else:
        _print(told, name)
        for one in refused:
            problem = one["problem"]
            typer.secho(f"{name}: item {one['item']} is refused: {problem['detail']}", fg="red", err=True)
    return int(told.get("refusals", len(refused)))


def _print(told: dict[str, Any], name: str) -> None:
    if "first" in told:
        again = f", {told['repeated']} of them there before" if "repeated" in told else ""
        typer.echo(f"{name}: {told['events']} event(s) at {told['first']} to {told['last']}{again}")
    elif "position" in told:
        again = " (there before)" if "repeated" in told else ""
        typer.echo(f"{name}: item {told['item']} at {told['position']}{again}")
    elif "end" in told:
        end = told["end"]
        typer.echo(f"{name}: {end['items']} item(s), {end['events']} event(s), {end['refused']} refused")


# `consume` and `subscribe`: hear what is published, all of it or what you asked for.

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


def add_consume_commands(app: typer.Typer) -> None:
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
    filled = {"parameters": parse_pairs(parameters or [], "--parameter")}
    through: Any = {name: each for name, each in {**given, **asked, **filled}.items() if each}
    with Client(url, attempts=ATTEMPTS) as client:
        if format is not None:
            for piece in client.consume_raw(stream, format, after, **through):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            return
        for number, message in enumerate(client.consume(stream, after=after, **through), 1):
            print_message(console, message, json)
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
    given = {"source": source, "application": application, "vocabulary": vocabulary, "start": begins}
    filled = {name: _value(each) for name, each in parse_pairs(values or [], "--value").items()}
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
        write_json_line(made)
    else:
        begins = made.get("from", made["since"])
        where = "the first event" if begins == "earliest" else f"position {begins}"
        console.print(f"[dim]subscription {made['id']}, from {where} on[/dim]")
    for number, message in enumerate(client.notifications(made["id"]), 1):
        print_message(console, message, json)
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
                write_json_line(told)
            elif error:
                typer.secho(f"line {told['line']}: {error['detail']}", fg="red", err=True)
    if not json:
        Console(highlight=False).print(f"{made:,} subscriptions made, {refused:,} refused")
    if refused:
        raise typer.Exit(1)


# `simulate`: publish a simulated city.


def add_simulate_command(app: typer.Typer) -> None:
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
    from triplewire.service.city import City

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
