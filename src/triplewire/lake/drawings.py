"""Drawings: a zone map as a picture.

Every zone is a rectangle as large as its share of the quads; the lines between them are cuts, coloured by dimension."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from triplewire.lake.surveys import Survey, readable, words
from triplewire.lake.tilings import Cut, Tree, leaves_of

COLOURS: Mapping[str, str] = {"graph": "#8b949e", "subject": "#1f6feb", "predicate": "#cf222e", "object": "#1a7f37"}
"""Of cuts, by dimension."""

WIDTH, HEIGHT, TOP = 960, 600, 64
_NARROW, _LOW = 46, 15
"""What a rectangle must measure for its name to fit."""


@dataclass(frozen=True)
class Area:
    """A rectangle of the picture."""

    x: float
    y: float
    width: float
    height: float

    def parted(self, share: float) -> tuple[Area, Area]:
        """Across its longer side."""
        if self.width >= self.height:
            low = self.width * share
            return Area(self.x, self.y, low, self.height), Area(self.x + low, self.y, self.width - low, self.height)
        low = self.height * share
        return Area(self.x, self.y, self.width, low), Area(self.x, self.y + low, self.width, self.height - low)


def svg(found: Survey) -> str:
    """The picture, complete. A zone without quads is drawn as if it had a few."""
    weights = {zone: max(held.load.quads, found.quads / 2_000, 1.0) for zone, held in found.holdings.items()}
    body = [*_drawn(found, found.zones.tree, Area(0, TOP, WIDTH, HEIGHT - TOP), weights)]
    # Lines over rectangles, those of later cuts under those of earlier ones.
    rectangles = [part for kind, part in body if kind == "zone"]
    lines = [part for kind, part in reversed(body) if kind == "cut"]
    opened = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    )
    return "\n".join([opened, *_legend(found), *rectangles, *lines, "</svg>\n"])


def _drawn(
    found: Survey, tree: Tree, area: Area, weights: Mapping[str, float], depth: int = 0
) -> Iterator[tuple[str, str]]:
    if not isinstance(tree, Cut):
        yield "zone", _zone(found, tree, area)
        return
    low, high = (sum(weights[zone] for zone in leaves_of(each)) for each in (tree.low, tree.high))
    first, second = area.parted(low / (low + high))
    yield "cut", _line(tree, second, area, depth)
    yield from _drawn(found, tree.low, first, weights, depth + 1)
    yield from _drawn(found, tree.high, second, weights, depth + 1)


def _zone(found: Survey, zone: str, area: Area) -> str:
    held, mean = found.holdings[zone], 1 / len(found.zones.zones)
    ratio = found.share(zone) / mean
    figures = f"{held.load.quads:,.0f} quads, {held.load.bytes:,.0f} bytes, {held.files} files"
    title = f"{zone}: {figures}, {ratio:.2f} times the mean"
    named = area.width >= _NARROW and area.height >= _LOW
    at = f'x="{area.x + 4:.1f}" y="{area.y + 12:.1f}" font-size="10" fill="#1f2328"'
    label = f"<text {at}>{escape(zone)} {ratio:.2f}×</text>" if named else ""
    return (
        f'<g><title>{escape(title)}\n{escape(words(found.zones[zone]))}</title><rect x="{area.x:.1f}" y="{area.y:.1f}" '
        f'width="{area.width:.1f}" height="{area.height:.1f}" fill="{_shade(ratio)}"/>{label}</g>'
    )


def _shade(ratio: float) -> str:
    """Pale at the mean, darker above it, white far below."""
    return f"hsl(36, 90%, {98 - 18 * min(ratio, 3.0):.0f}%)"


def _line(cut: Cut, second: Area, area: Area, depth: int) -> str:
    end = (second.x, area.y + area.height) if second.x > area.x else (area.x + area.width, second.y)
    title = f"{cut.dimension} < {readable(cut.bound, 120)}"
    return (
        f'<line x1="{second.x:.1f}" y1="{second.y:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
        f'stroke="{COLOURS[cut.dimension]}" stroke-width="{max(1.0, 5 - depth * 0.7):.1f}">'
        f"<title>{escape(title)}</title></line>"
    )


def _legend(found: Survey) -> Iterator[str]:
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
