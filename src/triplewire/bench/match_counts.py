"""Counts: how many pairs of an event and a subscription a table of matches stands for."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model import Subscription


def matches_of(table: pa.Table, subscriptions: Sequence[Subscription]) -> int:
    """Of a `MATCHES` table. `subscriptions` are all that stand, in the order in which they were made, for rows that
    speak for many of them at once."""
    return int(table.num_rows)


def at(table: pa.Table, position: int) -> pa.Table:
    """The rows of one event."""
    return table.filter(pc.equal(table["position"], position))
