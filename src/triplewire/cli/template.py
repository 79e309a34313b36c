"""`template`: put, see and remove query texts with parameters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.documents import print_json
from triplewire.cli.listings import listing
from triplewire.cli.options import DEFAULT_URL, Json, Url
from triplewire.cli.texts import read_text

Name = Annotated[str, typer.Argument(help="Name of the template.")]

templates = typer.Typer(help="Query texts with `$parameters`, of which subscriptions are made.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    app.add_typer(templates, name="template")


@templates.command("put")
def put(
    name: Name,
    sparql: Annotated[str, typer.Argument(help="The text, a file that holds it, or `-` for standard input.")],
    types: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads the annotation
        typer.Option("--type", metavar="PARAMETER=TYPE", help="What a parameter must be; may be repeated."),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Put a template, in place of what had the name. Subscriptions that were made of that stay as they are.

    Types are `iri`, `literal`, `string`, `integer`, `decimal`, `double`, `boolean`, `dateTime`, `date`, and `term`,
    which is anything and the default.
    """
    from triplewire.client import Client

    parameters = {parameter: {"type": given} for parameter, given in pairs(types or [], "--type").items()}
    with Client(url) as client:
        made = client.put_template(name, read_text(sparql), parameters or None)
    if json:
        print_json(made)
    else:
        Console(highlight=False).print(f"{name}: {_parameters(made)}, version {made['version']}")


@templates.command("list")
def list_(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell which templates there are."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.templates()
    if json:
        print_json(found)
    else:
        Console().print(_table(found) if found else "there is no template")


@templates.command("get")
def get(name: Name, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Print a template: its text, or with `--json` all of it."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.template(name)
    if json:
        print_json(found)
    else:
        sys.stdout.write(found["sparql"].rstrip("\n") + "\n")


@templates.command("delete")
def delete(name: Name, url: Url = DEFAULT_URL) -> None:
    """Remove a template. Subscriptions that were made of it stay."""
    from triplewire.client import Client

    with Client(url) as client:
        client.remove_template(name)


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """`name=text`, each of them, by name. Ends with what is right for one that is none."""
    found = dict[str, str]()
    for each in given:
        name, sign, text = each.partition("=")
        if not name or not sign:
            raise typer.BadParameter(f"{each!r} is no NAME=TEXT", param_hint=option)
        found[name] = text
    return found


def _table(found: list[dict[str, Any]]) -> Table:
    table = listing("name", "version", "parameters")
    for each in found:
        table.add_row(each["name"], str(each["version"]), _parameters(each))
    return table


def _parameters(template: dict[str, Any]) -> str:
    told = [f"${name} {each['type']}" for name, each in template["parameters"].items()]
    return ", ".join(told) or "no parameters"
