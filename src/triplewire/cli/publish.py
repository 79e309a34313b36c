"""`publish`: send RDF to a stream."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from triplewire.cli.options import DEFAULT_URL, Json, Url
from triplewire.codec import syntax_of_file


def add_to(app: typer.Typer) -> None:
    app.command()(publish)


def publish(
    stream: Annotated[str, typer.Argument(help="Name of the stream.")],
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045 - typer reads the annotation
        typer.Argument(help="RDF files; without any, standard input is read.", exists=True, dir_okay=False),
    ] = None,
    syntax: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--type", help="Media type; by default from the file's ending, for standard input TriG."),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Publish RDF: each named graph is one event, a triple format is one event."""
    import orjson

    from triplewire.client import Client

    console = Console()
    with Client(url) as client:
        for name, body, given in _bodies(files):
            taken = client.publish(stream, body, content_type=syntax or given)
            if json:
                console.print_json(orjson.dumps(taken).decode())
            else:
                console.print(f"{name}: {taken['events']} event(s) at {taken['first']} to {taken['last']}")


def _bodies(files: list[Path] | None) -> list[tuple[str, bytes, str]]:
    if not files:
        return [("standard input", sys.stdin.buffer.read(), "application/trig")]
    return [(str(path), path.read_bytes(), syntax_of_file(path.name).media_type) for path in files]
