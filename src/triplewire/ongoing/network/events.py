"""Events as the network takes them in: their texts, and which scopes they are in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.kernels.compiler import Flags
from triplewire.model.events import drop_opaque_payloads
from triplewire.model.subscriptions import ANSWER
from triplewire.ongoing.network.arrays import Entries
from triplewire.ongoing.network.builders import Scope


def entries_of(table: pa.Table, scopes: Sequence[Scope], past: int | None = None) -> Entries:
    """The events of an `ENTRIES` table that are RDF: new ones, or `past` ones for scopes of one origin."""
    table = drop_opaque_payloads(table)
    texts = table["text"].combine_chunks().cast(pa.large_string())
    texts = texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
    _, offsets, data = texts.buffers()
    start = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return Entries(
        text=np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8),
        start=start,
        position=table["position"].to_numpy(),
        time=table["received"].to_numpy(),
        scopes=np.stack([_within(table, each, past) for each in scopes], axis=1),
    )


def _within(table: pa.Table, scope: Scope, past: int | None) -> Flags:
    """Which events a scope has. Whoever names no streams does not hear what queries have answered."""
    if past is not None and scope.origin != past:
        return np.zeros(table.num_rows, np.bool_)
    if scope.streams is None:
        found = pc.invert(pc.starts_with(table["event"], ANSWER))
    else:
        found = pc.is_in(table["stream"], pa.array(scope.streams))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
