"""`lake` and `zones`: statistics and maintenance of the lake, and its zone map as a drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console, Group
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Branch

from triplewire.cli.common import Data, Json, load_settings, print_json
from triplewire.storage.lake.survey import LakeSurvey, format_bound, survey_document
from triplewire.storage.lake.zones import TreeCut, ZoneTree, list_zones

lakes = typer.Typer(
    help="The table of everything that was ever published: see it, and keep it in order by hand.",
    epilog="A running broker does all of this by itself. A command waits for the other to finish its step.",
    no_args_is_help=True,
)


def add_lake_commands(app: typer.Typer) -> None:
    app.add_typer(lakes, name="lake")


@lakes.command("status")
def status(data: Data = None, json: Json = False) -> None:
    """Tell how large the lake is: quads, files, zones, versions."""
    from triplewire.service.pipeline import open_maintenance
    from triplewire.storage.lake.survey import lake_totals

    house = open_maintenance(load_settings(data).lake.absolute())
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

    settings = parse_balance(rules or load_settings(data).balance)
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

    settings = load_settings(data)
    retention = LakeRetention.parsed(ages or settings.retention, size or settings.retention_bytes)
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

    settings = load_settings(data)
    kept = settings.time_travel_hours if hours is None else hours
    with hold_maintenance_lock(settings.lake.absolute(), wait=True):
        gone = work(settings.lake.absolute(), kept)
        _tell({"files": len(gone), "checkpoint": checkpoint(settings.lake.absolute(), kept)}, json=json)


@lakes.command("versions")
def versions(
    limit: Annotated[int, typer.Option(help="The newest of them.")] = 20, data: Data = None, json: Json = False
) -> None:
    """Tell which versions can be asked for with `--version` or `--as-of`."""
    from triplewire.storage.lake.delta import list_versions as listed

    found = listed(load_settings(data).lake.absolute(), limit)
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
    from triplewire.service.pipeline import maintain_lake

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    shown = Progress(*columns, console=console, transient=True, disable=json or not console.is_terminal)
    with shown, maintain_lake(load_settings(data), _shower(shown)) as house:
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


# `zones`: the lake's zone map, drawn.

EXAMPLES = """
[bold]Examples[/bold]

The map of the lake in triplewire-data:

    triplewire zones

As a picture, in which the pointer tells what each zone holds:

    triplewire zones --svg zones.svg

The fullest zones, in a script:

    triplewire zones --json | jq '.zones | sort_by(-.quads)[:3]'
"""

STYLES = {"graph": "bright_black", "subject": "blue", "predicate": "red", "object": "green"}
_CELLS = 12
"""Length of the bar of the fullest zone."""


def add_zones_command(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(zones)


def zones(
    data: Data = None,
    svg: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--svg", help="Draw the map into this file, too.", dir_okay=False, writable=True),
    ] = None,
    json: Json = False,
) -> None:
    """Draw the zone map: where the lake was cut, and what lies in each part.

    Zones are boxes in the space of graph, subject, predicate and object, in which a number lies as a number and a time
    as a time. A query reads only the zones that its constants and ranges touch. Branches are cuts; at each leaf stand
    the zone, its quads, their share, bytes and files. It reads the lake itself: no broker needs to run.
    """
    from triplewire.service.wiring import survey_zones
    from triplewire.storage.lake import survey

    found = survey_zones(load_settings(data))
    if svg is not None:
        svg.write_text(survey.draw_svg(found))
    if json:
        print_json(survey_document(found))
    else:
        Console().print(draw_zones(found))


def draw_zones(found: LakeSurvey) -> Group:
    """The map for a terminal."""
    fresh = found.fresh
    said = f"{len(found.zones.zones):,} zones, {found.quads:,.0f} quads, version {found.version}"
    last = f"fresh, in no zone yet: {fresh.load.quads:,.0f} quads in {fresh.files:,} files"
    return Group(Text(said, "bold"), _branch(found, found.zones.tree), Text(last, "dim"), *_order(found))


def _order(found: LakeSurvey) -> list[Text]:
    """What another order than that of terms costs."""
    return [Text(found.zones.transformation.costs, "yellow")] if found.zones.order != "none" else []


def _branch(found: LakeSurvey, tree: ZoneTree) -> Branch:
    if not isinstance(tree, TreeCut):
        return Branch(_leaf(found, tree))
    branch = Branch(_cut(found, tree), guide_style="dim")
    for each in (tree.low, tree.high):
        branch.children.append(_branch(found, each))
    return branch


def _cut(found: LakeSurvey, tree: TreeCut) -> Text:
    share = sum(found.share(zone) for zone in {*list_zones(tree)})
    return Text.assemble(
        (tree.dimension, STYLES[tree.dimension]), f" │ {format_bound(tree.bound)} ", (f"{share:.1%}", "dim")
    )


def _leaf(found: LakeSurvey, zone: str) -> Text:
    held, share = found.holdings[zone], found.share(zone)
    fullest = max(found.share(each) for each in found.holdings)
    bar = "█" * round(_CELLS * share / fullest) if fullest else ""
    reads = f", {held.load.reads:,.0f} reads" if held.load.reads else ""
    files = "1 file" if held.files == 1 else f"{held.files:,} files"
    figures = f" {share:>5.1%} {held.load.quads:,.0f} quads, {_size(held.load.bytes)}, {files}{reads}"
    return Text.assemble((zone, "bold"), " ", (bar, "yellow"), figures, no_wrap=True, overflow="ellipsis")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000 or unit == "GB":
            break
        count /= 1_000
    return f"{count:.3g} {unit}"
