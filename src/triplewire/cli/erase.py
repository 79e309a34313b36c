"""`erase`: delete events permanently, and see the receipts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from triplewire.cli.common import DEFAULT_URL, Json, Url, make_table, print_json

if TYPE_CHECKING:
    from triplewire.client import Client


LOOK_SECONDS = 0.5

erasures = typer.Typer(
    help="Delete for good what was published: an event, all of a source, or all that names a subject.",
    epilog="What was published before is hidden at once, and gone from log, lake and its older versions when the "
    "receipt says so. What is published later is new, and stays. What subscribers were told, exports and backups are "
    "out of reach.",
    no_args_is_help=True,
)

By = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option("--by", help="Who asks for it; stands in the receipt."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")]
Wait = Annotated[bool, typer.Option("--wait", help="Show progress until the last byte is gone.")]


def add_to(app: typer.Typer) -> None:
    app.add_typer(erasures, name="erase")


@erasures.command("event")
def event(
    name: Annotated[str, typer.Argument(help="Id of the event, an IRI.")],
    by: By = None,
    yes: Yes = False,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Delete one event, whole."""
    _erase("event", name, f"the event {name}", by=by, yes=yes, wait=wait, url=url, json=json)


@erasures.command("source")
def source(
    name: Annotated[str, typer.Argument(help="What the publisher gave as `Source-Id`.")],
    by: By = None,
    yes: Yes = False,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Delete all events that come from a source."""
    _erase("source", name, f"all events from {name}", by=by, yes=yes, wait=wait, url=url, json=json)


@erasures.command("subject")
def subject(
    name: Annotated[str, typer.Argument(help="The IRI, without angle brackets.")],
    by: By = None,
    yes: Yes = False,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Delete all quads that name an IRI as their subject or object, and events of which nothing is left."""
    _erase("subject", name, f"all quads that name {name}", by=by, yes=yes, wait=wait, url=url, json=json)


@erasures.command("receipt")
def receipt(
    name: Annotated[str, typer.Argument(help="Id of the receipt.")],
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Tell how far an erasure is."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.erasure(name)
        _tell(_waited(client, found, quiet=json) if wait else found, json=json)


@erasures.command("list")
def list_(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell of all erasures."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.erasures()
    if json:
        print_json(found)
    else:
        Console().print(_table(found) if found else "nothing was ever erased")


def _erase(scope: str, name: str, what: str, *, by: str | None, yes: bool, wait: bool, url: str, json: bool) -> None:
    from triplewire.client import Client

    if not yes:
        typer.confirm(f"Delete {what} for good?", abort=True, err=True)
    with Client(url) as client:
        asked = client.erase(scope, name, by)
        _tell(_waited(client, asked, quiet=json) if wait else asked, json=json)


def _waited(client: Client, receipt: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """The receipt once it is complete."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        task = progress.add_task("erasing", total=len(receipt["steps"]))
        for each in _looked(client, receipt):
            done = sum(step["state"] == "done" for step in each["steps"])
            waiting = next((step["step"] for step in each["steps"] if step["state"] != "done"), "done")
            progress.update(task, completed=done, description=waiting)
    return each


def _looked(client: Client, receipt: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield receipt
    while receipt["completed"] is None:
        time.sleep(LOOK_SECONDS)
        receipt = client.erasure(receipt["id"])
        yield receipt


def _tell(receipt: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(receipt)
        return
    console = Console(highlight=False)
    for step in receipt["steps"]:
        console.print(f"{step['step']:8} {step['at'] or 'waiting'}")
    counts = ", ".join(f"{count:,} {name}" for name, count in receipt["counts"].items())
    console.print(f"receipt {receipt['id']}: {receipt['erases']}, {counts or 'nothing counted yet'}")
    console.print(f"complete since {receipt['completed']}" if receipt["completed"] else "not complete yet")


def _table(found: list[dict[str, Any]]) -> Table:
    names = ("id", "erases", "requested", "completed", "by")
    table = make_table(*names)
    for each in found:
        table.add_row(*(str(each[name] or "") for name in names))
    return table
