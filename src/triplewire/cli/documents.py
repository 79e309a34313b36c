"""Documents: what a command prints for programs."""

from __future__ import annotations

from rich.console import Console


def print_json(value: object) -> None:
    import orjson

    Console().print_json(orjson.dumps(value).decode())
