"""`policy`: check, load and see the policy on who sees what, and what it means for somebody."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.documents import print_json
from triplewire.cli.options import DEFAULT_URL, Json, Url

File = Annotated[Path, typer.Argument(help="A policy, as TOML.", exists=True, dir_okay=False)]

policies = typer.Typer(help="Who sees which streams, graphs, classes and predicates, and who may publish them.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(policies, name="policy", no_args_is_help=True)


@policies.command("check")
def check(file: File) -> None:
    """Check a policy, and load nothing. What is wrong is told with the rule, the key and the line."""
    from triplewire.access import parse_policy

    policy = parse_policy(_read(file))
    says = f"{len(policy.see.rules)} rules about seeing, {len(policy.publish.rules)} about publishing"
    typer.echo(f"{file}: {says}")


@policies.command("load")
def load(file: File, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Load a policy, in place of what is in force. It holds from the position that is told."""
    from triplewire.client import Client

    with Client(url) as client:
        loaded = client.load_policy(_read(file))
    if json:
        print_json(loaded)
    else:
        typer.echo(f"in force from {loaded['version']} on")


@policies.command("show")
def show(
    version: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="One that was in force once."),
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Print the policy in force, as it was loaded."""
    from triplewire.client import Client

    with Client(url) as client:
        typer.echo(client.policy(version), nl=False)


@policies.command("versions")
def versions(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell which policies were in force, the newest first."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.policy_versions()
    if json:
        print_json(found)
    else:
        for each in found:
            rules = each["rules"]
            said = (
                "none" if rules is None else f"{rules['see']} rules about seeing, {rules['publish']} about publishing"
            )
            typer.echo(f"{each['version']}  {said}")


@policies.command("remove")
def remove(url: Url = DEFAULT_URL) -> None:
    """Have no policy from now on: everybody sees what is granted to them."""
    from triplewire.client import Client

    with Client(url) as client:
        client.remove_policy()


@policies.command("explain")
def explain(
    name: Annotated[str, typer.Option("--as", help="Name of the one who asks.")] = "everyone",
    roles: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads the annotation
        typer.Option("--role", help="A role of theirs; may be repeated."),
    ] = None,
    grants: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads the annotation
        typer.Option("--grant", help="What is granted to them, such as query:city-*; everything by default."),
    ] = None,
    file: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="A policy to go by, instead of the one in force.", exists=True, dir_okay=False),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Tell what somebody would see and could publish, kind by kind: what is allowed, and what of that is denied."""
    from triplewire.access import Principal, parse_policy
    from triplewire.client import Client

    asking = Principal.granted(name, grants or ["*"], roles or [])
    if file is None:
        with Client(url) as client:
            text = client.policy()
    else:
        text = _read(file)
    told = _told(asking, parse_policy(text))
    if json:
        print_json(told)
    else:
        Console(highlight=False).print(_table(told))


def _read(file: Path) -> str:
    from triplewire.model.errors import BadRequest

    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file} cannot be read: {error}") from None


def _told(asking: Any, policy: Any) -> dict[str, Any]:  # noqa: ANN401 - imported when it is used
    """By what is done, what of each kind is allowed and what of that is denied."""
    from triplewire.access import Sight, Verb, permit_of, sight_of
    from triplewire.access.rules import KINDS

    permit = permit_of(asking, policy)
    found = {verb: sight_of(asking, verb, policy) for verb in (Verb.QUERY, Verb.CONSUME, Verb.SUBSCRIBE)}
    scopes = {**found, Verb.PUBLISH: None if permit is None else permit.scope}
    return {
        str(verb): {kind: _scope(getattr(scope or Sight(), kind)) for kind in KINDS} for verb, scope in scopes.items()
    }


def _scope(scope: Any) -> dict[str, list[str]]:  # noqa: ANN401 - imported when it is used
    return {"allowed": list(scope.allowed), "denied": list(scope.denied)}


def _table(told: dict[str, Any]) -> Table:
    table = Table("", "", "allowed", "denied")
    for verb, kinds in told.items():
        for number, (kind, scope) in enumerate(kinds.items()):
            cells = ["\n".join(scope[name]) or "nothing" for name in ("allowed", "denied")]
            table.add_row("" if number else verb, kind, *cells, end_section=number + 1 == len(kinds))
    return table
