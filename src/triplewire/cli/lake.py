"""`lake`: what the lake looks like, and its housekeeping by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from triplewire.cli.documents import print_json
from triplewire.cli.options import Data, Json, settings_of

lakes = typer.Typer(
    help="The table of everything that was ever published: see it, and keep it in order by hand.",
    epilog="A running broker does all of this by itself. A command waits for the other to finish its step.",
    no_args_is_help=True,
)


def add_to(app: typer.Typer) -> None:
    app.add_typer(lakes, name="lake")


@lakes.command("status")
def status(data: Data = None, json: Json = False) -> None:
    """Tell how large the lake is: quads, files, zones, versions."""
    from triplewire.compose.house import lake_house
    from triplewire.storage.lake.survey import lake_totals

    house = lake_house(settings_of(data).lake.absolute())
    found = house.lake.files()
    _tell({**lake_totals(found), "stored": found.upto, "zones": len(house.zones(found).zones)}, json=json)


@lakes.command("compact")
def compact(data: Data = None, json: Json = False) -> None:
    """Sort what is fresh into its zones, and make few files of many small ones."""
    from triplewire.storage.lake.maintenance import compact as work

    with _house(data, json=json) as house:
        before = len(house.lake.files().files)
        moved = work(house)
        _tell({"quads": moved, "files_before": before, "files": len(house.lake.files().files)}, json=json)


@lakes.command("balance")
def balance(
    rules: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads the annotation
        typer.Argument(
            metavar="[NAME=VALUE]...",
            help="`strategy` static, absolute or relative; `zones` at most; `criteria` as quads:1.5:0.5,reads:4:0 with "
            "K1 and K2; `cut` middle, centroid or quantile; `dimensions` turn or best; `estimates`; `smallest`; "
            "`transformation` none, prefix or reversed.",
        ),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Split zones that hold too much and merge those that hold too little."""
    from triplewire.model.clock import SystemClock
    from triplewire.storage.lake.balance import parse_balance
    from triplewire.storage.lake.read_counts import load_read_counts
    from triplewire.storage.lake.rebalancing import rebalance as work

    settings = parse_balance(rules or settings_of(data).balance)
    with _house(data, json=json) as house:
        read = load_read_counts(house.table.with_name("reads"), SystemClock().now())
        made = work(house, settings, read, reorder=True)
        _tell({"steps": len(made.steps), "zones": len(made.after.zones)}, json=json)


@lakes.command("retain")
def retain(
    ages: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads the annotation
        typer.Argument(metavar="[AGE]...", help="`30d` for all streams, `home=12h` for one. As the settings say."),
    ] = None,
    size: Annotated[int, typer.Option("--bytes", help="Bytes of files to keep; the oldest events go first.")] = 0,
    data: Data = None,
    json: Json = False,
) -> None:
    """Let go of events that are too old, or too many."""
    from triplewire.storage.lake.retention import LakeRetention
    from triplewire.storage.lake.retention import apply_retention as work

    settings = settings_of(data)
    retention = LakeRetention.parsed(ages or settings.keep, size or settings.keep_bytes)
    with _house(data, json=json) as house:
        _tell({"quads": work(house, retention, datetime.now(UTC))}, json=json)


@lakes.command("vacuum")
def vacuum(
    hours: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="For how long older versions must stay readable.", show_default="as the settings say"),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Delete files that only old versions need, and write down the table's log."""
    from triplewire.storage.lake.maintenance import checkpoint, hold_maintenance_lock
    from triplewire.storage.lake.maintenance import vacuum as work

    settings = settings_of(data)
    kept = settings.travel_hours if hours is None else hours
    with hold_maintenance_lock(settings.lake.absolute(), wait=True):
        gone = work(settings.lake.absolute(), kept)
        _tell({"files": len(gone), "checkpoint": checkpoint(settings.lake.absolute(), kept)}, json=json)


@lakes.command("versions")
def versions(
    limit: Annotated[int, typer.Option(help="The newest of them.")] = 20, data: Data = None, json: Json = False
) -> None:
    """Tell which versions can be asked for with `--version` or `--as-of`."""
    from triplewire.storage.lake.delta import list_versions as listed

    found = listed(settings_of(data).lake.absolute(), limit)
    if json:
        print_json([{"version": each.version, "at": each.at.isoformat(), "work": each.work} for each in found])
        return
    table = Table("version", "committed", "what", box=None)
    for each in found:
        table.add_row(str(each.version), f"{each.at:%Y-%m-%d %H:%M:%S} UTC", each.work)
    Console().print(table)


@contextmanager
def _house(data: Data, *, json: bool) -> Iterator[Any]:
    """The house, and its progress on the terminal."""
    from triplewire.compose.house import keeping_house

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    shown = Progress(*columns, console=console, transient=True, disable=json or not console.is_terminal)
    with shown, keeping_house(settings_of(data), _shower(shown)) as house:
        yield house


def _shower(shown: Progress) -> Callable[[Any], None]:
    task = shown.add_task("starting Spark", total=None)

    def show(progress: Any) -> None:  # noqa: ANN401 - a Progress of ours; its module is imported late
        shown.update(task, description=progress.work, completed=progress.done, total=progress.of or None)

    return show


def _tell(found: Mapping[str, object], *, json: bool) -> None:
    if json:
        print_json(found)
        return
    table = Table(box=None, show_header=False)
    for name, value in found.items():
        table.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    Console().print(table)
