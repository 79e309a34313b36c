"""`audit`: who did what, and who was refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from triplewire.cli.options import Data, Json, settings_of

if TYPE_CHECKING:
    from triplewire.security.audit import AuditLog


_LOOK_SECONDS = 0.5


def add_to(app: typer.Typer) -> None:
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
    from triplewire.config import limits
    from triplewire.security.audit import AuditLog

    audits = AuditLog(settings_of(data).audit, limits.AUDIT_BYTES, limits.AUDIT_VOLUMES)
    for record in _followed(audits, last) if follow else list(audits.read())[-last:]:
        if who in (None, record.get("who")):
            typer.echo(_line(record, json=json))


def _followed(audits: AuditLog, last: int) -> Iterator[dict[str, Any]]:
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
