"""`publish`, `consume`, `subscribe`, `simulate`: send events, and receive all of them or those that match."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console

from triplewire.cli.common import (
    ATTEMPTS,
    DEFAULT_URL,
    Count,
    Json,
    Url,
    open_client,
    print_messages,
    read_text,
    split_pairs,
    write_bytes,
    write_json_line,
)
from triplewire.model.errors import UnknownMediaType
from triplewire.model.subscriptions import Kind

if TYPE_CHECKING:
    from triplewire.client import Client

REFUSED = 3
"""The exit code if some items were refused and the others published."""

_READ_BYTES = 64 * 1024

PUBLISH_EXAMPLES = """
[bold]Examples[/bold]

A file of events, each of which is a named graph:

    triplewire publish home readings.trig

The lines of another program, as it writes them; each line is acknowledged when it is on disk:

    tail -F readings.ndjson | triplewire publish home --each
"""

CONSUME_EXAMPLES = """
[bold]Examples[/bold]

Every event from now on:

    triplewire consume home

All events since this morning, then new ones, as JSON:

    triplewire consume home --after 2026-11-15T06:00:00Z --json
"""

SUBSCRIBE_EXAMPLES = """
[bold]Examples[/bold]

A notification for every event with a reading above 30:

    triplewire subscribe 'SELECT ?sensor ?value { ?o <http://www.w3.org/ns/sosa/madeBySensor> ?sensor ;
      <http://www.w3.org/ns/sosa/hasSimpleResult> ?value FILTER(?value > 30) }'

The same over the history of a stream first:

    triplewire subscribe warm.rq --stream home --from earliest
"""

Stream = Annotated[str, typer.Argument(help="Name of the stream.")]
Streams = Annotated[list[str] | None, typer.Option("--stream", help="Only events of this stream; repeatable.")]
Sources = Annotated[list[str] | None, typer.Option("--source", help="Only events of this source; repeatable.")]
Applications = Annotated[
    list[str] | None, typer.Option("--application", help="Only events of this application; repeatable.")
]
Vocabularies = Annotated[
    list[str] | None,
    typer.Option("--vocabulary", help="Only events with a predicate or class that begins with this IRI; repeatable."),
]


def publish(
    stream: Stream,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files with RDF, Ztreamy items, CloudEvents or NDJSON, also with .gz; by default standard input.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    syntax: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="Media type; by default it follows from the file name; for standard input TriG, with --each NDJSON.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Format by name: `cloudevents`, `jelly`, `messages-trig`, …"),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Publish item by item over one request, and print a line for each.")
    ] = False,
    gzip: Annotated[bool, typer.Option("--gzip", help="With --each: compress the request.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Publish events: each named graph is one event; a document of triples is one event.

    Items of Ztreamy, NDJSON and CloudEvents are accepted or refused one by one. Exits with 3 if any was refused.
    """
    refused, syntax = 0, syntax if format is None else _format_media_type(format)
    paths: list[Path | None] = [*files] if files else [None]
    with open_client(url) as client:
        for path in paths:
            name = "standard input" if path is None else str(path)
            receipts = (
                _publish_items(client, stream, path, syntax, gzip) if each else _publish(client, stream, path, syntax)
            )
            refused += sum(_print_receipt(receipt, name, json=json) for receipt in receipts)
    if refused:
        raise typer.Exit(REFUSED)


def _format_media_type(format: str) -> str:
    """Return the media type of a format by its name. Raises UnknownMediaType."""
    from triplewire.rdf import N_QUADS, N_TRIPLES, TRIG, TURTLE
    from triplewire.rdf.envelopes import CLOUD_EVENT, CLOUD_EVENTS, JELLY, MESSAGES, NDJSON, ZTREAMY

    syntaxes = {"nquads": N_QUADS, "trig": TRIG, "turtle": TURTLE, "ntriples": N_TRIPLES}
    items = {"cloudevents": CLOUD_EVENT, "cloudevents-batch": CLOUD_EVENTS, "jelly": JELLY, "ndjson": NDJSON}
    known = {name: each.media_type for name, each in syntaxes.items()}
    known |= {f"messages-{name}": MESSAGES[each].media_type for name, each in syntaxes.items()}
    known |= {name: each.media_type for name, each in items.items()} | {"ztreamy": ZTREAMY.media_type}
    if format not in known:
        raise UnknownMediaType(format, tuple(known))
    return known[format]


