"""The picture of `bench ztreamy`: CPU and delays over clients, rates and buffer windows, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triplewire.bench.drawings import opened, text

_LEFT, _TOP, _WIDTH, _HIGH, _GAP, _BESIDE = 64, 64, 300, 130, 74, 90
_COLOURS = ("#1f6feb", "#e8833a", "#2da44e")
_PAPER = "#cf222e"
_INK, _GREY, _RULE = "#1f2328", "#57606a", "#d0d7de"

Line = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """A measure over another, a line for each series; and where the paper says something, a cross."""

    title: str
    across: str
    lines: Mapping[str, Line]
    said: Line = ()


def svg(report: Mapping[str, Any]) -> str:
    """The picture of a report, complete: a row for each of the figures, CPU on the left and delays on the right."""
    panels = list(_panels(report))
    rows = len(panels) // 2
    width = 2 * (_LEFT + _WIDTH) + _BESIDE
    height = _TOP + rows * (_HIGH + _GAP)
    parts = [
        text(10, 20, "The experiments of the paper on Ztreamy, here", "start", _INK, 14),
        text(
            10, 38, "× what its text says of Ztreamy, on a machine of 2012 with clients on four others", "start", _PAPER
        ),
    ]
    for number, panel in enumerate(panels):
        left = _LEFT + (number % 2) * (_LEFT + _WIDTH + _BESIDE // 2)
        parts.extend(_drawn(panel, left, _TOP + 10 + (number // 2) * (_HIGH + _GAP)))
    return "\n".join([opened(width, height), *parts, "</svg>\n"])


def _panels(report: Mapping[str, Any]) -> Iterator[Panel]:
    rows = (
        ("3a 3c 4a", "clients, 4 items/s", "clients", lambda each: each["rate"] == 4),
        ("3b 3d 4b", "items/s", "rate", lambda each: each["clients"] == 500),
        ("5", "clients, 4 items/s", "clients", lambda each: False),
        ("6", "s of buffer window, 20 items/s", "buffer", lambda each: False),
    )
    measures = (("cpu_percent", "CPU, % of a core"), ("p50_ms", "median delay, ms"))
    for figure, across, x, about in rows:
        for measure, title in measures:
            said = [
                (each[x], each[measure])
                for each in report["paper"]["said"]
                if each["system"] == "Ztreamy" and about(each) and each[measure] is not None
            ]
            yield Panel(f"figure {figure}: {title}", across, _lines(report, figure, x, measure), said)


def _lines(report: Mapping[str, Any], figure: str, x: str, measure: str) -> dict[str, Line]:
    points = [each for each in report["points"] if each["figure"] == figure]
    # Each window of figure 6 is a series of its own in the report, and a point of one line here.
    series: Callable[[Mapping[str, Any]], str] = lambda each: "gzip" if x == "buffer" else each["series"]  # noqa: E731
    names = dict.fromkeys(map(series, points))
    return {name: [(each[x], each[measure]) for each in points if series(each) == name] for name in names}


def _drawn(panel: Panel, left: int, top: int) -> Iterator[str]:
    every = [place for line in (*panel.lines.values(), panel.said) for place in line]
    widest = max((x for x, _ in every), default=0.0) or 1.0
    most = max((y for _, y in every), default=0.0) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        return round(left + _WIDTH * x / widest, 1), round(top + _HIGH * (1 - y / most), 1)

    yield text(left, top - 8, panel.title, "start", _INK, 12)
    for share in (0.0, 0.5, 1.0):
        y = top + _HIGH * (1 - share)
        yield f'<line x1="{left}" y1="{y}" x2="{left + _WIDTH}" y2="{y}" stroke="{_RULE}"/>'
        yield text(left - 6, y + 4, f"{most * share:,.4g}", "end", _GREY)
    yield text(left, top + _HIGH + 16, "0", "start", _GREY)
    yield text(left + _WIDTH, top + _HIGH + 16, f"{widest:,g} {panel.across}", "end", _GREY)
    for number, (name, line) in enumerate(panel.lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        corners = " ".join(f"{x},{y}" for x, y in (place(*each) for each in line))
        yield f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        yield from (f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in (place(*each) for each in line))
        yield text(left + 8 + 130 * number, top + _HIGH + 32, name, "start", colour)
    for x, y in (place(*each) for each in panel.said):
        yield text(x, y + 5, "×", "middle", _PAPER, 16)
