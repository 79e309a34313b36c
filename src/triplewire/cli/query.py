"""`query` and `queries`: SPARQL over history, and continuous queries."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.status import Status
from rich.syntax import Syntax

from triplewire.cli.common import (
    DEFAULT_URL,
    Json,
    Url,
    make_table,
    print_json,
    print_message,
    read_text,
    write_json_line,
)
from triplewire.cli.result_table import QueryPrologue, build_table, read_prologue
from triplewire.cli.streams import ATTEMPTS, Count
from triplewire.client import Client, QueryOptions, ResultParser
from triplewire.model.errors import NotFound

# Continuous queries: `query --continuous` registers one and prints what it finds, `queries` looks after them.

Query = Annotated[str, typer.Argument(help="Id of the query.")]
After = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option("--after", help="Where to start: a position, `now`, or a time.", show_default="its registration"),
]

_TEXT_CHARACTERS = 60
"""Characters of a text in a list."""

queries = typer.Typer(help="Continuous queries: standing questions across events.", no_args_is_help=True)


def add_queries_commands(app: typer.Typer) -> None:
    app.add_typer(queries, name="queries")


@queries.command("list")
def list_(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell which continuous queries there are."""
    with Client(url) as client:
        found = client.queries()
    if json:
        print_json(found)
        return
    table = make_table("id", "state", "into", "query")
    for each in found:
        table.add_row(each["id"], each["state"], each.get("into", ""), _short(each["query"]))
    Console().print(table if found else "there is no continuous query")


@queries.command("show")
def show_(query: Query, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Print a query: its text, or with `--json` all of it; how it is doing goes to standard error."""
    with Client(url) as client:
        found = client.find_query(query)
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
class FollowOptions:
    """What becomes of a query that was registered: is it left alone, does it stay, and when is it enough?"""

    detach: bool = False
    keep: bool = False
    count: int | None = None


def register_query(text: str, parameters: dict[str, Any], following: FollowOptions, url: str, json: bool) -> None:
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
    return {("start" if name == "from" else name): each for name, each in parameters.items()}


def _follow(client: Client, id: str, after: str | None, count: int | None, json: bool) -> None:
    console = Console()
    for number, message in enumerate(client.answers(id, after), 1):
        print_message(console, message, json)
        if number == count:
            break


def _say(made: dict[str, Any], json: bool) -> None:
    if json:
        write_json_line(made)
    else:
        into = f", into {made['into']}" if "into" in made else ""
        Console(highlight=False).print(f"[dim]query {made['id']}, from position {made['since']} on{into}[/dim]")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_CHARACTERS else line[: _TEXT_CHARACTERS - 1] + "…"


def parse_query_options(pairs: Sequence[str], option: str) -> dict[str, Any]:
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


class OutputFormat(StrEnum):
    """The formats of answers: four for solutions, four for graphs."""

    JSON = "json"
    XML = "xml"
    CSV = "csv"
    TSV = "tsv"
    TURTLE = "turtle"
    NTRIPLES = "ntriples"
    JSONLD = "jsonld"
    RDFXML = "rdfxml"


class EngineChoice(StrEnum):
    """The engines that a query can ask for."""

    DUCKDB = "duckdb"
    SPARK = "spark"


EXAMPLES = """
[bold]Examples[/bold]

The latest readings above 30, as a table:

    triplewire query 'PREFIX sosa: <http://www.w3.org/ns/sosa/>
      SELECT ?sensor ?value ?time { ?o sosa:madeBySensor ?sensor ; sosa:hasSimpleResult ?value ;
        sosa:resultTime ?time FILTER(?value > 30) } ORDER BY DESC(?time) LIMIT 10'

A query in a file, the answer into another:

    triplewire query --file warm.rq --format csv > warm.csv

Everything that one event said:

    triplewire query 'CONSTRUCT { ?s ?p ?o } { GRAPH <urn:uuid:…> { ?s ?p ?o } }'

In a script, is there any such reading?

    echo 'ASK { ?o <urn:temperature> ?t FILTER(?t > 90) }' | triplewire query --exit-code && alarm

What was known at ten o'clock?

    triplewire query 'SELECT ?v { ?o <urn:temperature> ?v }' --as-of 2026-11-16T10:00:00Z

Which car is at two sensors within ten minutes, from now on?

    triplewire query --continuous --parameter within=PT10M 'SELECT ?car ?a ?b {
      ?o <urn:car> ?car ; <urn:at> ?a . ?p <urn:car> ?car ; <urn:at> ?b FILTER(?a != ?b) }'

Why is it slow?

    triplewire query --file slow.rq --explain
