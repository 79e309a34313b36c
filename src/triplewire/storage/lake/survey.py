"""A survey lists the contents and load of each zone, as JSON, as text, and as an SVG treemap.

In the picture every zone is a rectangle as large as its share of the quads; lines between them are cuts, coloured by
dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

from triplewire.storage.lake.balance import ZoneLoad
from triplewire.storage.lake.keys import DIMENSIONS, NUMBER, TIME, bound_ordinal, double_at, micros_at
from triplewire.storage.lake.maintenance import count_quads, fresh_files, group_by_zone
from triplewire.storage.lake.ports import DataFile, Snapshot
from triplewire.storage.lake.zones import KeyInterval, TreeCut, Zone, ZoneLayout, ZoneTree, list_zones

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ZoneContents:
    """The number of files, and their load."""

    files: int
    load: ZoneLoad


@dataclass(frozen=True)
class LakeSurvey:
    """A zone map with what lies in its zones. `fresh` is what lies in none yet."""

    zones: ZoneLayout
    holdings: Mapping[str, ZoneContents]
    fresh: ZoneContents
    version: int = -1
    """The version of the table."""

    @property
    def quads(self) -> float:
        """In zones."""
        return sum(each.load.quads for each in self.holdings.values())

    def share(self, zone: str) -> float:
        """Quads in zones."""
        return self.holdings[zone].load.quads / self.quads if self.quads else 0.0


def survey_lake(snapshot: Snapshot, zones: ZoneLayout, reads: Mapping[str, float] | None = None) -> LakeSurvey:
    """Survey a snapshot, with the reads of each zone if they are known."""
    held, read = group_by_zone(snapshot), reads or {}
    found = {zone.id: _zone_contents(held.get(zone.id, ()), read.get(zone.id, 0.0)) for zone in zones.zones}
    return LakeSurvey(zones, found, _zone_contents(fresh_files(snapshot)), snapshot.version)


def measure_load(files: Sequence[DataFile], reads: float = 0.0) -> ZoneLoad:
    return ZoneLoad(count_quads(files), sum(each.size for each in files), reads)


def lake_totals(snapshot: Snapshot) -> dict[str, int]:
    """The whole lake in a few numbers."""
    return {
        "version": snapshot.version,
        "files": len(snapshot.files),
        "fresh": len(fresh_files(snapshot)),
        "bytes": snapshot.size,
        "quads": count_quads(snapshot.files),
    }


def _zone_contents(files: Sequence[DataFile], reads: float = 0.0) -> ZoneContents:
    return ZoneContents(len(files), measure_load(files, reads))


def survey_document(found: LakeSurvey) -> dict[str, Any]:
    """As JSON. Bounds are keys, and in the words of `words`."""
    return {
        "version": found.version,
        "order": found.zones.order,
        "costs": found.zones.transformation.costs,
        "quads": found.quads,
        "fresh": _figures(found.fresh),
        "zones": [
            {
                "zone": zone.id,
                **_figures(found.holdings[zone.id]),
                "share": round(found.share(zone.id), 6),
                "box": {name: _side(zone.box.side(name)) for name in DIMENSIONS},
                "words": describe_zone(zone),
            }
            for zone in found.zones.zones
        ],
    }


def _figures(held: ZoneContents) -> dict[str, Any]:
    return {"files": held.files, "quads": held.load.quads, "bytes": held.load.bytes, "reads": held.load.reads}


def _side(side: KeyInterval) -> dict[str, str | None]:
    return {"least": side.least or None, "below": side.below}


def describe_zone(zone: Zone) -> str:
    """The sides of a zone that have bounds, for people."""
    sides = [(name, zone.box.side(name)) for name in DIMENSIONS]
    said = [_describe_side(name, side) for name, side in sides if side != KeyInterval()]
    return ", ".join(said) or "everything"


def _describe_side(name: str, side: KeyInterval) -> str:
    low = f"{format_bound(side.least)} ≤ " if side.least else ""
    return f"{low}{name}" + (f" < {format_bound(side.below)}" if side.below is not None else "")


def format_bound(bound: str, most: int = 44) -> str:
    """A bound for people: a number and a time as such, a text with its middle left out where it is long."""
    if bound[:1] in (NUMBER, TIME) and len(bound) > 1:
        ordinal, _ = bound_ordinal(bound)
        return f"{double_at(ordinal):g}" if bound[0] == NUMBER else _format_time(micros_at(ordinal))
    plain = "".join(each if each.isprintable() else f"U+{ord(each):04X}" for each in bound)
    return plain if len(plain) <= most else f"{plain[: most // 4]}…{plain[-(most - most // 4 - 1) :]}"


def _format_time(micros: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{micros} µs"


COLOURS: Mapping[str, str] = {"graph": "#8b949e", "subject": "#1f6feb", "predicate": "#cf222e", "object": "#1a7f37"}
"""Colors of cuts, by dimension."""

WIDTH, HEIGHT, TOP = 960, 600, 64
_NARROW, _LOW = 46, 15
"""The least width of a rectangle that shows its name."""


@dataclass(frozen=True)
class Rectangle:
    """A rectangle of the picture."""

    x: float
    y: float
    width: float
    height: float

    def parted(self, share: float) -> tuple[Rectangle, Rectangle]:
        """Across its longer side."""
        if self.width >= self.height:
            low = self.width * share
            return Rectangle(self.x, self.y, low, self.height), Rectangle(
                self.x + low, self.y, self.width - low, self.height
            )
        low = self.height * share
        return Rectangle(self.x, self.y, self.width, low), Rectangle(
            self.x, self.y + low, self.width, self.height - low
        )


def draw_svg(found: LakeSurvey) -> str:
    """The picture, complete. A zone without quads is drawn as if it had a few."""
    weights = {zone: max(held.load.quads, found.quads / 2_000, 1.0) for zone, held in found.holdings.items()}
    body = [*_draw_tree(found, found.zones.tree, Rectangle(0, TOP, WIDTH, HEIGHT - TOP), weights)]
    # Lines over rectangles, those of later cuts under those of earlier ones.
    rectangles = [part for kind, part in body if kind == "zone"]
    lines = [part for kind, part in reversed(body) if kind == "cut"]
    opened = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    )
    return "\n".join([opened, *_draw_legend(found), *rectangles, *lines, "</svg>\n"])


def _draw_tree(
    found: LakeSurvey, tree: ZoneTree, area: Rectangle, weights: Mapping[str, float], depth: int = 0
) -> Iterator[tuple[str, str]]:
    if not isinstance(tree, TreeCut):
        yield "zone", _draw_zone(found, tree, area)
        return
    low, high = (sum(weights[zone] for zone in list_zones(each)) for each in (tree.low, tree.high))
    first, second = area.parted(low / (low + high))
    yield "cut", _draw_cut(tree, second, area, depth)
    yield from _draw_tree(found, tree.low, first, weights, depth + 1)
    yield from _draw_tree(found, tree.high, second, weights, depth + 1)


def _draw_zone(found: LakeSurvey, zone: str, area: Rectangle) -> str:
    held, mean = found.holdings[zone], 1 / len(found.zones.zones)
    ratio = found.share(zone) / mean
    figures = f"{held.load.quads:,.0f} quads, {held.load.bytes:,.0f} bytes, {held.files} files"
    title = f"{zone}: {figures}, {ratio:.2f} times the mean"
    named = area.width >= _NARROW and area.height >= _LOW
    at = f'x="{area.x + 4:.1f}" y="{area.y + 12:.1f}" font-size="10" fill="#1f2328"'
    label = f"<text {at}>{escape(zone)} {ratio:.2f}×</text>" if named else ""
    return (
        f"<g><title>{escape(title)}\n{escape(describe_zone(found.zones[zone]))}</title>"
        f'<rect x="{area.x:.1f}" y="{area.y:.1f}" '
        f'width="{area.width:.1f}" height="{area.height:.1f}" fill="{_shade(ratio)}"/>{label}</g>'
    )


def _shade(ratio: float) -> str:
    """Pale at the mean, darker above it, white far below."""
    return f"hsl(36, 90%, {98 - 18 * min(ratio, 3.0):.0f}%)"


def _draw_cut(cut: TreeCut, second: Rectangle, area: Rectangle, depth: int) -> str:
    end = (second.x, area.y + area.height) if second.x > area.x else (area.x + area.width, second.y)
    title = f"{cut.dimension} < {format_bound(cut.bound, 120)}"
    return (
        f'<line x1="{second.x:.1f}" y1="{second.y:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
        f'stroke="{COLOURS[cut.dimension]}" stroke-width="{max(1.0, 5 - depth * 0.7):.1f}">'
        f"<title>{escape(title)}</title></line>"
    )


def _draw_legend(found: LakeSurvey) -> Iterator[str]:
    fresh = f"fresh, in no zone yet: {found.fresh.load.quads:,.0f}"
    said = f"{len(found.zones.zones)} zones, {found.quads:,.0f} quads; {fresh}"
    yield f'<text x="8" y="22" font-size="15" fill="#1f2328">{escape(said)}</text>'
    yield '<text x="8" y="46" font-size="11" fill="#57606a">cut by</text>'
    for number, (name, colour) in enumerate(COLOURS.items()):
        x = 52 + number * 92
        yield f'<line x1="{x}" y1="42" x2="{x + 18}" y2="42" stroke="{colour}" stroke-width="4"/>'
        yield f'<text x="{x + 23}" y="46" font-size="11" fill="#1f2328">{name}</text>'
    meant = "area: share of quads; ×: times the mean of zones, the darker the more"
    yield f'<text x="440" y="46" font-size="11" fill="#57606a">{meant}</text>'
