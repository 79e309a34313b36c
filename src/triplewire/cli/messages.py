"""Messages: what is printed of events, notifications and answers as they come."""

from __future__ import annotations

import sys
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape

from triplewire.model.events import parse_payload

_RESULTS = "application/sparql-results+json"


def show(console: Console, message: dict[str, Any], json: bool) -> None:
    if json:
        write(message)
    else:
        console.print(lines(message), soft_wrap=True, highlight=False)


def write(message: dict[str, Any]) -> None:
    """One line of JSON, at once, for whoever reads along."""
    sys.stdout.write(orjson.dumps(message).decode() + "\n")
    sys.stdout.flush()


def lines(message: dict[str, Any]) -> str:
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
