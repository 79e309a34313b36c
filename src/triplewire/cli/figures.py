"""Figures of `bench sparql` for people: a table, and a bar that says how often faster than the rival."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from triplewire.bench.sparql_queries import QUESTIONS

_CELLS_A_POWER = 6
"""Length of the bar for ten times as fast."""
_LONGEST = 24


def figures(report: Mapping[str, Any]) -> Group:
    """The report as it is printed."""
    loads, compile, machine = report["load_s"], report["compile_ms"], report["machine"]
    said = (
        f"{machine['cores']} cores, {machine['memory_gb']} GB; loading took {loads['triplewire']:,} s, "
        f"pyoxigraph {loads['oxigraph']:,} s\n"
        f"compiling: {compile['first']:.1f} ms for a new structure, {compile['again']:.1f} ms for one seen before "
        f"(slowest {compile['slowest_again']:.1f})"
    )
    return Group(_table(report), Text(said, "dim"))


def _table(report: Mapping[str, Any]) -> Table:
    table = Table(title=f"SPARQL over {report['quads']:,} quads, median of {report['runs']} runs, ms", box=None)
    table.add_column("query")
    for name in ("rows", "DuckDB", "Spark", "pyoxigraph", "times"):
        table.add_column(name, justify="right")
    table.add_column("pyoxigraph faster │ DuckDB faster", justify="left")
    titles = {question.name: question.title for question in QUESTIONS}
    for name, query in report["queries"].items():
        times = (query[key] for key in ("duckdb_ms", "spark_ms", "oxigraph_ms"))
        table.add_row(
            titles.get(name, name),
            f"{query['rows']:,}",
            *map(_figure, times),
            _times(query["ratio"]),
            bar(query["ratio"]),
        )
    return table


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def bar(ratio: float) -> Text:
    """To the right if we are faster, to the left if the rival is; its length is the power of ten."""
    length = max(-_LONGEST, min(_LONGEST, round(log10(max(ratio, 1e-4)) * _CELLS_A_POWER)))
    left = ("█" * -length).rjust(18)[-18:]
    return Text.assemble((left, "red"), "│", ("█" * length, "green"))
