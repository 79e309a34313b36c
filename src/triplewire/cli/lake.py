"""`lake` and `zones`: statistics and maintenance of the lake, and its zone map as a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Branch

from triplewire.cli.common import (
    Data,
    Json,
    format_size,
    load_settings,
    print_json,
    print_result,
    progress_bar,
)

if TYPE_CHECKING:
    from triplewire.storage.lake.survey import LakeSurvey
    from triplewire.storage.lake.zones import TreeCut, ZoneTree

lakes = typer.Typer(
    help="The lake, a Delta table of everything that was ever published: statistics and maintenance.",
    epilog="A running broker maintains its lake by itself. Commands wait until a step of it is finished.",
    no_args_is_help=True,
)

ZONES_EXAMPLES = """
[bold]Examples[/bold]

The zone map of the lake in triplewire-data:

    triplewire zones

As a picture with the contents of each zone as tooltips:

    triplewire zones --svg zones.svg

The fullest zones, in a script:

    triplewire zones --json | jq '.zones | sort_by(-.quads)[:3]'
"""

STYLES = {"graph": "bright_black", "subject": "blue", "predicate": "red", "object": "green"}
_CELLS = 12
"""Length of the bar of the fullest zone."""


@lakes.command("status")
def status(data: Data = None, json: Json = False) -> None:
    """Show the size of the lake: quads, files, zones, versions."""
    from triplewire.service.pipeline import open_maintenance
    from triplewire.storage.lake.survey import lake_totals

    context = open_maintenance(load_settings(data).lake.absolute())
    files = context.lake.files()
    _print_counts({**lake_totals(files), "stored": files.position, "zones": len(context.zones(files).zones)}, json=json)


@lakes.command("compact")
def compact(data: Data = None, json: Json = False) -> None:
    """Sort fresh events into their zones, and merge small files."""
    from triplewire.storage.lake.maintenance import compact as compact_lake

    with _maintain(data, json=json) as context:
        before = len(context.lake.files().files)
        quads = compact_lake(context)
        _print_counts({"quads": quads, "files_before": before, "files": len(context.lake.files().files)}, json=json)


@lakes.command("balance")
def balance(
    rules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=VALUE]...",
            help="`strategy` static, absolute or relative; `zones` at most; `criteria` as quads:1.5:0.5,reads:4:0 with "
            "K1 and K2; `cut` middle, centroid or quantile; `dimensions` turn or best; `estimates`; `smallest`; "
            "`transformation` none, prefix or reversed. By default the setting TRIPLEWIRE_BALANCE.",
        ),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Split zones that are too full, and merge zones that are too empty."""
    from triplewire.model.clock import SystemClock
    from triplewire.storage.lake.balance import parse_balance
    from triplewire.storage.lake.read_counts import load_read_counts
    from triplewire.storage.lake.rebalancing import rebalance

    settings = parse_balance(rules or load_settings(data).balance)
    with _maintain(data, json=json) as context:
        reads = load_read_counts(context.table.with_name("reads"), SystemClock().now())
        result = rebalance(context, settings, reads, reorder=True)
        _print_counts({"steps": len(result.steps), "zones": len(result.after.zones)}, json=json)


@lakes.command("retain")
def retain(
    ages: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGE]...",
            help="Age at which events are dropped: `30d` in all streams, `home=12h` in one. By default the setting "
            "TRIPLEWIRE_RETENTION.",
        ),
    ] = None,
    size: Annotated[int, typer.Option("--bytes", help="Bytes of files to keep; the oldest events go first.")] = 0,
    data: Data = None,
    json: Json = False,
) -> None:
    """Drop events that are older than the retention time, or beyond the size limit."""
    from triplewire.storage.lake.retention import LakeRetention, apply_retention

    settings = load_settings(data)
    retention = LakeRetention.parsed(ages or settings.retention, size or settings.retention_bytes)
    with _maintain(data, json=json) as context:
        _print_counts({"quads": apply_retention(context, retention, datetime.now(UTC))}, json=json)


