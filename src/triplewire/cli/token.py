"""`token`: make, see and revoke what people and programs are known by."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.documents import print_json
from triplewire.cli.listings import listing
from triplewire.cli.options import Data, Json, settings_of
from triplewire.model.errors import BadRequest

if TYPE_CHECKING:
    from triplewire.control.tokens import Order, Tokens


EXAMPLES = """
[bold]Examples[/bold]

For a sensor, which sends to one stream, for a year:

    triplewire token create --name roof --allow publish:home --expires 52w

For a screen, which shows all streams of a city and asks of their history:

    triplewire token create --name screen --allow 'consume:city-*' --allow query

For yourself, to run things from elsewhere:

    triplewire token create --name me --allow '*'
"""

Broker = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option("--url", help="Ask the broker there, as an administrator, and not the data directory."),
]

tokens = typer.Typer(help="What people and programs are known by. The first one closes the door.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    app.add_typer(tokens, name="token")


@tokens.command("create", epilog=EXAMPLES)
def create(
    name: Annotated[str, typer.Option("--name", help="What it is for.")],
    allow: Annotated[
        list[str],
        typer.Option(
            "--allow",
            metavar="VERB[:STREAMS]",
            help="What it lets do: publish, consume, subscribe, query or admin, on a stream (`publish:home`), on those "
            "that begin alike (`consume:city-*`), or on all; `*` is everything. May be repeated.",
        ),
    ],
    role: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--role", help="A role that policies speak of. May be repeated."),
    ] = None,
    expires: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--expires", metavar="LIFETIME", help="After so long, such as `30d` or `12h`; by default never."),
    ] = None,
    save: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--save", metavar="FILE", help="Put it into a new file that only you can read, and print none."),
    ] = None,
    data: Data = None,
    url: Broker = None,
    json: Json = False,
) -> None:
    """Make a token, and print it. It is shown this once: what is kept tells whether it is right, and not what it is."""
    from triplewire.control.tokens import Order

    order = Order(name, tuple(allow), tuple(role or ()), expires)
    with _saving(save) as keep:
        made = _made(order, data) if url is None else _ordered(order, url)
        keep(made)
    if json:
        print_json(made)
        return
    if "token" in made:
        typer.echo(made["token"])
    until = "for good" if made["expires"] is None else f"until {made['expires']}"
    where = save or "a file that only you can read"
    typer.echo(
        f"The token {made['id']} ({name}) is good {until}. It is not shown again: keep it in {where}, and name that in "
        "TRIPLEWIRE_TOKEN_FILE.",
        err=True,
    )


@tokens.command("list")
def list_(data: Data = None, url: Broker = None, json: Json = False) -> None:
    """Tell which tokens there are, and whether they are good."""
    found = _kept(data) if url is None else _told(url)
    if json:
        print_json(found)
    else:
        Console().print(_table(found) if found else "there is no token")


@tokens.command("revoke")
def revoke(
    token: Annotated[str, typer.Argument(help="The id of a token, as `list` shows it.")],
    data: Data = None,
    url: Broker = None,
) -> None:
    """Revoke a token. It is good for nothing at once, at every edge, and who came in by it is sent away."""
    from triplewire.access.tokens import parsed
    from triplewire.client import Client

    # Who has found a token somewhere has its text.
    id, _ = parsed(token) or (token, "")
    if url is None:
        with _opened(data) as kept, _witnessed(data, "revokeToken", f"/tokens/{id}"):
            kept.revoke(id)
    else:
        with Client(url) as client:
            client.revoke_token(id)


@contextmanager
def _saving(path: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Takes the text out of what is told of a token, into a file that is opened before anything is made. Raises
    BadRequest where it is there already, or cannot be."""
    if path is None:
        yield lambda made: None
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BadRequest(f"{path} cannot be made: {error.strerror}") from None
    with os.fdopen(descriptor, "w") as file:
        try:
            yield lambda made: print(made.pop("token"), file=file)
        except BaseException:
            path.unlink()
            raise


@contextmanager
def _opened(data: Path | None) -> Iterator[Tokens]:
    from triplewire.compose.doors import open_access
    from triplewire.control.tokens import Tokens
    from triplewire.model.clock import SystemClock

    clock = SystemClock()
    access = open_access(settings_of(data), clock)
    try:
        yield Tokens(access, clock)
    finally:
        access.close()


@contextmanager
def _witnessed(data: Path | None, what: str, on: str) -> Iterator[dict[str, str]]:
    """Writes down what is done to the directory itself, before and after, as edges do; what is put into the dictionary
    meanwhile is told with it. Raises StorageFull, and then nothing is done."""
    from triplewire.config import limits
    from triplewire.matching.results import format_timestamp
    from triplewire.model.clock import SystemClock
    from triplewire.security.audit import ACTS, AuditLog

    audits = AuditLog(settings_of(data).audit, limits.AUDIT_BYTES, limits.AUDIT_VOLUMES)
    record = {"who": f"local:{getuser()}", "what": what, "on": on, "act": token_hex(8)}

    def write(outcome: str) -> None:
        at = format_timestamp(SystemClock().now())
        audits.write(ACTS, [{"at": at, **record, "outcome": outcome, **told}], sync=True)

    told: dict[str, str] = {}
    write("begun")
    try:
        yield told
    except BaseException:
        write("failed")
        raise
    write("done")


def _made(order: Order, data: Path | None) -> dict[str, Any]:
    from triplewire.control.issuances import document

    with _opened(data) as kept, _witnessed(data, "createToken", "/tokens") as told:
        made, text = kept.create(order)
        told["made"] = f"/tokens/{made.id}"
        return {**document(made, kept.now()), "token": text}


def _kept(data: Path | None) -> list[dict[str, Any]]:
    from triplewire.control.issuances import document

    if not settings_of(data).access.exists():
        return []  # to look at a directory is not to make it
    with _opened(data) as kept:
        return [document(each, kept.now()) for each in kept.all()]


def _ordered(order: Order, url: str) -> dict[str, Any]:
    from triplewire.client import Client

    with Client(url) as client:
        return client.create_token(order.name, order.allow, roles=order.roles, expires=order.expires)


def _told(url: str) -> list[dict[str, Any]]:
    from triplewire.client import Client

    with Client(url) as client:
        return client.tokens()


def _table(found: list[dict[str, Any]]) -> Table:
    table = listing("id", "name", "state", "allows", "roles", "created", "expires")
    for each in found:
        lists = (", ".join(each[name]) for name in ("allow", "roles"))
        times = (_minute(each["created"]), _minute(each["expires"]) if each["expires"] else "never")
        table.add_row(each["id"], each["name"], each["state"], *lists, *times)
    return table


def _minute(time: str) -> str:
    """In UTC. People need no more of a time; `--json` has all of it."""
    return time[:16].replace("T", " ")
