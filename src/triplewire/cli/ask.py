"""`query`: SPARQL over everything that was ever published."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.options import DEFAULT_URL, Json, Url
from triplewire.cli.texts import read_text


def add_to(app: typer.Typer) -> None:
    app.command()(query)


def query(
    sparql: Annotated[str, typer.Argument(help="A SPARQL query, a file that holds one, or - for standard input.")],
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Ask SPARQL over history; each event is a named graph, the default graph is all of them together."""
    import orjson

    from triplewire.client import Client

    with Client(url) as client:
        answer = client.query(read_text(sparql))
    console = Console()
    if json:
        console.print_json(orjson.dumps(answer).decode())
    elif "boolean" in answer:
        console.print("yes" if answer["boolean"] else "no")
    else:
        console.print(_table(answer))


def _table(answer: dict[str, Any]) -> Table:
    rows = answer["results"]["bindings"]
    names = answer["head"]["vars"]
    table = Table(*(f"?{name}" for name in names), caption=f"{len(rows)} row(s)", caption_justify="left")
    for row in rows:
        table.add_row(*(row[name]["value"] if name in row else "" for name in names))
    return table
