"""Panels: an overview of brokers as a terminal shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from triplewire.cli.overviews import EdgeRow, Overview, StreamRow
from triplewire.model import parse_position

_CELLS = 6
"""Length of a bar of a whole core, or of all seats."""
_COLOURS = {"ok": "green", "ready": "green", "lagging": "yellow", "starting": "yellow", "closing": "yellow"}
_UNITS = ("B", "kB", "MB", "GB", "TB")


def view(overviews: Sequence[Overview], rows: int = 20) -> Group:
    """All brokers, one below the other; of each that many streams."""
    return Group(*(part for each in overviews for part in _broker(each, rows)))


def _broker(overview: Overview, rows: int) -> list[RenderableType]:
    if overview.fault:
        return [Text.assemble((overview.url, "bold"), "  ", (overview.fault, "red"))]
    return [_head(overview), _edges(overview.edges), Text(), _streams(overview.streams, rows), Text()]


def _head(overview: Overview) -> Text:
    health = overview.health
    status = str(health.get("status", "?"))
    line = Text.assemble((overview.url, "bold"), "  ", (status, _COLOURS.get(status, "red")))
    facts = {
        "pipeline": health.get("pipeline", "?"),
        "to match": f"{health.get('lag', 0):,} ({health.get('lag_seconds', 0.0):.1f} s)",
        **{f"lane {name}": f"{each['lag']:,}" for name, each in health.get("lanes", {}).items()},
        **_lake(health),
    }
    for name, value in facts.items():
        line.append(f"   {name} ", "dim").append(str(value))
    return line


def _lake(health: Mapping[str, Any]) -> dict[str, str]:
    """What the lake holds, by what the housekeeper told, and how many positions it has still to store."""
    stored = health.get("stored")
    behind = (
        {} if stored is None else {"to store": f"{max(0, parse_position(health['head']) - parse_position(stored)):,}"}
    )
    lake = health.get("lake", {})
    if "files" not in lake:
        return behind
    held = f"{lake['files']:,} files, {lake.get('fresh', 0):,} fresh, {size(lake.get('bytes', 0))}"
    return behind | {"lake": held}


def _edges(edges: Sequence[EdgeRow]) -> Table:
    table = _table("edge")
    for name in ("state", "pid", "cpu", "memory", "listeners", "seats", "in/s", "out/s", "sent/s"):
        table.add_column(name, justify="left" if name == "state" else "right", no_wrap=True)
    for each in edges:
        taken = each.listeners / each.seats if each.seats else 0.0
        table.add_row(
            each.name,
            Text(each.state, _COLOURS.get(each.state, "red")),
            str(each.pid),
            _bar(each.cpu),
            size(each.memory),
            f"{each.listeners:,}",
            _bar(taken),
            number(each.published_s),
            number(each.messages_s),
            size(each.sent_bytes_s),
        )
    return table


def _streams(streams: Sequence[StreamRow], rows: int) -> Table:
    table = _table("stream")
    for name in ("clients", "msgs/s", "plain/s", "sent/s", "share", "behind", "cut off", "window"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in streams[:rows]:
        table.add_row(
            each.stream,
            f"{each.clients:,}",
            number(each.messages_s),
            size(each.plain_bytes_s),
            size(each.sent_bytes_s),
            "–" if each.share is None else f"{each.share:.1%}",
            Text(size(each.waiting), "yellow" if each.waiting else ""),
            Text(f"{each.dropped:,}", "red" if each.dropped else ""),
            f"{each.window:.2f} s",
        )
    if len(streams) > rows:
        table.add_row(Text(f"and {len(streams) - rows:,} more", "dim"))
    if not streams:
        table.add_row(Text("nobody listens", "dim"))
    return table


def _table(first: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True, min_width=10)
    return table


def _bar(share: float) -> Text:
    filled = min(_CELLS, round(share * _CELLS))
    colour = "red" if share > 0.9 else "yellow" if share > 0.7 else "green"
    return Text.assemble(("█" * filled, colour), ("░" * (_CELLS - filled), "dim"), f" {share:4.0%}")


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def size(value: float) -> str:
    """Bytes for people: 1.2 MB."""
    unit = 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:,.0f} {_UNITS[unit]}" if value >= 10 or unit == 0 else f"{value:.1f} {_UNITS[unit]}"
