"""The picture of `bench zones`: the loads of zones in each experiment, the fullest first, beside the ideal, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from triplewire.bench.drawings import opened, text

_LEFT, _TOP, _ROW, _HIGH = 190, 56, 62, 44
_BAR, _RIGHT = 15, 130
_OURS, _THEIRS = "#1f6feb", "#8b949e"


def svg(report: Mapping[str, Any]) -> str:
    """The picture of a report, complete. A bar that is higher than twice the ideal is cut off there."""
    width = _LEFT + report["zones"] * _BAR + _RIGHT
    ideal = report["quads"] / report["zones"]
    title = f"{report['quads']:,} quads of {report['events']:,} tweets in {report['zones']} zones"
    parts = [text(10, 20, f"{title}: quads in each, the fullest first", "start", "#1f2328", 14)]
    parts.append(text(10, 38, "dashed: all the same; grey: rules of the thesis; blue: ours", "start", "#57606a"))
    for number, each in enumerate(report["experiments"].values()):
        parts += _row(each, ideal, _TOP + number * _ROW, _LEFT + report["zones"] * _BAR)
    height = _TOP + len(report["experiments"]) * _ROW + 10
    return "\n".join([opened(width, height), *parts, "</svg>\n"])


def _row(each: Mapping[str, Any], ideal: float, top: int, right: int) -> Iterator[str]:
    base = top + _HIGH
    colour = _OURS if each["thesis_rsd"] is None else _THEIRS
    yield text(_LEFT - 10, base - 16, each["title"], "end", "#1f2328", 12)
    for place, load in enumerate(each["loads"]):
        high = round(min(load / ideal, 2) * _HIGH / 2, 1)
        yield f'<rect x="{_LEFT + place * _BAR}" y="{base - high}" width="{_BAR - 2}" height="{high}" fill="{colour}"/>'
    middle = base - _HIGH / 2
    stroke = 'stroke="#cf222e" stroke-dasharray="4 3" opacity="0.6"'
    yield f'<line x1="{_LEFT}" y1="{middle}" x2="{right}" y2="{middle}" {stroke}/>'
    yield text(right + 8, base - 18, f"RSD {each['rsd']:g} %", "start", "#1f2328", 12)
    if each["thesis_rsd"] is not None:
        yield text(right + 8, base - 4, f"thesis {each['thesis_rsd']:g} %", "start", "#57606a", 10)
