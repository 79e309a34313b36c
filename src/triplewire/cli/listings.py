"""Listings: tables of what there is, of which nothing is cut: what is shown may be what the next command wants."""

from __future__ import annotations

from rich.table import Table


def listing(*names: str) -> Table:
    """A table with these columns. The first, by which things are known, stays on one line; others break where they are
    too wide."""
    first, *others = names
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, overflow="fold")
    return table