@lakes.command("vacuum")
def vacuum(
    hours: Annotated[
        int | None,
        typer.Option(
            help="Hours for which older versions stay readable.",
            show_default="TRIPLEWIRE_TIME_TRAVEL_HOURS",
        ),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Delete files that only old versions need, and write a checkpoint of the Delta log."""
    from triplewire.storage.lake.maintenance import checkpoint, hold_maintenance_lock
    from triplewire.storage.lake.maintenance import vacuum as vacuum_lake

    settings = load_settings(data)
    table, hours = settings.lake.absolute(), settings.time_travel_hours if hours is None else hours
    with hold_maintenance_lock(table, wait=True):
        files = vacuum_lake(table, hours)
        _print_counts({"files": len(files), "checkpoint": checkpoint(table, hours)}, json=json)


@lakes.command("versions")
def versions(
    limit: Annotated[int, typer.Option(help="List at most this many, the newest.")] = 20,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the versions that `query --version` and `query --as-of` can read."""
    from triplewire.storage.lake.delta import list_versions

    found = list_versions(load_settings(data).lake.absolute(), limit)
    table = Table("version", "committed", "what", box=None)
    for each in found:
        table.add_row(str(each.version), f"{each.at:%Y-%m-%d %H:%M:%S} UTC", each.work)
    document = [{"version": each.version, "at": each.at.isoformat(), "work": each.work} for each in found]
    print_result(document, table, json=json)


@contextmanager
def _maintain(data: Data, *, json: bool) -> Iterator[Any]:
    """Hold the lake for maintenance, with its progress on the terminal."""
    from triplewire.service.pipeline import maintain_lake

    with progress_bar(disable=json or not Console(stderr=True).is_terminal) as bar:
        task = bar.add_task("starting Spark", total=None)

        def show(progress: Any) -> None:  # noqa: ANN401 - a MaintenanceProgress, whose module is imported late
            bar.update(task, description=progress.work, completed=progress.done, total=progress.of or None)

        with maintain_lake(load_settings(data), show) as context:
            yield context


def _print_counts(counts: Mapping[str, object], *, json: bool) -> None:
    table = Table(box=None, show_header=False)
    for name, value in counts.items():
        table.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    print_result(counts, table, json=json)


def zones(
    data: Data = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Also draw the map into this file.", dir_okay=False, writable=True)
    ] = None,
    json: Json = False,
) -> None:
    """Draw the zone map: how the lake is partitioned, and what each zone holds.

    A zone is a box in the space of graph, subject, predicate and object. A query reads only the zones that its
    constants and ranges touch. Branches of the tree are cuts; each leaf shows a zone with its share, quads, bytes and
    files. The command reads the data directory: no broker needs to run.
    """
    from triplewire.service.wiring import survey_zones
    from triplewire.storage.lake import survey

    found = survey_zones(load_settings(data))
    if svg is not None:
        svg.write_text(survey.draw_svg(found))
    if json:
        print_json(survey.survey_document(found))
    else:
        Console().print(draw_zones(found))


def draw_zones(found: LakeSurvey) -> Group:
    """Draw the zone map for a terminal."""
    fresh = found.fresh
    head = f"{len(found.zones.zones):,} zones, {found.quads:,.0f} quads, version {found.version}"
    last = f"fresh, in no zone yet: {fresh.load.quads:,.0f} quads in {fresh.files:,} files"
    cost = [Text(found.zones.transformation.costs, "yellow")] if found.zones.order != "none" else []
    return Group(Text(head, "bold"), _branch(found, found.zones.tree), Text(last, "dim"), *cost)


def _branch(found: LakeSurvey, tree: ZoneTree) -> Branch:
    if isinstance(tree, str):
        return Branch(_leaf(found, tree))
    branch = Branch(_cut(found, tree), guide_style="dim")
    for each in (tree.low, tree.high):
        branch.children.append(_branch(found, each))
    return branch


def _cut(found: LakeSurvey, tree: TreeCut) -> Text:
    from triplewire.storage.lake.survey import format_bound
    from triplewire.storage.lake.zones import list_zones

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
    figures = f" {share:>5.1%} {held.load.quads:,.0f} quads, {format_size(held.load.bytes)}, {files}{reads}"
    return Text.assemble((zone, "bold"), " ", (bar, "yellow"), figures, no_wrap=True, overflow="ellipsis")
