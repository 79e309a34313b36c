"""`token`, `policy`, `audit`: credentials, the access policy and its explanation, and the audit log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.table import Table

from triplewire.cli.common import (
    DEFAULT_URL,
    Data,
    Json,
    Url,
    load_settings,
    open_client,
    print_json,
    print_result,
    print_rows,
)
from triplewire.model.errors import BadRequest

if TYPE_CHECKING:
    from triplewire.http.resources.access_control import TokenManager, TokenRequest
    from triplewire.security.audit import AuditLog

EXAMPLES = """
[bold]Examples[/bold]

A sensor that publishes to one stream, for a year:

    triplewire token create --name roof --allow publish:home --expires 52w

A dashboard that consumes all streams of a city and queries their history:

    triplewire token create --name screen --allow 'consume:city-*' --allow query

An administrator:

    triplewire token create --name me --allow '*'
"""

POLL_SECONDS = 0.5

Broker = Annotated[
    str | None,
    typer.Option("--url", help="Use this broker, as an administrator, instead of the data directory."),
]
PolicyFile = Annotated[Path, typer.Argument(help="A TOML file with a policy.", exists=True, dir_okay=False)]

tokens = typer.Typer(
    help="Access tokens of clients. Once there is one, the broker refuses requests without a token.",
    no_args_is_help=True,
)
policies = typer.Typer(
    help="The policy: who may see which streams, graphs, classes and predicates, and who may publish them.",
    no_args_is_help=True,
)


@tokens.command("create", epilog=EXAMPLES)
def create(
    name: Annotated[str, typer.Option("--name", help="Name of the client or purpose.")],
    allow: Annotated[
        list[str],
        typer.Option(
            "--allow",
            metavar="VERB[:STREAMS]",
            help="A grant: publish, consume, subscribe, query or admin, on one stream (`publish:home`), on streams "
            "with a prefix (`consume:city-*`), or on all streams (`query`); `*` allows everything. Repeatable.",
        ),
    ],
    role: Annotated[list[str] | None, typer.Option("--role", help="A role, for policies. Repeatable.")] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="LIFETIME", help="Lifetime, such as `30d` or `12h`.", show_default="forever"),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Write the token to a new file that only you can read."),
    ] = None,
    data: Data = None,
    url: Broker = None,
    json: Json = False,
) -> None:
    """Create a token and print it. It is shown only this once: the broker stores a hash."""
    from triplewire.http.resources.access_control import TokenRequest

    request = TokenRequest(name, tuple(allow), tuple(role or ()), expires)
    with _token_file(save) as write:
        token = _create_local_token(request, data) if url is None else _create_remote_token(request, url)
        write(token)
    if json:
        print_json(token)
        return
    if "token" in token:
        typer.echo(token["token"])
    until = "without end" if token["expires"] is None else f"until {token['expires']}"
    where = f"It is in {save}" if save else "It is not shown again: store it in a file that only you can read"
    typer.echo(
        f"The token {token['id']} ({name}) is valid {until}. {where}. Clients read it from the file that "
        "TRIPLEWIRE_TOKEN_FILE or --token-file names.",
        err=True,
    )


@tokens.command("list")
def list_(data: Data = None, url: Broker = None, json: Json = False) -> None:
    """List tokens, with their grants and whether they are valid."""
    if url is None:
        found = _list_local_tokens(data)
    else:
        with open_client(url) as client:
            found = client.tokens()
    columns = ("id", "name", "state", "allows", "roles", "created", "expires")
    print_rows(found, columns, map(_token_row, found), "there is no token", json=json)


@tokens.command("revoke")
def revoke(
    token: Annotated[str, typer.Argument(help="Id of the token, as `token list` shows it, or its text.")],
    data: Data = None,
    url: Broker = None,
) -> None:
    """Revoke a token. Every edge refuses it at once and closes its connections."""
    from triplewire.security.tokens import parse_access_token

    # Somebody who has found a leaked token has its text, not its id.
    id, _ = parse_access_token(token) or (token, "")
    if url is None:
        with _open_tokens(data) as manager, _write_audit(data, "revokeToken", f"/tokens/{id}"):
            manager.revoke(id)
    else:
        with open_client(url) as client:
            client.revoke_token(id)


@contextmanager
def _token_file(path: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that moves the text of a token from its document into a file. The file is opened before the
    token is created. Raises BadRequest if it exists already or cannot be created."""
    if path is None:
        yield lambda token: None
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BadRequest(f"{path} cannot be created: {error.strerror}") from None
    with os.fdopen(descriptor, "w") as file:
        try:
            yield lambda token: print(token.pop("token"), file=file)
        except BaseException:
            path.unlink()
            raise


