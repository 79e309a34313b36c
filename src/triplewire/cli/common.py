"""Options, input and output that commands share.

Tables never truncate: a value that is shown may be the next command's argument.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Optional

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from triplewire.config import Settings
from triplewire.config.files import check_format
from triplewire.config.settings import LOG_FORMATS
from triplewire.model.events import parse_payload

Data = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads the annotation
    typer.Option("--data", help="Directory that holds log, lake and checkpoints.", show_default="triplewire-data"),
]
Host = Annotated[Optional[str], typer.Option("--host", help="Address to listen on.", show_default="127.0.0.1")]  # noqa: UP045
Port = Annotated[Optional[int], typer.Option("--port", help="Port to listen on.", show_default="8080")]  # noqa: UP045
TlsCertificate = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--tls-certificate", help="File with a certificate and its chain (PEM): speak TLS alone."),
]
TlsKey = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--tls-key", help="File with its key (PEM); by default that of the certificate."),
]
Open = Annotated[
    bool, typer.Option("--open", help="Let everyone do everything, whatever the address. For networks that you trust.")
]
LogFormat = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--log-format", help="How logs are written: `text`, or `json` for an object on each line."),
]
Url = Annotated[str, typer.Option("--url", envvar="TRIPLEWIRE_URL", help="Address of the broker.", show_default=True)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

DEFAULT_URL = "http://localhost:8080"


def load_settings(
    data: Path | None, host: str | None = None, port: int | None = None, **others: str | None
) -> Settings:
    """What the environment says, and the command line above it. `others` are fields of the settings."""
    given = {"data": data, "host": host, "port": port, **others}
    try:
        said = {key: value for key, value in given.items() if value is not None}
        return _checked(replace(Settings.from_environment(), **said))  # type: ignore[arg-type]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _checked(settings: Settings) -> Settings:
    if settings.log_format not in LOG_FORMATS:
        raise ValueError(f"the log format is {' or '.join(LOG_FORMATS)}, not {settings.log_format!r}")
    check_format(settings.data)
    return settings


# Documents: what a command prints for programs.


def print_json(value: object) -> None:
    import orjson

    Console().print_json(orjson.dumps(value).decode())


# Listings: tables of what there is, of which nothing is cut: what is shown may be what the next command wants.


def make_table(*names: str) -> Table:
    """A table with these columns. The first, by which things are known, stays on one line; others break where they are
    too wide."""
    first, *others = names
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, overflow="fold")
    return table


# Texts that a user gives on the command line: as they are, as a file, or on standard input.


def read_text(given: str) -> str:
    """`-` is standard input, the name of a file its contents, anything else the text itself."""
    if given == "-":
        return sys.stdin.read()
    try:
        return Path(given).read_text()
    except OSError:
        return given


# Messages: what is printed of events, notifications and answers as they come.

_RESULTS = "application/sparql-results+json"


def print_message(console: Console, message: dict[str, Any], json: bool) -> None:
    if json:
        write_json_line(message)
    else:
        console.print(format_message(message), soft_wrap=True, highlight=False)


def write_json_line(message: dict[str, Any]) -> None:
    """One line of JSON, at once, for whoever reads along."""
    sys.stdout.write(orjson.dumps(message).decode() + "\n")
    sys.stdout.flush()


def format_message(message: dict[str, Any]) -> str:
    """What is printed of a message, with markup."""
    head = f"[bold]{message['position']}[/bold] [dim]{message['time']}[/dim] {escape(message.get('event', ''))}"
    results = message.get("results") or _carried(message)
    body = message.get("body", "").rstrip().splitlines() if results is None else []
    return "\n".join([head, *(escape(line) for line in [*_limit(message), *_rows(results or {}), *body])])


def _rows(results: dict[str, Any]) -> list[str]:
    if "boolean" in results:
        return ["  yes" if results["boolean"] else "  no"]
    found = results.get("results", {}).get("bindings", [])
    return ["  " + "  ".join(f"?{name} = {each['value']}" for name, each in row.items()) for row in found]


def _carried(message: dict[str, Any]) -> dict[str, Any] | None:
    """The solutions that an event carries, as those of windows do; None for any other."""
    event, quads = message.get("event", ""), message.get("body", "")
    if _RESULTS not in quads:
        return None
    told = "\n".join("\t".join(line.removesuffix(f" <{event}> .").split(" ", 2)) for line in quads.splitlines())
    cargo = parse_payload(event, told)
    if cargo is None or cargo.media_type != _RESULTS:
        return None
    results: dict[str, Any] = orjson.loads(cargo.body)
    return results


def _limit(message: dict[str, Any]) -> list[str]:
    """What there was too much of to say more."""
    match message.get("limit"):
        case {"reached": "solutions", "most": most}:
            return [f"  limit reached: it matches, with more than {most:,} solutions"]
        case {"reached": "state", "most": most}:
            return [f"  limit reached: more than {most:,} rows wait for it, and it is suspended"]
        case {"reached": str(reached), "most": most}:
            return [f"  limit reached: whether it matches was not found out ({reached}, {most:g} s)"]
    return []
