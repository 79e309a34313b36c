"""Reports of benchmarks: how they are told while they are made, and at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from triplewire.cli.common import print_json


def say(text: str) -> None:
    """What is going on, for those who wait."""
    Console(stderr=True).print(f"[dim]… {text}[/dim]")


def tell(
    report: dict[str, Any],
    shown: Callable[[], Sequence[RenderableType]],
    *,
    json: bool,
    plot: Path | None = None,
    svg: Callable[[dict[str, Any]], str] | None = None,
) -> None:
    """A report as a program or a person reads it, and as a picture where one is wished for."""
    if plot is not None and svg is not None:
        plot.write_text(svg(report))
    if json:
        print_json(report)
    else:
        Console().print(*shown())
