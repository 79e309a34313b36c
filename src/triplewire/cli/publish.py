"""`publish`: send RDF, or items that carry anything, to a stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from triplewire.cli.options import DEFAULT_URL, Json, Url
from triplewire.codec import SYNTAXES
from triplewire.model.errors import UnknownMediaType

if TYPE_CHECKING:
    from triplewire.client import Client


REFUSED = 3
"""The exit code where some items were refused, and the rest is in."""

_PIECE = 64 * 1024

EXAMPLES = """
[bold]Examples[/bold]

A file of events, each of which is a named graph:

    triplewire publish home readings.trig

What another program writes, line by line, for as long as it does; each line is acknowledged when it is on disk:

    tail -F readings.ndjson | triplewire publish home --each
"""


def add_to(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(publish)


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

    refused, syntax = 0, syntax if format is None else _named(format)
    with Client(url) as client:
        given: list[Path | None] = [*files] if files else [None]
        for path in given:
            told = _by_item(client, stream, path, syntax, packed=gzip) if each else _whole(client, stream, path, syntax)
            for one in told:
                refused += _show(one, "standard input" if path is None else str(path), json=json)
    if refused:
        raise typer.Exit(REFUSED)


def _named(format: str) -> str:
    """The media type of a format, by the names that listeners use. Raises UnknownMediaType."""
    from triplewire.codec import N_QUADS, N_TRIPLES, TRIG, TURTLE
    from triplewire.codec.wrappings import CLOUD_EVENT, CLOUD_EVENTS, JELLY, MESSAGES, NDJSON, ZTREAMY

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
        yield from client.publish_each(stream, pieces, syntax or "application/x-ndjson", packed=packed)
        return
    with path.open("rb") as file:
        yield from client.publish_each(stream, _pieces(file), syntax or _type_of(path.name), packed=packed)


def _pieces(file: BufferedReader) -> Iterator[bytes]:
    """What there is, as soon as it is there."""
    while piece := file.read1(_PIECE):
        yield piece


def _type_of(name: str) -> str:
    """The media type that a file's name ends in. Raises UnknownMediaType."""
    from triplewire.codec.wrappings import WRAPPINGS

    endings = {ending: each.media_type for each in WRAPPINGS for ending in each.endings}
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
