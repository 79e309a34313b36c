"""The picture of `bench sparql`: a bar for each engine and query, on a scale of powers of ten, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from triplewire.bench.drawings import opened, text
from triplewire.bench.sparql_queries import QUESTIONS

ENGINES = (
    ("duckdb_ms", "DuckDB", "#1f6feb"),
    ("spark_ms", "Spark", "#e8833a"),
    ("oxigraph_ms", "pyoxigraph", "#8b949e"),
)
"""The name in the report, the one in the picture, and the colour."""

_LEFT, _TOP, _WIDTH, _RIGHT = 170, 56, 560, 70
_BAR, _GAP = 11, 12


def svg(report: Mapping[str, Any]) -> str:
    """The picture of a report, complete."""
    engines = [each for each in ENGINES if any(query[each[0]] is not None for query in report["queries"].values())]
    scale = _Scale.of(_times(report, engines))
    height = _TOP + len(report["queries"]) * (_BAR * len(engines) + _GAP) + 30
    parts = [*_legend(report, engines), *scale.grid(height - 30), *_groups(report, engines, scale)]
    return "\n".join([opened(_LEFT + _WIDTH + _RIGHT, height), *parts, "</svg>\n"])


class _Scale:
    """Milliseconds to places, from a power of ten to another."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    @classmethod
    def of(cls, times: Sequence[float]) -> _Scale:
        low = floor(log10(min(times)))
        return cls(low, max(low + 1, ceil(log10(max(times)))))

    def width(self, milliseconds: float) -> float:
        return round(_WIDTH * (log10(milliseconds) - self._low) / (self._high - self._low), 1)

    def grid(self, bottom: int) -> Iterator[str]:
        for power in range(self._low, self._high + 1):
            x = _LEFT + self.width(10.0**power)
            yield f'<line x1="{x}" y1="{_TOP - 6}" x2="{x}" y2="{bottom}" stroke="#d0d7de"/>'
            yield text(x, bottom + 16, f"{10.0**power:g} ms", "middle", "#57606a")


def _times(report: Mapping[str, Any], engines: Sequence[tuple[str, str, str]]) -> list[float]:
    """All that are there; what took no time that a clock can see counts as a hundredth of a millisecond."""
    return [
        max(0.01, query[key]) for query in report["queries"].values() for key, _, _ in engines if query[key] is not None
    ]


def _groups(report: Mapping[str, Any], engines: Sequence[tuple[str, str, str]], scale: _Scale) -> Iterator[str]:
    titles = {question.name: question.title for question in QUESTIONS}
    top = _TOP
    for name, query in report["queries"].items():
        yield text(_LEFT - 8, top + _BAR * len(engines) // 2 + 4, titles.get(name, name), "end", "#1f2328")
        for key, _, colour in engines:
            if query[key] is not None:
                yield from _bar(top, scale.width(max(0.01, query[key])), colour, f"{query[key]:g}")
            top += _BAR
        top += _GAP


def _bar(top: int, width: float, colour: str, figure: str) -> Iterator[str]:
    yield f'<rect x="{_LEFT}" y="{top}" width="{width}" height="{_BAR - 2}" fill="{colour}"/>'
    yield text(_LEFT + width + 4, top + _BAR - 3, figure, "start", "#57606a", 9)


def _legend(report: Mapping[str, Any], engines: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    yield text(10, 20, f"SPARQL over {report['quads']:,} quads: warm median, milliseconds", "start", "#1f2328", 14)
    for index, (_, title, colour) in enumerate(engines):
        x = _LEFT + index * 110
        yield f'<rect x="{x}" y="30" width="10" height="10" fill="{colour}"/>'
        yield text(x + 15, 39, title, "start", "#1f2328")