@contextmanager
def _open_tokens(data: Path | None) -> Iterator[TokenManager]:
    from triplewire.http.resources.access_control import TokenManager
    from triplewire.model.clock import SystemClock
    from triplewire.service.access import open_token_registry

    clock = SystemClock()
    registry = open_token_registry(load_settings(data), clock)
    try:
        yield TokenManager(registry, clock)
    finally:
        registry.close()


@contextmanager
def _write_audit(data: Path | None, what: str, on: str) -> Iterator[dict[str, str]]:
    """Record an act on the data directory, before and after it, as edges do; the caller may add fields to the yielded
    dictionary. Raises StorageFull before anything is done."""
    from triplewire.model.clock import SystemClock, format_timestamp
    from triplewire.security.audit import ACTS, AuditLog

    log = AuditLog(load_settings(data).audit)
    record = {"who": f"local:{getuser()}", "what": what, "on": on, "act": token_hex(8)}
    details: dict[str, str] = {}

    def write(outcome: str) -> None:
        at = format_timestamp(SystemClock().now())
        log.write(ACTS, [{"at": at, **record, "outcome": outcome, **details}], durable=True)

    write("begun")
    try:
        yield details
    except BaseException:
        write("failed")
        raise
    write("done")


def _create_local_token(request: TokenRequest, data: Path | None) -> dict[str, Any]:
    from triplewire.http.resources.access_control import token_document

    with _open_tokens(data) as manager, _write_audit(data, "createToken", "/tokens") as details:
        token, text = manager.create(request)
        details["made"] = f"/tokens/{token.id}"
        return {**token_document(token, manager.now()).to_json(), "token": text}


def _create_remote_token(request: TokenRequest, url: str) -> dict[str, Any]:
    with open_client(url) as client:
        return client.create_token(request.name, request.allow, roles=request.roles, expires=request.expires)


def _list_local_tokens(data: Path | None) -> list[dict[str, Any]]:
    from triplewire.http.resources.access_control import token_document

    if not load_settings(data).access.exists():
        return []  # listing must not create a data directory
    with _open_tokens(data) as manager:
        return [token_document(each, manager.now()).to_json() for each in manager.all()]


def _token_row(token: dict[str, Any]) -> tuple[str, ...]:
    grants, roles = (", ".join(token[name]) for name in ("allow", "roles"))
    expires = _minute(token["expires"]) if token["expires"] else "never"
    return token["id"], token["name"], token["state"], grants, roles, _minute(token["created"]), expires


def _minute(time: str) -> str:
    """Shorten a UTC time to minutes; `--json` prints all of it."""
    return time[:16].replace("T", " ")


@policies.command("check")
def check(file: PolicyFile) -> None:
    """Check a policy file, without loading it. An error names the rule, the key and the line."""
    from triplewire.security import parse_policy

    policy = parse_policy(_read(file))
    typer.echo(f"{file}: {_rules(len(policy.see.rules), len(policy.publish.rules))}")


