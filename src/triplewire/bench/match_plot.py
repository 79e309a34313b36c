"""The picture of `bench match`: events a second of every run, beside parsing and beside Spark alone, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from triplewire.bench.drawings import opened, text

_LEFT, _TOP, _WIDTH, _RIGHT = 190, 52, 520, 90
_BAR, _STEP = 14, 20
_OURS, _FEWER, _THEIRS, _SPARK = "#1f6feb", "#a5c8ff", "#8b949e", "#e8833a"


def svg(report: Mapping[str, Any]) -> str:
    """The picture of a report, complete."""
    bars = [*_bars(report)]
    most = max(rate for _, rate, _ in bars)
    height = _TOP + len(bars) * _STEP + 12
    lines = [line for number, bar in enumerate(bars) for line in _drawn(_TOP + number * _STEP, bar, most)]
    return "\n".join([opened(_LEFT + _WIDTH + _RIGHT, height), *_titles(report), *lines, "</svg>\n"])


def _bars(report: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    """A name, events a second and a colour for each."""
    for number, rate in enumerate(report["runs"], 1):
        yield f"run {number}", rate, _OURS
    if report["growth"]:
        yield f"with {report['growth']['from']:,} subscriptions", report["growth"]["events_per_s"], _FEWER
    yield "pyoxigraph, parsing", report["parse_events_per_s"], _THEIRS
    yield "Spark, matching nothing", report["passed_on_per_s"], _SPARK


def _titles(report: Mapping[str, Any]) -> Iterator[str]:
    title = f"{report['workload']}: {report['subscriptions']:,} subscriptions of {report['shapes']:,} shapes"
    yield text(10, 20, f"{title}, events a second", "start", "#1f2328", 14)
    said = f"{report['matches']['per_event']:,} matches an event, {report['ratio']} times as fast as parsing"
    yield text(10, 38, said, "start", "#57606a")


def _drawn(top: int, bar: tuple[str, float, str], most: float) -> Iterator[str]:
    name, rate, colour = bar
    width = round(_WIDTH * rate / most, 1)
    yield text(_LEFT - 8, top + _BAR - 3, name, "end", "#1f2328")
    yield f'<rect x="{_LEFT}" y="{top}" width="{width}" height="{_BAR}" fill="{colour}"/>'
    yield text(_LEFT + width + 5, top + _BAR - 3, f"{rate:,.0f}", "start", "#57606a")
