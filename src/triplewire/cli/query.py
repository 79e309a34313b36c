"""`query` and `queries`: SPARQL over history, and continuous queries."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.status import Status

from triplewire.cli.common import (
    ATTEMPTS,
    DEFAULT_URL,
    Count,
    Json,
    Url,
    open_client,
    print_json,
    print_messages,
    print_rows,
    read_text,
    split_pairs,
    write_bytes,
    write_json_line,
)
from triplewire.cli.result_table import QueryPrologue, build_table, read_prologue
from triplewire.model.errors import NotFound

if TYPE_CHECKING:
    from triplewire.client import Client, QueryOptions

Query = Annotated[str, typer.Argument(help="Id of the query.")]
After = Annotated[
    str | None,
    typer.Option("--after", help="Start after a position, at `now`, or at a time.", show_default="its registration"),
]

_TEXT_CHARACTERS = 60
"""Characters of a query's text in a list."""

queries = typer.Typer(
    help="Continuous queries: SPARQL across events, answered as events arrive. `query --continuous` registers one.",
    no_args_is_help=True,
)


@queries.command("list")
def list_(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List the continuous queries."""
    with open_client(url) as client:
        found = client.queries()
    rows = ((each["id"], each["state"], each.get("into", ""), _shorten(each["query"])) for each in found)
    print_rows(found, ("id", "state", "into", "query"), rows, "there is no continuous query", json=json)


@queries.command("show")
def show_(query: Query, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Print the text of a continuous query, and its state on standard error; with `--json` all of it."""
    with open_client(url) as client:
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
    """End a continuous query. Its subscribers are notified; events that it has published stay."""
    with open_client(url) as client:
        client.end_query(query)


@queries.command("answers")
def answers(query: Query, after: After = None, count: Count = None, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Print the answers of a continuous query as they arrive, until Ctrl-C."""
    with open_client(url, ATTEMPTS) as client:
        print_messages(client.answers(query, after), count, json)


@dataclass(frozen=True)
class FollowOptions:
    """Whether a registered query is left alone, whether it stays after that, and how many answers are printed."""

    detach: bool = False
    keep: bool = False
    count: int | None = None


def register_query(text: str, parameters: dict[str, Any], options: FollowOptions, url: str, json: bool) -> None:
    """Register a continuous query and print its answers until it ends, `count` is reached, or Ctrl-C. Unless it is
    kept, it is ended then."""
    with open_client(url, ATTEMPTS) as client:
        arguments: Any = {("start" if name == "from" else name): each for name, each in parameters.items()}
        query = client.register(text, **arguments)
        if json:
            write_json_line(query)
        else:
            into = f", into {query['into']}" if "into" in query else ""
            Console(highlight=False).print(f"[dim]query {query['id']}, from position {query['since']} on{into}[/dim]")
        if options.detach:
            return
        try:
            print_messages(client.answers(query["id"], None), options.count, json)
        finally:
            if not options.keep:
                with suppress(NotFound):
                    client.end_query(query["id"])


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_CHARACTERS else line[: _TEXT_CHARACTERS - 1] + "…"


def parse_query_options(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Parse NAME=VALUE options: numbers where numbers are expected; `streams` may be repeated."""
    options: dict[str, Any] = {}
    for name, text in split_pairs(pairs, option):
        if name == "streams":
            options.setdefault(name, []).append(text)
        else:
            options[name] = _number(text) if name in ("within", "span", "lateness") else text
    return options


def _number(text: str) -> float | int | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class OutputFormat(StrEnum):
    """Result formats: four for solutions, four for graphs."""

    JSON = "json"
    XML = "xml"
    CSV = "csv"
    TSV = "tsv"
    TURTLE = "turtle"
    NTRIPLES = "ntriples"
    JSONLD = "jsonld"
    RDFXML = "rdfxml"


class EngineChoice(StrEnum):
    DUCKDB = "duckdb"
    SPARK = "spark"


EXAMPLES = """
[bold]Examples[/bold]

The latest readings above 30, as a table:

    triplewire query 'PREFIX sosa: <http://www.w3.org/ns/sosa/>
      SELECT ?sensor ?value ?time { ?o sosa:madeBySensor ?sensor ; sosa:hasSimpleResult ?value ;
        sosa:resultTime ?time FILTER(?value > 30) } ORDER BY DESC(?time) LIMIT 10'

A query from a file, with the result in another file:

    triplewire query --file warm.rq --format csv > warm.csv

All triples of one event:

    triplewire query 'CONSTRUCT { ?s ?p ?o } { GRAPH <urn:uuid:…> { ?s ?p ?o } }'

In a script: is there such a reading?

    echo 'ASK { ?o <urn:temperature> ?t FILTER(?t > 90) }' | triplewire query --exit-code && alarm

The state of the lake at ten o'clock:

    triplewire query 'SELECT ?v { ?o <urn:temperature> ?v }' --as-of 2026-11-16T10:00:00Z

A continuous query: cars that pass two sensors within ten minutes, from now on:

    triplewire query --continuous --parameter within=PT10M 'SELECT ?car ?a ?b {
      ?o <urn:car> ?car ; <urn:at> ?a . ?p <urn:car> ?car ; <urn:at> ?b FILTER(?a != ?b) }'

How a query is executed, and why it is slow:

    triplewire query --file slow.rq --explain

The continuous queries that are registered, and the answers of one:

    triplewire queries list
    triplewire queries answers ID
"""


def query(
    sparql: Annotated[
        str | None,
        typer.Argument(help="A SPARQL query, a file with one, or - for standard input.", show_default="-"),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="A file with the query.", exists=True, dir_okay=False)
    ] = None,
    format: Annotated[
        OutputFormat | None, typer.Option("--format", help="Format of the result.", show_default="a table")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Never truncate values, however wide the table.")] = False,
    engine: Annotated[
        EngineChoice | None,
        typer.Option("--engine", help="Engine that runs the query.", show_default="by the size of the data"),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", help="Seconds after which the query is cancelled.", show_default="the broker's"),
    ] = None,
    entailment: Annotated[
        str | None,
        typer.Option(
            "--entailment", help="`rdfs`: sub-classes and sub-properties match, by ontology.", show_default="none"
        ),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option("--version", min=0, help="Query this version of the lake.", show_default="the newest"),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", help="Query the lake as of a time: 2026-11-16T10:00:00Z.", show_default="now"),
    ] = None,
    continuous: Annotated[
        bool,
        typer.Option(
            "--continuous",
            help="Register a continuous query: it joins events from now on, and prints answers as they arrive.",
        ),
    ] = False,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            metavar="NAME=VALUE",
            help="With --continuous: name, semantics, streams, within, span, from, time, lateness, late or into; "
            "repeatable.",
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="With --continuous: register the query and exit; it stays registered.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="With --continuous: leave the query registered when you stop.")
    ] = False,
    count: Count = None,
    explain: Annotated[bool, typer.Option("--explain", help="Run the query, and print its execution plan.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if the answer to an ASK is no.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Run a SPARQL query over everything that was ever published.

    Each event is a named graph; the default graph is the union of all events.

    On a terminal the result is a table that fits it. Elsewhere it is TSV, or Turtle for graphs, written as it arrives.
    """
    text = _read_query(sparql, file)
    if continuous:
        options = parse_query_options(parameters or [], "--parameter")
        register_query(text, options, FollowOptions(detach, keep, count), url, json)
        return
    prologue = read_prologue(text)
    how = _choose_format(prologue, format, json=json, explain=explain)
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
    with open_client(url) as client:
        raw = explain or json or format is not None
        positive = _run(client, text, prologue, how, raw=raw, full=full)
    if exit_code and not positive:
        raise typer.Exit(1)


def _read_query(sparql: str | None, file: Path | None) -> str:
    if file is not None:
        if sparql is not None:
            raise typer.BadParameter("give a query or --file, not both")
        return file.read_text()
    if sparql is None and sys.stdin.isatty():
        raise typer.BadParameter("give a query, --file, or - to type one and end it with Ctrl-D")
    return read_text(sparql or "-")


def _choose_format(prologue: QueryPrologue, format: OutputFormat | None, *, json: bool, explain: bool) -> QueryOptions:
    if explain:
        return {"explain": "json" if json else "text"}
    if format is not None:
        return {"format": format.value}
    if json:
        return {"format": "jsonld" if prologue.of_graph else "json"}
    if prologue.of_graph:
        return {"format": "turtle"}
    return {"format": "json" if prologue.form == "ask" or sys.stdout.isatty() else "tsv"}


def _run(client: Client, text: str, prologue: QueryPrologue, how: QueryOptions, *, raw: bool, full: bool) -> bool:
    """Print the result, unchanged if `raw`. Return False if it is the answer no."""
    if prologue.form == "ask" and "format" in how:
        return _print_boolean(client, text, how, raw=raw)
    if raw or not sys.stdout.isatty():
        with client.answer(text, **how) as answer:
            for piece in answer:
                write_bytes(piece)
    elif prologue.of_graph:
        _print_graph(client, text, how)
    else:
        _print_table(client, text, prologue, how, full=full)
    return True


def _print_boolean(client: Client, text: str, how: QueryOptions, *, raw: bool) -> bool:
    """Print the answer to an ASK. In every format it holds the word `true` or `false`, and nothing of the query."""
    with client.answer(text, **how) as answer:
        body = b"".join(answer)
    positive = b"true" in body
    write_bytes(body if raw else b"yes\n" if positive else b"no\n")
    return positive


def _print_graph(client: Client, text: str, how: QueryOptions) -> None:
    from rich.syntax import Syntax

    with _spinner(), client.answer(text, **how) as answer:
        body = b"".join(answer).decode()
    Console().print(Syntax(body, "turtle", word_wrap=True, background_color="default"))


def _print_table(client: Client, text: str, prologue: QueryPrologue, how: QueryOptions, *, full: bool) -> None:
    from triplewire.client import ResultParser

    start, parser, console = time.perf_counter(), ResultParser(), Console(highlight=False)
    with _spinner() as spinner, client.answer(text, **how) as answer:
        rows = (row for piece in answer for row in parser.feed(piece))
        table = build_table(rows, lambda: parser.names, prologue, None if full else console.width)
        spinner.stop()
        count = table.print(console)
    seconds = time.perf_counter() - start
    duration = f"{seconds * 1_000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    console.print(f"[dim]{count:,} row{'' if count == 1 else 's'} in {duration}[/dim]")


def _spinner() -> Status:
    return Console(stderr=True).status("waiting for the answer …")
