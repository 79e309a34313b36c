"""`zones`: the lake's zone map, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console, Group
from rich.text import Text
from rich.tree import Tree as Branch

from triplewire.cli.documents import print_json
from triplewire.cli.options import Data, Json, settings_of
from triplewire.storage.lake.survey import LakeSurvey, format_bound, survey_document
from triplewire.storage.lake.zones import TreeCut, ZoneTree, list_zones

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


def add_to(app: typer.Typer) -> None:
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
    from triplewire.compose.zones import surveyed
    from triplewire.storage.lake import survey

    found = surveyed(settings_of(data))
    if svg is not None:
        svg.write_text(survey.draw_svg(found))
    if json:
        print_json(survey_document(found))
    else:
        Console().print(drawn(found))


def drawn(found: LakeSurvey) -> Group:
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
