"""`ontology`: load, see and remove what queries under entailment go by."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.documents import print_json
from triplewire.cli.listings import listing
from triplewire.cli.options import DEFAULT_URL, Json, Url

Name = Annotated[str, typer.Argument(help="Name of the ontology.")]

ontologies = typer.Typer(help="Classes and properties, for queries with `--entailment rdfs`.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    app.add_typer(ontologies, name="ontology")


@ontologies.command("put")
def put(
    name: Name,
    file: Annotated[Path, typer.Argument(help="An RDF file.", exists=True, dir_okay=False)],
    syntax: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option("--type", help="Media type; by default from the file's ending."),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Load an ontology, in place of what had the name."""
    from triplewire.client import Client
    from triplewire.codec import syntax_of_file

    given = syntax or syntax_of_file(file.name).media_type
    with Client(url) as client:
        loaded = client.load_ontology(name, file.read_bytes(), given)
    if json:
        print_json(loaded)
    else:
        says = f"{loaded['triples']:,} triples, {loaded['classes']:,} classes, {loaded['properties']:,} properties"
        Console(highlight=False).print(f"{name}: {says}, version {loaded['version']}")


@ontologies.command("list")
def list_(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell which ontologies are loaded."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.ontologies()
    if json:
        print_json(found)
    else:
        Console().print(_table(found) if found else "no ontology is loaded")


@ontologies.command("get")
def get(
    name: Name,
    syntax: Annotated[str, typer.Option("--type", help="Media type to print.")] = "text/turtle",
    url: Url = DEFAULT_URL,
) -> None:
    """Print an ontology."""
    from triplewire.client import Client

    with Client(url) as client:
        sys.stdout.buffer.write(client.ontology(name, syntax))
    sys.stdout.buffer.flush()


@ontologies.command("delete")
def delete(name: Name, url: Url = DEFAULT_URL) -> None:
    """Remove an ontology. Queries are answered without it from then on."""
    from triplewire.client import Client

    with Client(url) as client:
        client.remove_ontology(name)


def _table(found: list[dict[str, Any]]) -> Table:
    names = ("name", "version", "triples", "classes", "properties")
    table = listing(*names)
    for each in found:
        table.add_row(*(str(each[name]) for name in names))
    return table
