"""`hooks`: see who is told by POST, what was not taken, and have that delivered again."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.documents import print_json
from triplewire.cli.listings import listing
from triplewire.cli.options import DEFAULT_URL, Json, Url

Id = Annotated[str, typer.Argument(help="Id of the subscription, or of what `hooks list` shows.")]
Positions = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer reads the annotation
    typer.Option("--position", help="Only what lies at this position, as `hooks dead` shows it; may be repeated."),
]

hooks = typer.Typer(
    help="Webhooks and subscribers by WebSub: who is told by POST, and what was parked because it was not taken.\n\n"
    "A webhook is made with a subscription: "
    '`curl $URL/subscriptions --json \'{"stream": "home", "webhook": {"url": "https://…"}}\'`.',
    no_args_is_help=True,
)


def add_to(app: typer.Typer) -> None:
    app.add_typer(hooks, name="hooks")


@hooks.command("list")
def list_(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell who is told by POST: how far each is, what is tried again and why, and how much is parked."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.hooks()
    if json:
        print_json(found)
    else:
        Console().print(_hooks(found) if found else "nobody is told by POST")


@hooks.command("dead")
def dead(hook: Id, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell what was parked: what a target did not take, whatever was tried."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.dead_letters(hook)
    if json:
        print_json(found)
    else:
        Console().print(_letters(found) if found else "nothing is parked")


@hooks.command("replay")
def replay(hook: Id, position: Positions = None, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Deliver again what was parked, each once; what is not taken stays. What is being tried again is tried at once."""
    from triplewire.client import Client

    with Client(url) as client:
        told = client.replay(hook, position)
    if json:
        print_json(told)
    else:
        Console().print(f"{told['replaying']} will be delivered; `triplewire hooks dead {hook}` tells what is left")


@hooks.command("drop")
def drop(hook: Id, position: Positions = None, url: Url = DEFAULT_URL) -> None:
    """Give up what was parked: it is not delivered any more."""
    from triplewire.client import Client

    with Client(url) as client:
        client.drop_dead_letters(hook, position)


def _hooks(found: list[dict[str, Any]]) -> Table:
    table = listing("id", "to", "state", "position", "parked", "trouble")
    for each in found:
        trouble = f"{each['reason']}, {each['failures']} times" if each.get("reason") else ""
        table.add_row(each["id"], each["url"], each["state"], each["position"], f"{each['parked']:,}", trouble)
    return table


def _letters(found: list[dict[str, Any]]) -> Table:
    table = listing("position", "parked", "attempts", "why")
    for each in found:
        table.add_row(each["position"], each["parked"], str(each["attempts"]), each["reason"])
    return table
