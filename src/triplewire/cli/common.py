"""Options, input and output that commands share.

Tables never truncate: a value that is shown may be the next command's argument.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from triplewire.config import Settings
from triplewire.config.files import check_format
from triplewire.config.settings import LOG_FORMATS

if TYPE_CHECKING:
    from triplewire.client import Client

Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data directory: log, lake, registry and checkpoints.", show_default="triplewire-data"),
]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on.", show_default="8080")]
TlsCertificate = Annotated[
    str | None,
    typer.Option("--tls-certificate", help="PEM file with a certificate and its chain. The port then speaks TLS only."),
]
TlsKey = Annotated[
    str | None,
    typer.Option("--tls-key", help="PEM file with the private key, if the certificate's file does not hold it."),
]
Open = Annotated[
    bool,
    typer.Option("--open", help="Allow everything to every client, without tokens. For networks that you trust."),
]
LogFormat = Annotated[
    str | None, typer.Option("--log-format", help="Format of log lines: `text`, or `json` for one object per line.")
]
Url = Annotated[str, typer.Option("--url", envvar="TRIPLEWIRE_URL", help="Address of the broker.", show_default=True)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Count = Annotated[int | None, typer.Option("--count", "-n", help="Stop after that many messages.")]
MediaType = Annotated[
    str | None, typer.Option("--type", help="Media type of the file; by default it follows from the file name.")
]

DEFAULT_URL = "http://localhost:8080"

ATTEMPTS = 8
"""Failed connections in a row after which a command gives up, about half a minute: a broker may restart, but a script
must not hang."""

_UNITS = ("B", "kB", "MB", "GB", "TB")
_RESULTS = "application/sparql-results+json"


def load_settings(
    data: Path | None, host: str | None = None, port: int | None = None, **others: str | None
) -> Settings:
    """Return the settings of the environment, overridden by the options given. `others` are fields of the settings."""
    options = {"data": data, "host": host, "port": port, **others}
    try:
        given = {key: value for key, value in options.items() if value is not None}
        settings = replace(Settings.from_environment(), **given)  # type: ignore[arg-type]
        if settings.log_format not in LOG_FORMATS:
            raise ValueError(f"the log format must be {' or '.join(LOG_FORMATS)}, not {settings.log_format!r}")
        if settings.match_tasks < 1:
            raise ValueError(f"match_tasks must be a number from 1 on, not {settings.match_tasks}")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    check_format(settings.data)
    return settings


def open_client(url: str, attempts: int | None = None) -> Client:
    """Return a client for a `with` statement. The client's libraries are only imported here: they are slow to load."""
    from triplewire.client import Client

    return Client(url) if attempts is None else Client(url, attempts=attempts)


def read_text(argument: str) -> str:
    """Return standard input for `-`, the content of a file for its name, and any other text itself."""
    if argument == "-":
        return sys.stdin.read()
    try:
        return Path(argument).read_text()
    except OSError:
        return argument


def split_pairs(pairs: Sequence[str], option: str) -> list[tuple[str, str]]:
    """Split each NAME=VALUE of an option. Exits with a usage error for any other text."""
    split = [each.partition("=") for each in pairs]
    for name, sign, value in split:
        if not name or not sign:
            raise typer.BadParameter(f"{name + sign + value!r} is not NAME=VALUE", param_hint=option)
    return [(name, value) for name, _, value in split]


def print_json(value: object) -> None:
    Console().print_json(orjson.dumps(value).decode())


def print_result(value: object, text: RenderableType, *, json: bool) -> None:
    """Print a command's result: as JSON, or as its text or table."""
    if json:
        print_json(value)
    else:
        Console(highlight=False).print(text)


def print_rows(
    records: Sequence[Any], columns: Sequence[str], rows: Iterable[Sequence[str]], empty: str, *, json: bool
) -> None:
    """Print a list: the records as JSON, or their rows as a table, or the text `empty` if there are none."""
    print_result(records, make_table(columns, rows) if records else empty, json=json)


def make_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Make a table whose first column, the name or id, never wraps; the others fold where they are too wide."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for number, name in enumerate(columns):
        table.add_column(name, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def progress_bar(*, disable: bool) -> Progress:
    """A progress bar on standard error, which vanishes when it is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=disable)


def format_size(value: float) -> str:
    """Format a number of bytes for people: 1.2 MB."""
    unit = 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:,.0f} {_UNITS[unit]}" if value >= 10 or unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def write_bytes(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_json_line(message: dict[str, Any]) -> None:
    """Write one line of JSON and flush it, for a program that reads along."""
    sys.stdout.write(orjson.dumps(message).decode() + "\n")
    sys.stdout.flush()


def print_messages(messages: Iterable[dict[str, Any]], count: int | None, json: bool) -> None:
    """Print events, notifications or answers as they arrive, at most `count`."""
    console = Console()
    for number, message in enumerate(messages, 1):
        if json:
            write_json_line(message)
        else:
            console.print(format_message(message), soft_wrap=True, highlight=False)
        if number == count:
            break


def format_message(message: dict[str, Any]) -> str:
    """Return a message as text with markup."""
    head = f"[bold]{message['position']}[/bold] [dim]{message['time']}[/dim] {escape(message.get('event', ''))}"
    results = message.get("results") or _payload_results(message)
    body = message.get("body", "").rstrip().splitlines() if results is None else []
    return "\n".join([head, *(escape(line) for line in [*_limit_lines(message), *_result_lines(results or {}), *body])])


def _result_lines(results: dict[str, Any]) -> list[str]:
    if "boolean" in results:
        return ["  yes" if results["boolean"] else "  no"]
    rows = results.get("results", {}).get("bindings", [])
    return ["  " + "  ".join(f"?{name} = {each['value']}" for name, each in row.items()) for row in rows]


def _payload_results(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the solutions that an event has as its payload, as the answers of windows do; None for other events."""
    from triplewire.model.events import parse_payload

    event, quads = message.get("event", ""), message.get("body", "")
    if _RESULTS not in quads:
        return None
    text = "\n".join("\t".join(line.removesuffix(f" <{event}> .").split(" ", 2)) for line in quads.splitlines())
    payload = parse_payload(event, text)
    if payload is None or payload.media_type != _RESULTS:
        return None
    results: dict[str, Any] = orjson.loads(payload.body)
    return results


def _limit_lines(message: dict[str, Any]) -> list[str]:
    match message.get("limit"):
        case {"reached": "solutions", "most": most}:
            return [f"  limit reached: the event matches with more than {most:,} solutions"]
        case {"reached": "state", "most": most}:
            return [f"  limit reached: the query is suspended, because its state has more than {most:,} rows"]
        case {"reached": str(reached), "most": most}:
            return [f"  limit reached: whether the event matches is unknown ({reached}, {most:g} s)"]
    return []
