"""The aims of `bench history`, beside what a report has reached, for a table and for a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from triplewire.bench.aims import Aim
from triplewire.bench.drawings import opened, text

_LEFT, _TOP, _WIDTH, _RIGHT = 300, 52, 420, 150
_BAR, _STEP = 14, 22
_MET, _MISSED, _AIM = "#1f6feb", "#e8833a", "#57606a"
_TIMES = 2.0
"""A bar ends at so many times the aim."""


AIMS = (
    Aim("taken in, times pyoxigraph's bulk load", ("ratio",), 2.0, "", least=True),
    Aim("bytes for a quad", ("bytes_per_quad", "compacted"), 30.0, ""),
    Aim("share of files for a predicate", ("reads", "predicate", "share"), 0.2, ""),
    Aim("share of files for a subject that comes all day", ("reads", "sensor", "share"), 0.05, ""),
    Aim("share of files for a subject that comes once", ("reads", "observation", "share"), 0.05, ""),
    Aim("share of files for an hour", ("reads", "hour", "share"), 0.1, ""),
    Aim("until new events can be asked for", ("freshness_ms", "max"), 5_000.0, " ms"),
)


def svg(report: Mapping[str, Any]) -> str:
    """The picture of a report, complete: a bar for each aim, which stands at the line."""
    height = _TOP + len(AIMS) * _STEP + 24
    lines = [line for number, aim in enumerate(AIMS) for line in _drawn(_TOP + number * _STEP, aim, report)]
    return "\n".join([opened(_LEFT + _WIDTH + _RIGHT, height), *_titles(report, height), *lines, "</svg>\n"])


def _titles(report: Mapping[str, Any], height: int) -> Iterator[str]:
    ours, theirs = report["ingest"]["quads_per_s"], report["oxigraph"]["quads_per_s"]
    yield text(10, 20, f"{report['quads']:,} quads of history, in aims", "start", "#1f2328", 14)
    yield text(10, 38, f"{ours:,} quads a second, pyoxigraph {theirs:,}", "start", "#57606a")
    line = _LEFT + _WIDTH / _TIMES
    yield f'<line x1="{line}" y1="{_TOP - 6}" x2="{line}" y2="{height - 18}" stroke="{_AIM}"/>'
    yield text(line, height - 6, "aim", "middle", _AIM)


def _drawn(top: int, aim: Aim, report: Mapping[str, Any]) -> Iterator[str]:
    reached = aim.reached(report)
    width = round(_WIDTH * min(1.0, reached / aim.bound / _TIMES), 1)
    yield text(_LEFT - 8, top + _BAR - 3, aim.title, "end", "#1f2328")
    yield f'<rect x="{_LEFT}" y="{top}" width="{width}" height="{_BAR}" fill="{_MET if aim.met(report) else _MISSED}"/>'
    yield text(_LEFT + _WIDTH + 6, top + _BAR - 3, f"{reached:,g}{aim.unit}, {aim.told()}", "start", "#57606a")
