"""`shapes`: what the events of a stream are to conform to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from triplewire.cli.documents import print_json
from triplewire.cli.options import DEFAULT_URL, Json, Url

Stream = Annotated[str, typer.Argument(help="Name of the stream.")]
Type = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option("--type", help="Media type; by default from the file's ending."),
]

VIOLATED = 3
"""The exit code where an event does not conform."""

commands = typer.Typer(help="SHACL: what the events of a stream are to conform to.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    app.add_typer(commands, name="shapes")


@commands.command("put")
def put(
    stream: Stream,
    file: Annotated[Path, typer.Argument(help="Shapes, in RDF.", exists=True, dir_okay=False)],
    mode: Annotated[
        str, typer.Option("--mode", help="`refuse` events that do not conform, or `mark` them.")
    ] = "refuse",
    syntax: Type = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Give a stream shapes, in place of those that it had. What is published from then on is judged by them."""
    from triplewire.client import Client
    from triplewire.codec import syntax_of_file

    given = syntax or syntax_of_file(file.name).media_type
    with Client(url) as client:
        made = client.put_shapes(stream, file.read_bytes(), given, mode)
    if json:
        print_json(made)
    else:
        says = f"{made['triples']:,} triples, mode {made['mode']}, version {made['version']}"
        Console(highlight=False).print(f"{stream}: {says}")


@commands.command("show")
def show(
    stream: Stream,
    syntax: Annotated[str, typer.Option("--type", help="Media type to print.")] = "text/turtle",
    url: Url = DEFAULT_URL,
) -> None:
    """Print the shapes of a stream."""
    from triplewire.client import Client

    with Client(url) as client:
        sys.stdout.buffer.write(client.shapes(stream, syntax))
    sys.stdout.buffer.flush()


@commands.command("remove")
def remove(stream: Stream, url: Url = DEFAULT_URL) -> None:
    """Take the shapes from a stream. What is published from then on is not judged."""
    from triplewire.client import Client

    with Client(url) as client:
        client.remove_shapes(stream)


@commands.command("check")
def check(
    shapes: Annotated[Path, typer.Argument(help="Shapes, in RDF.", exists=True, dir_okay=False)],
    files: Annotated[list[Path], typer.Argument(help="Events, in RDF.", exists=True, dir_okay=False)],
    json: Json = False,
) -> None:
    """Judge the events of files by shapes, here, without a broker. If any does not conform the exit code is 3."""
    from triplewire.codec import decode, syntax_of_file
    from triplewire.codec.shacl import drafted
    from triplewire.codec.shacl.judging import Judge

    judge, wrong = Judge(), 0
    judge.learn("shapes", drafted(shapes.read_bytes(), syntax_of_file(shapes.name)))
    for file in files:
        for event in decode(file.read_bytes(), syntax_of_file(file.name)):
            found = judge.judge("shapes", event.text)
            wrong += found is not None
            results = [] if found is None else found["results"]
            if json:
                print_json({"file": str(file), "event": event.id, "conforms": found is None, "results": results})
            for each in [] if json else results:
                typer.secho(f"{file}: {each['focus']}: {each.get('message', each['constraint'])}", fg="red", err=True)
    if wrong:
        raise typer.Exit(VIOLATED)
