"""Matches: what matching found, still symbolic where that is possible.

Most subscriptions belong to a group: those that are the same but for one threshold. A match then names the group and
the value that the event held against it, and is expanded at the edge, for those who listen: a group whose members all
want everything costs one row for each event. Where solutions are asked for they are the numbers of the quads that gave
them. Solutions that are more than quads of the event, because something was computed, are terms from the start, and
such a match names the one subscription that it is of, by the position at which that was made.
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa


class Reached(StrEnum):
    """What there was too much of, for one subscription on one event."""

    SOLUTIONS = "solutions"
    """It matches, with more solutions than are told."""
    WORK = "work"
    """Whether it matches was not found out."""
    STATE = "state"
    """A continuous query held more than it may, and is suspended: nothing more is told."""


MATCHES = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("subscription", pa.int64()),
        pa.field("group", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("solutions", pa.list_(pa.int32())),
        pa.field("terms", pa.list_(pa.string())),
        pa.field("limit", pa.string()),
    ]
)
"""A row is of an event (`position`) and either of a `group`, with the `value` that members hold against their
thresholds, or of one `subscription` (its `since`). Of a group there is one row for each solution, or one in all, with
the value that passes most thresholds, if nobody asks for solutions; of a subscription there is one row at most.
`solutions` holds, one after the other, for every solution the number of the quad that each pattern of the shape took;
`terms` holds for every solution its rank and its terms instead, null where a variable has none. Both are null for
subscriptions that do not ask for bindings. `limit` names the limit, one of `Reached`, that a subscription met on the
event: such a row says nothing else. It is null in all others."""
