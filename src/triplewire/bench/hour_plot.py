"""The picture of `bench hour`: files, those opened for each question, and its CPU time, over minutes, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triplewire.bench import drawings
from triplewire.bench.drawings import text

_LEFT, _TOP, _WIDTH, _HIGH, _GAP, _RIGHT = 70, 64, 560, 130, 46, 130
_COLOURS = ("#1f6feb", "#e8833a", "#2da44e", "#8b949e")

_Lines = Mapping[str, Sequence[float]]


def svg(report: Mapping[str, Any]) -> str:
    """The picture of a report, complete: three panels that begin at nothing, for files, those opened, and CPU times."""
    samples = report["samples"]
    minutes = [each["second"] / 60 for each in samples]
    files = {name: [each[name] for each in samples] for name in ("files", "fresh")}
    opened, times = (_asked(samples, each) for each in ("opened", "cpu_ms"))
    second, third = (_TOP + number * (_HIGH + _GAP) for number in (1, 2))
    height = third + _HIGH + 44
    title = f"{report['minutes']} minutes of {report['events']:,} events: {report['quads']:,} quads"
    parts = [
        text(10, 20, title, "start", "#1f2328", 14),
        *_panel(_TOP, "files of the lake", minutes, files),
        *_panel(second, "files opened for an answer", minutes, opened),
        *_panel(third, "CPU time of an answer, milliseconds", minutes, times),
        text(_LEFT + _WIDTH, height - 10, f"minute {report['minutes']}", "end", "#57606a"),
        text(_LEFT, height - 10, "minute 0", "start", "#57606a"),
    ]
    return "\n".join([drawings.opened(_LEFT + _WIDTH + _RIGHT, height), *parts, "</svg>\n"])


def _asked(samples: Sequence[Mapping[str, Any]], measure: str) -> _Lines:
    return {name: [each[measure][name] for each in samples] for name in samples[0][measure]}


def _panel(top: int, title: str, minutes: Sequence[float], lines: _Lines) -> Iterator[str]:
    most = max(1.0, *(value for values in lines.values() for value in values))
    yield text(_LEFT, top - 8, title, "start", "#1f2328", 12)
    for share in (0.0, 0.5, 1.0):
        y = top + _HIGH * (1 - share)
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" stroke="#d0d7de"/>'
        yield text(_LEFT - 6, y + 4, f"{most * share:,.0f}", "end", "#57606a")
    for number, (name, values) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = (
            _place(top, minute / minutes[-1], value / most) for minute, value in zip(minutes, values, strict=True)
        )
        yield f'<polyline points="{" ".join(places)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        yield text(_LEFT + _WIDTH + 8, top + 12 + 16 * number, f"{name}: {values[-1]:,g}", "start", colour)


def _place(top: int, along: float, high: float) -> str:
    return f"{_LEFT + _WIDTH * along:.1f},{top + _HIGH * (1 - high):.1f}"