def _file_media_type(name: str) -> str:
    """Return the media type for a file name. Raises UnknownMediaType."""
    from triplewire.rdf import SYNTAXES
    from triplewire.rdf.envelopes import ENVELOPES

    endings = {ending: each.media_type for each in ENVELOPES for ending in each.endings}
    endings |= {syntax.ending: syntax.media_type for syntax in SYNTAXES}
    media_type = next((type for ending, type in endings.items() if name.lower().endswith(ending)), None)
    if media_type is None:
        raise UnknownMediaType(name, tuple(endings))
    return media_type


def _publish(client: Client, stream: str, path: Path | None, syntax: str | None) -> Iterator[dict[str, Any]]:
    if path is None:
        yield client.publish(stream, sys.stdin.buffer.read(), content_type=syntax or "application/trig")
        return
    name = path.name.removesuffix(".gz")
    encoding = {"encoding": "gzip"} if path.name.endswith(".gz") else {}
    yield client.publish(stream, path.read_bytes(), content_type=syntax or _file_media_type(name), **encoding)


def _publish_items(
    client: Client, stream: str, path: Path | None, syntax: str | None, compress: bool
) -> Iterator[dict[str, Any]]:
    if path is None:
        chunks = _read_chunks(sys.stdin.buffer)  # type: ignore[arg-type]
        yield from client.publish_each(stream, chunks, syntax or "application/x-ndjson", compress=compress)
        return
    with path.open("rb") as file:
        media_type = syntax or _file_media_type(path.name)
        yield from client.publish_each(stream, _read_chunks(file), media_type, compress=compress)


def _read_chunks(file: BufferedReader) -> Iterator[bytes]:
    """Yield bytes as soon as there are any."""
    while chunk := file.read1(_READ_BYTES):
        yield chunk


def _print_receipt(receipt: dict[str, Any], name: str, *, json: bool) -> int:
    """Print a receipt or an acknowledgement, and return how many items were refused."""
    refused = receipt.get("refused", [receipt] if "problem" in receipt else [])
    if json:
        write_json_line(receipt)
    else:
        _print_positions(receipt, name)
        for each in refused:
            typer.secho(f"{name}: item {each['item']} is refused: {each['problem']['detail']}", fg="red", err=True)
    return int(receipt.get("refusals", len(refused)))


def _print_positions(receipt: dict[str, Any], name: str) -> None:
    if "first" in receipt:
        repeated = f", {receipt['repeated']} of them duplicates" if "repeated" in receipt else ""
        typer.echo(f"{name}: {receipt['events']} event(s) at {receipt['first']} to {receipt['last']}{repeated}")
    elif "position" in receipt:
        repeated = " (duplicate)" if "repeated" in receipt else ""
        typer.echo(f"{name}: item {receipt['item']} at {receipt['position']}{repeated}")
    elif "end" in receipt:
        end = receipt["end"]
        typer.echo(f"{name}: {end['items']} item(s), {end['events']} event(s), {end['refused']} refused")


def consume(
    stream: Stream,
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            help="Start after a position, at `earliest`, at a time such as 2026-11-15T08:30:00Z, or after the event "
            "with this IRI.",
            show_default="now",
        ),
    ] = None,
    source: Sources = None,
    application: Applications = None,
    vocabulary: Vocabularies = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            "--ask",
            metavar="SPARQL",
            help="Only events for which this ASK query is true: its text, a file with it, or - for standard input; "
            "repeatable, and one of them must be true.",
        ),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option("--filter", metavar="NAME", help="Only events that a filter of the broker passes, as `changed`."),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter", metavar="NAME=VALUE", help="A parameter of --filter, such as property=IRI; repeatable."
        ),
    ] = None,
    count: Count = None,
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Print events as they are: `cloudevents`, `jelly`, `trig`, …"),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Print the events of a stream as they arrive, until Ctrl-C. Options select events."""
    options = {
        "source": source,
        "application": application,
        "vocabulary": vocabulary,
        "ask": [read_text(each) for each in ask or []],
        "filter": filter,
        "parameters": dict(split_pairs(parameters or [], "--parameter")),
    }
    filters: Any = {name: each for name, each in options.items() if each}
    with open_client(url, ATTEMPTS) as client:
        if format is None:
            print_messages(client.consume(stream, after=after, **filters), count, json)
            return
        for piece in client.consume_raw(stream, format, after, **filters):
            write_bytes(piece)


