"""The plotter: pictures of reports as SVG, made of bars and of panels with lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

INK, GREY, RULE = "#1f2328", "#57606a", "#d0d7de"
BLUE, PALE, SILVER, ORANGE, GREEN, RED = "#1f6feb", "#a5c8ff", "#8b949e", "#e8833a", "#2da44e", "#cf222e"
BAR, BAR_STEP = 14, 20
"""Height of a bar, and from one to the next, in pixels."""

_DOTTED = 20
"""Points of a line, up to which each of them is marked."""

Points = Sequence[tuple[float, float]]


def draw_sheet(width: int, height: int, parts: Iterable[str]) -> str:
    """Return a whole SVG file: parts on a white sheet."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">'
    return "\n".join([head, draw_rect(0, 0, width, height, "#ffffff"), *parts, "</svg>\n"])


def draw_text(x: float, y: float, words: str, anchor: str = "start", colour: str = INK, size: int = 11) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(words)}</text>'


def draw_rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}"/>'


def draw_line(x1: float, y1: float, x2: float, y2: float, colour: str = RULE, style: str = "") -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"{style}/>'


def draw_titles(title: str, below: str) -> list[str]:
    return [draw_text(10, 20, title, size=14), draw_text(10, 38, below, colour=GREY)]


@dataclass(frozen=True)
class Bar:
    """A bar with its label on the left, its length as a share of the width, and its figure on the right."""

    label: str
    share: float
    colour: str
    figure: str


def draw_bars(bars: Sequence[Bar], left: int, top: int, width: int, step: int = BAR_STEP) -> Iterator[str]:
    for number, bar in enumerate(bars):
        y, length = top + number * step, round(width * bar.share, 1)
        yield draw_text(left - 8, y + BAR - 3, bar.label, "end")
        yield draw_rect(left, y, length, BAR, bar.colour)
        yield draw_text(left + length + 5, y + BAR - 3, bar.figure, colour=GREY)


@dataclass(frozen=True)
class Panel:
    """A measure over another, a line for each series from zero on; and marks, drawn as crosses."""

    title: str
    across: str
    lines: Mapping[str, Points]
    marks: Points = ()

    def draw(self, left: int, top: int, width: int, height: int) -> Iterator[str]:
        every = [point for line in (*self.lines.values(), self.marks) for point in line]
        widest = max((x for x, _ in every), default=0.0) or 1.0
        most = max((y for _, y in every), default=0.0) or 1.0

        def scale(points: Points) -> Points:
            return [(round(left + width * x / widest, 1), round(top + height * (1 - y / most), 1)) for x, y in points]

        yield draw_text(left, top - 8, self.title, size=12)
        for share in (0.0, 0.5, 1.0):
            y = top + height * (1 - share)
            yield draw_line(left, y, left + width, y)
            yield draw_text(left - 6, y + 4, f"{most * share:,.4g}", "end", GREY)
        yield draw_text(left, top + height + 16, "0", colour=GREY)
        yield draw_text(left + width, top + height + 16, f"{widest:,g} {self.across}", "end", GREY)
        for number, (name, line) in enumerate(self.lines.items()):
            colour, points = (BLUE, ORANGE, GREEN, SILVER)[number % 4], scale(line)
            corners = " ".join(f"{x},{y}" for x, y in points)
            yield f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            for x, y in points if len(points) <= _DOTTED else ():
                yield f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>'
            yield draw_text(left + 8 + 130 * number, top + height + 32, name, colour=colour)
        yield from (draw_text(x, y + 5, "×", "middle", RED, 16) for x, y in scale(self.marks))
