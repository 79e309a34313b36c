"""Transfers: how far an export or an import is, on a terminal, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


@dataclass(frozen=True)
class Moving:
    """`done` of `total`, in whatever unit; and what has been moved."""

    done: int
    total: int
    events: int
    quads: int


@contextmanager
def moving(verb: str, name: str) -> Iterator[Callable[[Moving], None]]:
    """Shows, on standard error, what it is told: a bar on a terminal, and everywhere a line in the end."""
    console = Console(stderr=True, highlight=False)
    began, last = time.monotonic(), Moving(0, 0, 0, 0)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{verb} {name}", total=None)

        def show(now: Moving) -> None:
            nonlocal last
            last = now
            rate = now.events / max(time.monotonic() - began, 0.001)
            words = f"{verb} {name}: {now.events:,} events, {rate:,.0f}/s"
            progress.update(task, description=words, completed=now.done, total=max(now.total, 1))

        yield show
    seconds = time.monotonic() - began
    console.print(f"{name}: {last.events:,} events, {last.quads:,} quads in {seconds:.1f} s", soft_wrap=True)
