"""`erase`: delete events permanently, and show the receipts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from triplewire.cli.common import DEFAULT_URL, Json, Url, open_client, print_json, print_rows, progress_bar

if TYPE_CHECKING:
    from triplewire.client import Client

POLL_SECONDS = 0.5

erasures = typer.Typer(
    help="Delete events permanently: one event, all events of a source, or all quads that name a subject.",
    epilog="Erased events are hidden at once. They are deleted from the log, the lake and its older versions when the "
    "receipt is complete. Events that are published later are not erased. Copies that subscribers, exports and backups "
    "hold are out of reach.",
    no_args_is_help=True,
)

By = Annotated[str | None, typer.Option("--by", help="Who requests the erasure; the receipt names them.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Wait = Annotated[bool, typer.Option("--wait", help="Show progress until the erasure is complete.")]


def _add_command(scope: str, name_help: str, summary: str, what: str) -> None:
    argument = typer.Argument(help=name_help)

    @erasures.command(scope, help=summary)
    def erase(
        name: str = argument,
        by: By = None,
        yes: Yes = False,
        wait: Wait = False,
        url: Url = DEFAULT_URL,
        json: Json = False,
    ) -> None:
        if not yes:
            typer.confirm(f"Delete {what} {name} for good?", abort=True, err=True)
        with open_client(url) as client:
            receipt = client.erase(scope, name, by)
            _print_receipt(_wait_complete(client, receipt, quiet=json) if wait else receipt, json=json)


_add_command("event", "Id of the event, an IRI.", "Delete one event.", "the event")
_add_command(
    "source",
    "The source, as the publisher gave it in `Source-Id`.",
    "Delete all events of a source.",
    "all events from",
)
_add_command(
    "subject",
    "The IRI, without angle brackets.",
    "Delete all quads that have an IRI as subject or object, and events that are empty then.",
    "all quads that name",
)


@erasures.command("receipt")
def receipt(
    name: Annotated[str, typer.Argument(help="Id of the receipt.")],
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show the receipt of an erasure, with its progress."""
    with open_client(url) as client:
        found = client.erasure(name)
        _print_receipt(_wait_complete(client, found, quiet=json) if wait else found, json=json)


@erasures.command("list")
def list_(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List all erasures."""
    with open_client(url) as client:
        found = client.erasures()
    names = ("id", "erases", "requested", "completed", "by")
    rows = ([str(each[name] or "") for name in names] for each in found)
    print_rows(found, names, rows, "nothing was ever erased", json=json)


def _wait_complete(client: Client, receipt: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Show progress until the receipt is complete, and return it."""
    with progress_bar(disable=quiet) as progress:
        task = progress.add_task("erasing", total=len(receipt["steps"]))
        for each in _poll(client, receipt):
            done = sum(step["state"] == "done" for step in each["steps"])
            step = next((step["step"] for step in each["steps"] if step["state"] != "done"), "done")
            progress.update(task, completed=done, description=step)
    return each


def _poll(client: Client, receipt: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield receipt
    while receipt["completed"] is None:
        time.sleep(POLL_SECONDS)
        receipt = client.erasure(receipt["id"])
        yield receipt


def _print_receipt(receipt: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(receipt)
        return
    console = Console(highlight=False)
    for step in receipt["steps"]:
        console.print(f"{step['step']:8} {step['at'] or 'waiting'}")
    counts = ", ".join(f"{count:,} {name}" for name, count in receipt["counts"].items())
    console.print(f"receipt {receipt['id']}: {receipt['erases']}, {counts or 'nothing counted yet'}")
    console.print(f"complete since {receipt['completed']}" if receipt["completed"] else "not complete yet")