@policies.command("load")
def load(file: PolicyFile, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Load a policy. It replaces the one in force, from the log position that is printed."""
    with open_client(url) as client:
        loaded = client.load_policy(_read(file))
    print_result(loaded, f"in force from {loaded['version']} on", json=json)


@policies.command("show")
def show(
    version: Annotated[str | None, typer.Option(help="An earlier version, as `policy versions` lists them.")] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Print the policy in force, as it was loaded."""
    with open_client(url) as client:
        typer.echo(client.policy(version), nl=False)


@policies.command("versions")
def versions(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List the versions of the policy, the newest first."""
    with open_client(url) as client:
        found = client.policy_versions()
    if json:
        print_json(found)
        return
    for each in found:
        rules = each["rules"]
        typer.echo(f"{each['version']}  {'none' if rules is None else _rules(rules['see'], rules['publish'])}")


def _rules(see: int, publish: int) -> str:
    return f"{see} rules about seeing, {publish} about publishing"


@policies.command("remove")
def remove(url: Url = DEFAULT_URL) -> None:
    """Remove the policy. From then on only the grants of tokens decide."""
    with open_client(url) as client:
        client.remove_policy()


@policies.command("explain")
def explain(
    name: Annotated[str, typer.Option("--as", help="Name of the client to explain the policy for.")] = "everyone",
    roles: Annotated[list[str] | None, typer.Option("--role", help="A role of the client; repeatable.")] = None,
    grants: Annotated[
        list[str] | None,
        typer.Option("--grant", help="A grant of the client, such as query:city-*; repeatable.", show_default="*"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="Explain this policy instead of the one in force.", exists=True, dir_okay=False),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show what a client may see and publish: by kind of resource, what is allowed and what of that is denied."""
    from triplewire.security import Principal, parse_policy

    principal = Principal.granted(name, grants or ["*"], roles or [])
    if file is None:
        with open_client(url) as client:
            text = client.policy()
    else:
        text = _read(file)
    explanation = _explain(principal, parse_policy(text))
    print_result(explanation, _explanation_table(explanation), json=json)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file} cannot be read: {error}") from None


def _explain(principal: Any, policy: Any) -> dict[str, Any]:  # noqa: ANN401 - imported when it is used
    """Return, by verb and kind of resource, the patterns that are allowed and denied."""
    from triplewire.security import Verb, Visibility, publish_permit_of, visibility_of
    from triplewire.security.visibility import RESOURCE_KINDS

    permit = publish_permit_of(principal, policy)
    scopes = {verb: visibility_of(principal, verb, policy) for verb in (Verb.QUERY, Verb.CONSUME, Verb.SUBSCRIBE)}
    scopes[Verb.PUBLISH] = None if permit is None else permit.scope
    return {
        str(verb): {kind: _patterns(getattr(scope or Visibility(), kind)) for kind in RESOURCE_KINDS}
        for verb, scope in scopes.items()
    }


def _patterns(scope: Any) -> dict[str, list[str]]:  # noqa: ANN401 - imported when it is used
    return {"allowed": list(scope.allowed), "denied": list(scope.denied)}


def _explanation_table(explanation: dict[str, Any]) -> Table:
    table = Table("", "", "allowed", "denied")
    for verb, kinds in explanation.items():
        for number, (kind, scope) in enumerate(kinds.items()):
            cells = ["\n".join(scope[name]) or "nothing" for name in ("allowed", "denied")]
            table.add_row("" if number else verb, kind, *cells, end_section=number + 1 == len(kinds))
    return table


def audit(
    last: Annotated[int, typer.Option("--last", help="Print at most this many records, the newest.", min=1)] = 100,
    who: Annotated[
        str | None,
        typer.Option("--who", help="Only one client: `token:ID`, `jwt:SUBJECT`, `local:USER`, `everyone` or `nobody`."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on, and print new records as they are written.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print the audit log of a data directory: who did what, and who was refused.

    It records administration, erasures, tokens, subscriptions and queries, but not publishing and consuming events.
    """
    from triplewire.security.audit import AuditLog

    log = AuditLog(load_settings(data).audit)
    for record in _follow_audit(log, last) if follow else list(log.read())[-last:]:
        if who in (None, record.get("who")):
            typer.echo(orjson.dumps(record).decode() if json else _audit_line(record))


def _follow_audit(log: AuditLog, last: int) -> Iterator[dict[str, Any]]:
    shown: set[str] = set()
    while True:
        records = list(log.read())
        fresh = [each for each in records if str(each) not in shown]
        yield from fresh[-last:] if not shown else fresh
        shown = {str(each) for each in records} or {""}
        time.sleep(POLL_SECONDS)


def _audit_line(record: dict[str, Any]) -> str:
    who, what, where = (record.get(name, "") for name in ("who", "what", "on"))
    rest = [str(record[name]) for name in ("status", "made", "why", "count") if name in record]
    address = f" from {record['from']}" if record.get("from") else ""
    return f"{record['at']}  {record['outcome']:8} {who} {what} {where}{address}  {' '.join(rest)}".rstrip()
