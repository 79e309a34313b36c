"""Reports of benchmarks: progress while they run, then JSON for programs or tables for people, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from bench.harness import Aim, Report, flatten
from triplewire.cli.common import print_json


def say(text: str) -> None:
    """Print progress on standard error."""
    Console(stderr=True).print(f"[dim]… {text}[/dim]")


def show(
    report: Report,
    tables: str | Callable[[Report], Sequence[RenderableType]],
    *,
    json: bool,
    plot: Path | None = None,
    draw: Callable[[Report], str] | None = None,
) -> None:
    """Print a report: as JSON, or as tables, or if these are only a title, as one table of all figures. Draw it into a
    file if one is given."""
    if plot is not None and draw is not None:
        plot.write_text(draw(report))
    if json:
        print_json(report)
    else:
        Console().print(*([list_figures(report, tables)] if isinstance(tables, str) else tables(report)))


def make_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[RenderableType]], left: int = 1) -> Table:
    """Return a table whose columns are numbers, but for the first `left` of them."""
    table = Table(title=title)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < left else "right")
    for row in rows:
        table.add_row(*row)
    return table


def list_rows(title: str, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]], left: int = 1) -> Table:
    """Return a table of some figures of each row; `columns` maps their names to headings."""
    return make_table(title, [*columns.values()], ([format_value(row[name]) for name in columns] for row in rows), left)


def list_figures(report: Mapping[str, Any], title: str) -> Table:
    """Return every figure of a report as a row."""
    return make_table(title, ("measure", "value"), ((name, format_value(value)) for name, value in flatten(report)), 2)


def list_aims(report: Mapping[str, Any], aims: Iterable[Aim]) -> Table:
    rows = []
    for aim in aims:
        colour = "green" if aim.is_met(report) else "yellow"
        rows.append((aim.title, f"[{colour}]{aim.read(report):,g}{aim.unit}[/{colour}]", aim.describe()))
    return make_table("aims", ("measure", "reached", "aim"), rows, 3)


def format_value(value: object) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)
