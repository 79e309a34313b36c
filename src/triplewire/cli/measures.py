"""Measures: what a benchmark found, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from triplewire.bench.aims import Aim


def aims(report: dict[str, Any], wanted: Iterable[Aim]) -> Table:
    table = Table("measure", "reached", "aim", title="aims")
    for aim in wanted:
        colour = "green" if aim.met(report) else "yellow"
        table.add_row(aim.title, f"[{colour}]{aim.reached(report):,g}{aim.unit}[/{colour}]", aim.told())
    return table


def by_minute(report: dict[str, Any]) -> Table:
    samples = [each for each in report["samples"] if each["second"] % 60 == 0]
    table = Table("minute", title=f"{report['quads']:,} quads in {report['minutes']} minutes")
    for name in (
        "files",
        "fresh",
        "zones",
        "MB",
        "versions",
        "commit, ms",
        *(f"{name}, ms" for name in report["ratio"]),
    ):
        table.add_column(name, justify="right")
    for each in [*samples[: -1 : max(1, len(samples) // 20)], samples[-1]]:
        counts = (f"{each[name]:,}" for name in ("files", "fresh", "zones"))
        taken = (f"{value:g}" for value in (each["commit_ms"], *each["ms"].values()))
        table.add_row(
            f"{each['second'] // 60}", *counts, f"{each['bytes'] / 1e6:,.1f}", f"{each['versions']:,}", *taken
        )
    return table


def deviations(report: dict[str, Any]) -> Table:
    title = f"{report['quads']:,} quads in {report['zones']} zones: relative standard deviation"
    table = Table("strategy, cut", title=title)
    for name in ("thesis", "measured", "worst on the way", "fullest", "with quads", "moved"):
        table.add_column(name, justify="right")
    ideal = report["quads"] / report["zones"]
    for each in report["experiments"].values():
        theirs = "–" if each["thesis_rsd"] is None else f"{each['thesis_rsd']:g} %"
        shares = (f"{each['rsd']:.1f} %", f"{each['worst_rsd']:.1f} %", f"{each['loads'][0] / ideal:.2f}×")
        table.add_row(each["title"], theirs, *shares, f"{each['used']}", f"{each['moved']:,}")
    return table


def costs(report: dict[str, Any]) -> Table:
    table = Table("operator", "in the thesis", "subscriptions", "ms", "together", "thesis, ms", title="time per match")
    for operator, row in report["operators"].items():
        for each in row["sizes"]:
            theirs = "–" if each["thesis_ms"] is None else f"{each['thesis_ms']:,}"
            ours = (f"{each['subscriptions']:,}", f"{each['ms']:,}", f"{each['together_ms']:,}")
            table.add_row(operator, row["thesis"], *ours, theirs)
    return table


def table(report: dict[str, Any], title: str = "pipeline") -> Table:
    from triplewire.bench.report import flat

    table = Table("measure", "value", title=title)
    for name, value in flat(report):
        table.add_row(name, f"{value:,}" if isinstance(value, int | float) else str(value))
    return table


def fanouts(report: dict[str, Any]) -> Table:
    """A column for each run, and one beside it for the rival."""
    runs = report.get("runs", [report])
    table = Table("measure", title=f"{runs[0]['rate']:g} events a second to each client")
    columns = [(f"{run['clients']:,} clients", run) for run in runs]
    columns += [(f"nchan, {run['clients']:,}", run["nchan"]) for run in runs if "nchan" in run]
    for name, _ in columns:
        table.add_column(name, justify="right")
    for name in (each for each, value in runs[0].items() if not isinstance(value, dict) and each != "clients"):
        values = (column.get(name, "–") for _, column in columns)
        table.add_row(name, *(f"{value:,}" if isinstance(value, int | float) else str(value) for value in values))
    if "growth" in report:
        table.caption = f"a delivery takes {report['growth']:g} times as long with the most clients as with the fewest"
    return table


def points(report: dict[str, Any]) -> Table:
    """Every point of `bench ztreamy`."""
    table = Table("figure", "series", title=f"the experiments of Ztreamy, {report['seconds']:g} s each")
    for name in ("clients", "items/s", "CPU, %", "p50, ms", "p99, ms", "lost, %", "traffic", "µs a delivery"):
        table.add_column(name, justify="right")
    for each in report["points"]:
        names = ("clients", "rate", "cpu_percent", "p50_ms", "p99_ms", "lost_percent")
        values = [f"{each[name]:,g}" for name in names]
        cost = f"{each['server_cpu_us_per_delivery']:.1f}"
        table.add_row(each["figure"], each["series"], *values, f"{each['traffic_share']:.0%}", cost)
    return table


def figures_beside(report: dict[str, Any]) -> Table:
    """What the paper says, and the nearest point of ours."""
    from triplewire.bench.ztreamy import beside

    table = Table("figure", "system", "clients", "items/s", "the paper", "here", title="what the paper says")
    for said, ours in beside(report):
        here = "–" if ours is None else _point(ours)
        table.add_row(said["figure"], said["system"], f"{said['clients']:,}", f"{said['rate']:g}", said["says"], here)
    return table


def _point(each: dict[str, Any]) -> str:
    told = f"{each['p50_ms']:,g} ms median delay, {each['cpu_percent']:g} % of CPU use, {each['lost_percent']:g} % lost"
    return f"{told} ({each['clients']:,} clients, {each['rate']:g}/s)"
