"""`bench`: measure the real processes over real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.options import Json


def add_to(app: typer.Typer) -> None:
    app.add_typer(benches, name="bench")


benches = typer.Typer(help="Measure Triplewire on this machine: real processes, real sockets.", no_args_is_help=True)


@benches.callback()
def _group() -> None:
    """Measure Triplewire on this machine: real processes, real sockets."""


@benches.command()
def pipeline(
    events: Annotated[int, typer.Option(help="Events of five quads to publish in batches.", min=1_000)] = 50_000,
    subscriptions: Annotated[int, typer.Option(help="Subscriptions, of ten shapes.", min=1)] = 1_000,
    soak: Annotated[float, typer.Option(help="Seconds to go on at half the top rate.", min=0)] = 0.0,
    json: Json = False,
) -> None:
    """The whole path: publish, log, match, deliver, and store."""
    import orjson

    from triplewire.bench.pipeline import Plan, run

    progress = Console(stderr=True)
    report = run(Plan(events, subscriptions, soak), lambda text: progress.print(f"[dim]… {text}[/dim]"))
    console = Console()
    if json:
        console.print_json(orjson.dumps(report).decode())
    else:
        console.print(_table(report))


@benches.command()
def sparql(
    quads: Annotated[int, typer.Option(help="Quads to publish, five in an event.", min=1_000)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="How often each query is timed.", min=1)] = 7,
    skip_spark: Annotated[bool, typer.Option("--skip-spark", help="Ask DuckDB alone.")] = False,
    plot: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--plot", help="Draw the times into this SVG file.", dir_okay=False, writable=True),
    ] = None,
    json: Json = False,
) -> None:
    """SPARQL over history: ten queries, beside pyoxigraph with the same data in the same run."""
    import orjson

    from triplewire.bench.sparql import Plan, run
    from triplewire.bench.sparql_plot import svg
    from triplewire.cli.figures import figures

    progress = Console(stderr=True)
    report = run(Plan(quads, runs, not skip_spark), lambda text: progress.print(f"[dim]… {text}[/dim]"))
    if plot is not None:
        plot.write_text(svg(report))
    console = Console()
    if json:
        console.print_json(orjson.dumps(report).decode())
    else:
        console.print(figures(report))


def _table(report: dict[str, Any]) -> Table:
    from triplewire.bench.report import flat

    table = Table("measure", "value", title="pipeline")
    for name, value in flat(report):
        table.add_row(name, f"{value:,}" if isinstance(value, int | float) else str(value))
    return table
