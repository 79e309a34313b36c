"""Matches: what matching found, still symbolic.

A match names the subscription by the position at which it was made, and its solutions by the numbers of the
quads that gave them. It is expanded into terms at the edge, for those who listen.
"""

from __future__ import annotations

import pyarrow as pa

MATCHES = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("subscription", pa.int64(), nullable=False),
        pa.field("solutions", pa.list_(pa.int32())),
    ]
)
"""One row for each pair of event (`position`) and subscription (its `since`), at most. `solutions` holds, one
after the other, for every solution the number of the quad that each pattern of the shape took; it is null for
subscriptions that do not ask for bindings."""