"""


def add_query_command(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(query)


def query(
    sparql: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Argument(help="A SPARQL query, a file that holds one, or - for standard input.", show_default="-"),
    ] = None,
    file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--file", "-f", help="A file that holds the query.", exists=True, dir_okay=False),
    ] = None,
    format: Annotated[
        Optional[OutputFormat],  # noqa: UP045
        typer.Option("--format", help="Print the answer as the broker sends it.", show_default="a table"),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Cut nothing, however wide the table.")] = False,
    engine: Annotated[Optional[EngineChoice], typer.Option("--engine", help="Which engine answers.")] = None,  # noqa: UP045
    timeout: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--timeout", help="Seconds after which the query is ended.", show_default="the broker's"),
    ] = None,
    entailment: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--entailment", help="`rdfs`: sub-classes and sub-properties match, too.", show_default="none"),
    ] = None,
    version: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--version", min=0, help="Ask this version of the lake.", show_default="the newest"),
    ] = None,
    as_of: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--as-of", help="Ask the lake as it was then, like 2026-11-16T10:00:00Z.", show_default="now"),
    ] = None,
    continuous: Annotated[
        bool,
        typer.Option(
            "--continuous",
            help="Ask of all that is published from now on, across events, and print what is found as it comes.",
        ),
    ] = False,
    parameters: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--parameter",
            metavar="NAME=VALUE",
            help="Of a continuous query: name, semantics, streams, within, span, from, time, lateness, late or into; "
            "may be repeated.",
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Register the continuous query, and leave it alone.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave it in place when you stop listening.")] = False,
    count: Count = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print how the query is answered.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if an ASK is answered with no.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Ask SPARQL over everything that was ever published.

    Each event is a named graph, the default graph is all of them together.

    On a terminal the answer is a table that fits it. Elsewhere it is TSV, or Turtle for triples, as it is found.
    """
    text = _text(sparql, file)
    if continuous:
        register_query(
            text, parse_query_options(parameters or [], "--parameter"), FollowOptions(detach, keep, count), url, json
        )
        return
    asked = read_prologue(text)
    how = _how(asked, format, json=json, explain=explain)
    if engine:
        how["engine"] = engine.value
    if timeout:
        how["timeout"] = timeout
    if entailment:
        how["entailment"] = entailment
    if version is not None:
        how["version"] = version
    if as_of:
        how["as_of"] = as_of
    with Client(url) as client:
        as_it_is = explain or json or format is not None
        positive = _ask(client, text, asked, how, as_it_is=as_it_is, full=full)
    if exit_code and not positive:
        raise typer.Exit(1)


def _text(sparql: str | None, file: Path | None) -> str:
    if file is not None:
        if sparql is not None:
            raise typer.BadParameter("give a query or --file, not both")
        return file.read_text()
    if sparql is None and sys.stdin.isatty():
        raise typer.BadParameter("give a query, --file, or - to type one and end it with Ctrl-D")
    return read_text(sparql or "-")


def _how(asked: QueryPrologue, format: OutputFormat | None, *, json: bool, explain: bool) -> QueryOptions:
    """What is asked for: the format that was named, or the one that can be shown."""
    if explain:
        return {"explain": "json" if json else "text"}
    if format is not None:
        return {"format": format.value}
    if json:
        return {"format": "jsonld" if asked.of_graph else "json"}
    if asked.of_graph:
        return {"format": "turtle"}
    return {"format": "json" if asked.form == "ask" or sys.stdout.isatty() else "tsv"}


def _ask(client: Client, text: str, asked: QueryPrologue, how: QueryOptions, *, as_it_is: bool, full: bool) -> bool:
    """Print the answer. False if it is no."""
    if asked.form == "ask" and "format" in how:
        return _verdict(client, text, how, as_it_is=as_it_is)
    if as_it_is or not sys.stdout.isatty():
        _copy(client, text, how)
    elif asked.of_graph:
        _print_graph(client, text, how)
    else:
        _print_table(client, text, asked, how, full=full)
    return True


def _copy(client: Client, text: str, how: QueryOptions) -> None:
    with client.answer(text, **how) as answer:
        for piece in answer:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def _verdict(client: Client, text: str, how: QueryOptions, *, as_it_is: bool) -> bool:
    """An answer to an ASK holds the word itself in every format, and nothing that the query says."""
    with client.answer(text, **how) as answer:
        body = b"".join(answer)
    positive = b"true" in body
    sys.stdout.buffer.write(body if as_it_is else b"yes\n" if positive else b"no\n")
    sys.stdout.buffer.flush()
    return positive


def _print_graph(client: Client, text: str, how: QueryOptions) -> None:
    with _waiting(), client.answer(text, **how) as answer:
        body = b"".join(answer).decode()
    Console().print(Syntax(body, "turtle", word_wrap=True, background_color="default"))


def _print_table(client: Client, text: str, asked: QueryPrologue, how: QueryOptions, *, full: bool) -> None:
    began, rows, console = time.perf_counter(), ResultParser(), Console(highlight=False)
    with _waiting() as waiting, client.answer(text, **how) as answer:
        found = (row for piece in answer for row in rows.feed(piece))
        made = build_table(found, lambda: rows.names, asked, None if full else console.width)
        waiting.stop()
        count = made.print(console)
    took = time.perf_counter() - began
    console.print(f"[dim]{count:,} row{'' if count == 1 else 's'} in {_duration(took)}[/dim]")


def _waiting() -> Status:
    """Something that moves until the first of the answer is there."""
    return Console(stderr=True).status("asking …")


def _duration(seconds: float) -> str:
    return f"{seconds * 1_000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
