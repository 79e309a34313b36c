"""Continuous queries: `query --continuous` registers one and prints what it finds, `queries` looks after them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from triplewire.cli.documents import print_json
from triplewire.cli.listen import ATTEMPTS, Count
from triplewire.cli.listings import listing
from triplewire.cli.messages import show, write
from triplewire.cli.options import DEFAULT_URL, Json, Url
from triplewire.client import Client
from triplewire.model.errors import NotFound

Query = Annotated[str, typer.Argument(help="Id of the query.")]
After = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option("--after", help="Where to start: a position, `now`, or a time.", show_default="its registration"),
]

_SHOWN = 60
"""Characters of a text in a list."""

queries = typer.Typer(help="Continuous queries: standing questions across events.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    app.add_typer(queries, name="queries")


@queries.command("list")
def list_(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell which continuous queries there are."""
    with Client(url) as client:
        found = client.queries()
    if json:
        print_json(found)
        return
    table = listing("id", "state", "into", "query")
    for each in found:
        table.add_row(each["id"], each["state"], each.get("into", ""), _short(each["query"]))
    Console().print(table if found else "there is no continuous query")


@queries.command("show")
def show_(query: Query, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Print a query: its text, or with `--json` all of it; how it is doing goes to standard error."""
    with Client(url) as client:
        found = client.registered(query)
    if json:
        print_json(found)
        return
    text, figures = found.pop("query"), found.pop("figures", {})
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()
    for name, value in {**found, **figures}.items():
        typer.secho(f"{name:>12}  {value}", dim=True, err=True)


@queries.command("end")
def end(query: Query, url: Url = DEFAULT_URL) -> None:
    """End a query. Its listeners are told; what it has published stays."""
    with Client(url) as client:
        client.end_query(query)


@queries.command("answers")
def answers(query: Query, after: After = None, count: Count = None, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Follow what a query finds, by default since it was registered, until Ctrl-C."""
    with Client(url, attempts=ATTEMPTS) as client:
        _follow(client, query, after, count, json)


@dataclass(frozen=True)
class Following:
    """What becomes of a query that was registered: is it left alone, does it stay, and when is it enough?"""

    detach: bool = False
    keep: bool = False
    count: int | None = None


def register(text: str, parameters: dict[str, Any], following: Following, url: str, json: bool) -> None:
    """Register a query, and print what it finds until it ends, so many were told, or Ctrl-C. Unless it is to be kept it
    ends then."""
    with Client(url, attempts=ATTEMPTS) as client:
        made = client.register(text, **_inquired(parameters))
        _say(made, json)
        if following.detach:
            return
        try:
            _follow(client, made["id"], None, following.count, json)
        finally:
            if not following.keep:
                with suppress(NotFound):
                    client.end_query(made["id"])


def _inquired(parameters: dict[str, Any]) -> Any:  # noqa: ANN401 - the edge checks what is said
    return {("begins" if name == "from" else name): each for name, each in parameters.items()}


def _follow(client: Client, id: str, after: str | None, count: int | None, json: bool) -> None:
    console = Console()
    for number, message in enumerate(client.answers(id, after), 1):
        show(console, message, json)
        if number == count:
            break


def _say(made: dict[str, Any], json: bool) -> None:
    if json:
        write(made)
    else:
        into = f", into {made['into']}" if "into" in made else ""
        Console(highlight=False).print(f"[dim]query {made['id']}, from position {made['since']} on{into}[/dim]")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def said(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """`name=value`, each of them: numbers as numbers, and of `streams` all. Ends with what is right for one that is
    none."""
    found: dict[str, Any] = {}
    for each in pairs:
        name, sign, text = each.partition("=")
        if not name or not sign:
            raise typer.BadParameter(f"{each!r} is no NAME=VALUE", param_hint=option)
        if name == "streams":
            found.setdefault(name, []).append(text)
        else:
            found[name] = _number(text) if name in ("within", "span", "lateness") else text
    return found


def _number(text: str) -> float | int | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