def subscribe(
    sparql: Annotated[
        str | None,
        typer.Argument(
            help="A SPARQL SELECT, ASK or CONSTRUCT, a file with one, or - for standard input.",
            show_default="every event",
        ),
    ] = None,
    kind: Annotated[Kind, typer.Option("--kind", help="Content of a notification.")] = Kind.BINDINGS,
    stream: Streams = None,
    source: Sources = None,
    application: Applications = None,
    vocabulary: Vocabularies = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="START",
            help="Match history first, from `earliest`, a position, or a time such as 2026-11-15T08:30:00Z.",
            show_default="only new events",
        ),
    ] = None,
    template: Annotated[
        str | None, typer.Option("--template", metavar="NAME", help="Use a template instead of a query.")
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--value", metavar="PARAMETER=VALUE", help="Value of a parameter of --template; repeatable."),
    ] = None,
    bulk: Annotated[
        Path | None,
        typer.Option("--bulk", help="Create the subscriptions of an NDJSON file, and leave them registered."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the subscription registered when you stop listening.")
    ] = False,
    count: Count = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Subscribe with a SPARQL query that is matched against each event, and print notifications until Ctrl-C."""
    if bulk is not None:
        _subscribe_bulk(bulk, url, json)
        return
    text = None if sparql is None else read_text(sparql)
    options = {
        "source": source,
        "application": application,
        "vocabulary": vocabulary,
        "start": start,
        "template": template,
        "values": {name: _parse_value(each) for name, each in split_pairs(values or [], "--value")},
    }
    given: Any = {name: each for name, each in options.items() if each}
    with open_client(url, ATTEMPTS) as client:
        subscription = client.subscribe(text, kind=kind, stream=stream or None, **given)
        try:
            _print_subscription(subscription, json)
            print_messages(client.notifications(subscription["id"]), count, json)
        finally:
            if not keep:
                client.unsubscribe(subscription["id"])


def _parse_value(text: str) -> object:
    """Return a number or boolean of JSON as such, any other text unchanged."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value if isinstance(value, bool | int | float) else text


def _print_subscription(subscription: dict[str, Any], json: bool) -> None:
    if json:
        write_json_line(subscription)
        return
    start = subscription.get("from", subscription["since"])
    where = "the first event" if start == "earliest" else f"position {start}"
    Console().print(f"[dim]subscription {subscription['id']}, from {where} on[/dim]")


def _subscribe_bulk(file: Path, url: str, json: bool) -> None:
    """Print each refused line, or with `json` every line; exit with 1 if any was refused."""
    refused = created = 0
    with open_client(url) as client, sys.stdin.buffer if str(file) == "-" else file.open("rb") as lines:
        for result in client.subscribe_bulk(lines):
            error = result.get("error")
            refused, created = refused + (error is not None), created + (error is None)
            if json:
                write_json_line(result)
            elif error:
                typer.secho(f"line {result['line']}: {error['detail']}", fg="red", err=True)
    if not json:
        Console(highlight=False).print(f"{created:,} subscriptions created, {refused:,} refused")
    if refused:
        raise typer.Exit(1)


def simulate(
    stream: Annotated[str, typer.Option("--stream", help="Name of the stream to publish to.")] = "city",
    rate: Annotated[float, typer.Option("--rate", help="Events per second.", min=0.1)] = 20.0,
    speed: Annotated[float, typer.Option("--speed", help="Simulated seconds per second.", min=1)] = 240.0,
    seconds: Annotated[float, typer.Option("--seconds", help="Duration; 0 is until Ctrl-C.", min=0)] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the city: the same seed gives the same city.")] = 1,
    url: Url = DEFAULT_URL,
) -> None:
    """Publish the observations of a simulated city: traffic, air quality, parking and noise over the day."""
    from triplewire.service.city import City

    console, city = Console(), City(seed)
    began, start, published = time.monotonic(), datetime.now(UTC), 0
    with open_client(url) as client, console.status("publishing …") as status:
        while not seconds or time.monotonic() - began < seconds:
            at = start + timedelta(seconds=(time.monotonic() - began) * speed)
            events = city.observe(at, max(1, round(rate)))
            client.publish(stream, events)
            published += len(events)
            status.update(f"{published} events published to {stream}; in the city it is {at:%A %H:%M}")
            time.sleep(max(0.0, began + published / rate - time.monotonic()))
    console.print(f"{published} events published to {stream}")
