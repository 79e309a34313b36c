"""`token`, `policy`, `audit`: credentials, the access policy and its explanation, and the audit log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.common import DEFAULT_URL, Data, Json, Url, load_settings, make_table, print_json
from triplewire.model.errors import BadRequest
from triplewire.service.edge import AUDIT_BYTES, AUDIT_VOLUMES

if TYPE_CHECKING:
    from triplewire.http.resources.access_control import TokenManager, TokenRequest
    from triplewire.security.audit import AuditLog


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


def add_token_commands(app: typer.Typer) -> None:
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
    from triplewire.http.resources.access_control import TokenRequest

    order = TokenRequest(name, tuple(allow), tuple(role or ()), expires)
    with _saving(save) as keep:
        made = _create_local_token(order, data) if url is None else _create_remote_token(order, url)
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
    found = _list_local_tokens(data) if url is None else _list_remote_tokens(url)
    if json:
        print_json(found)
    else:
        Console().print(_token_table(found) if found else "there is no token")


@tokens.command("revoke")
def revoke(
    token: Annotated[str, typer.Argument(help="The id of a token, as `list` shows it.")],
    data: Data = None,
    url: Broker = None,
) -> None:
    """Revoke a token. It is good for nothing at once, at every edge, and who came in by it is sent away."""
    from triplewire.client import Client
    from triplewire.security.tokens import parse_access_token

    # Who has found a token somewhere has its text.
    id, _ = parse_access_token(token) or (token, "")
    if url is None:
        with _opened(data) as kept, _write_audit(data, "revokeToken", f"/tokens/{id}"):
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
def _opened(data: Path | None) -> Iterator[TokenManager]:
    from triplewire.http.resources.access_control import TokenManager
    from triplewire.model.clock import SystemClock
    from triplewire.service.access import open_token_registry

    clock = SystemClock()
    access = open_token_registry(load_settings(data), clock)
    try:
        yield TokenManager(access, clock)
    finally:
        access.close()


@contextmanager
def _write_audit(data: Path | None, what: str, on: str) -> Iterator[dict[str, str]]:
    """Writes down what is done to the directory itself, before and after, as edges do; what is put into the dictionary
    meanwhile is told with it. Raises StorageFull, and then nothing is done."""
    from triplewire.model.clock import SystemClock, format_timestamp
    from triplewire.security.audit import ACTS, AuditLog

    audits = AuditLog(load_settings(data).audit, AUDIT_BYTES, AUDIT_VOLUMES)
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


def _create_local_token(order: TokenRequest, data: Path | None) -> dict[str, Any]:
    from triplewire.http.resources.access_control import token_document

    with _opened(data) as kept, _write_audit(data, "createToken", "/tokens") as told:
        made, text = kept.create(order)
        told["made"] = f"/tokens/{made.id}"
        return {**token_document(made, kept.now()), "token": text}


def _list_local_tokens(data: Path | None) -> list[dict[str, Any]]:
    from triplewire.http.resources.access_control import token_document

    if not load_settings(data).access.exists():
        return []  # to look at a directory is not to make it
    with _opened(data) as kept:
        return [token_document(each, kept.now()) for each in kept.all()]


def _create_remote_token(order: TokenRequest, url: str) -> dict[str, Any]:
    from triplewire.client import Client

    with Client(url) as client:
        return client.create_token(order.name, order.allow, roles=order.roles, expires=order.expires)


def _list_remote_tokens(url: str) -> list[dict[str, Any]]:
    from triplewire.client import Client

    with Client(url) as client:
        return client.tokens()


def _token_table(found: list[dict[str, Any]]) -> Table:
    table = make_table("id", "name", "state", "allows", "roles", "created", "expires")
    for each in found:
        lists = (", ".join(each[name]) for name in ("allow", "roles"))
        times = (_minute(each["created"]), _minute(each["expires"]) if each["expires"] else "never")
        table.add_row(each["id"], each["name"], each["state"], *lists, *times)
    return table


def _minute(time: str) -> str:
    """In UTC. People need no more of a time; `--json` has all of it."""
    return time[:16].replace("T", " ")


# `policy`: check, load and see the policy on who sees what, and what it means for somebody.

File = Annotated[Path, typer.Argument(help="A policy, as TOML.", exists=True, dir_okay=False)]

policies = typer.Typer(help="Who sees which streams, graphs, classes and predicates, and who may publish them.")


def add_policy_commands(app: typer.Typer) -> None:
    app.add_typer(policies, name="policy", no_args_is_help=True)


@policies.command("check")
def check(file: File) -> None:
    """Check a policy, and load nothing. What is wrong is told with the rule, the key and the line."""
    from triplewire.security import parse_policy

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
    from triplewire.client import Client
    from triplewire.security import Principal, parse_policy

    asking = Principal.granted(name, grants or ["*"], roles or [])
    if file is None:
        with Client(url) as client:
            text = client.policy()
    else:
        text = _read(file)
    told = _explain(asking, parse_policy(text))
    if json:
        print_json(told)
    else:
        Console(highlight=False).print(_explanation_table(told))


def _read(file: Path) -> str:
    from triplewire.model.errors import BadRequest

    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file} cannot be read: {error}") from None


def _explain(asking: Any, policy: Any) -> dict[str, Any]:  # noqa: ANN401 - imported when it is used
    """By what is done, what of each kind is allowed and what of that is denied."""
    from triplewire.security import Verb, Visibility, publish_permit_of, visibility_of
    from triplewire.security.visibility import RESOURCE_KINDS

    permit = publish_permit_of(asking, policy)
    found = {verb: visibility_of(asking, verb, policy) for verb in (Verb.QUERY, Verb.CONSUME, Verb.SUBSCRIBE)}
    scopes = {**found, Verb.PUBLISH: None if permit is None else permit.scope}
    return {
        str(verb): {kind: _scope(getattr(scope or Visibility(), kind)) for kind in RESOURCE_KINDS}
        for verb, scope in scopes.items()
    }


def _scope(scope: Any) -> dict[str, list[str]]:  # noqa: ANN401 - imported when it is used
    return {"allowed": list(scope.allowed), "denied": list(scope.denied)}


def _explanation_table(told: dict[str, Any]) -> Table:
    table = Table("", "", "allowed", "denied")
    for verb, kinds in told.items():
        for number, (kind, scope) in enumerate(kinds.items()):
            cells = ["\n".join(scope[name]) or "nothing" for name in ("allowed", "denied")]
            table.add_row("" if number else verb, kind, *cells, end_section=number + 1 == len(kinds))
    return table


# `audit`: who did what, and who was refused.

_LOOK_SECONDS = 0.5


def add_audit_command(app: typer.Typer) -> None:
    app.command()(audit)


def audit(
    last: Annotated[int, typer.Option("--last", help="How many lines at most, the newest.", min=1)] = 100,
    who: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option("--who", help="Only of one: `token:ID`, `jwt:SUBJECT`, `local:USER`, `everyone`, `nobody`."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on, and show what is added.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show who did what in a data directory: administration, erasures, tokens, subscriptions, queries; and who was
    refused. Events that are published and consumed are not in it."""
    from triplewire.security.audit import AuditLog

    audits = AuditLog(load_settings(data).audit, AUDIT_BYTES, AUDIT_VOLUMES)
    for record in _follow_audit(audits, last) if follow else list(audits.read())[-last:]:
        if who in (None, record.get("who")):
            typer.echo(_line(record, json=json))


def _follow_audit(audits: AuditLog, last: int) -> Iterator[dict[str, Any]]:
    """The newest, and then what is new at each look."""
    shown: set[str] = set()
    while True:
        found = list(audits.read())
        fresh = [each for each in found if str(each) not in shown]
        yield from fresh[-last:] if not shown else fresh
        shown = {str(each) for each in found} or {""}
        time.sleep(_LOOK_SECONDS)


def _line(record: dict[str, Any], *, json: bool) -> str:
    import orjson

    if json:
        return orjson.dumps(record).decode()
    who, what, where = (record.get(name, "") for name in ("who", "what", "on"))
    rest = [str(record[name]) for name in ("status", "made", "why", "count") if name in record]
    came = f" from {record['from']}" if record.get("from") else ""
    return f"{record['at']}  {record['outcome']:8} {who} {what} {where}{came}  {' '.join(rest)}".rstrip()
