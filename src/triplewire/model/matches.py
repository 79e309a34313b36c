"""Matches: what matching found, still symbolic where that is possible.

A match names the subscription by the position at which it was made, and its solutions by the numbers of the
quads that gave them. It is expanded into terms at the edge, for those who listen. Solutions that are more than quads
of the event, because something was computed, are terms from the start.
"""

from __future__ import annotations

import pyarrow as pa

MATCHES = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("subscription", pa.int64(), nullable=False),
        pa.field("solutions", pa.list_(pa.int32())),
        pa.field("terms", pa.list_(pa.string())),
    ]
)
"""One row for each pair of event (`position`) and subscription (its `since`), at most. `solutions` holds, one
after the other, for every solution the number of the quad that each pattern of the shape took; `terms` holds for every
solution its rank and its terms instead, null where a variable has none. Both are null for subscriptions that do not
ask for bindings."""
