"""`bench`: measure the real processes over real sockets."""

from __future__ import annotations

from typing import Annotated, Any

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


def _table(report: dict[str, Any]) -> Table:
    from triplewire.bench.report import flat

    table = Table("measure", "value", title="pipeline")
    for name, value in flat(report):
        table.add_row(name, f"{value:,}" if isinstance(value, int | float) else str(value))
    return table
