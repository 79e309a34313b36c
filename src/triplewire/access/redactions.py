"""Redactions: tables of entries as somebody sees them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.access.scopes import Scope
from triplewire.access.sights import Sight


def redacted(sight: Sight, entries: pa.Table) -> pa.Table:
    """What of a table of entries is in sight: the columns `stream`, `event` and `text` are looked at, and in texts that
    is left out which is not. The order stays; a table of which everything is in sight is the same table."""
    left = _within(entries, "stream", sight.streams, "{}")
    left = _within(left, "event", sight.graphs, "<{}>")
    if sight.leaves_events or not left.num_rows:
        return left
    told = left["text"].to_pylist()
    seen = [sight.visible(text) for text in told]
    if all(one is two for one, two in zip(told, seen, strict=True)):
        return left
    column = left.schema.get_field_index("text")
    changed = left.set_column(column, left.schema.field(column), pa.array(seen, left.schema.field(column).type))
    return changed if None not in seen else changed.filter(pa.array([each is not None for each in seen]))


def _within(entries: pa.Table, name: str, scope: Scope, form: str) -> pa.Table:
    """The rows whose value in a column is in a scope. Each value is looked at once."""
    if scope.is_all or not entries.num_rows:
        return entries
    kept = [each for each in pc.unique(entries[name]).to_pylist() if form.format(each) in scope]
    within = pc.is_in(entries[name], pa.array(kept, entries[name].type))
    return entries if pc.all(within).as_py() else entries.filter(within)
