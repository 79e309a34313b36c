"""Quads of a batch of events as a table, for filters that look into events."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model.events import drop_opaque_payloads

_WIDTH = 3


def rdf(batch: pa.Table) -> pa.ChunkedArray:
    """For each event whether it is RDF; others are carried as they are and say nothing that could be looked at."""
    return pc.is_in(batch["position"], value_set=drop_opaque_payloads(batch)["position"].combine_chunks())


def quads_of(batch: pa.Table) -> pa.Table:
    """`row`, the number of the event in the batch, `subject`, `predicate` and `object`, as terms in canonical N-Triples
    text; in order. Events that are no RDF have none."""
    texts = _whole(pc.if_else(rdf(batch), batch["text"], None))
    lines = pc.split_pattern(texts, "\n")
    terms = pc.split_pattern(pc.list_flatten(lines), "\t")
    rows = pc.list_parent_indices(lines)
    whole = pc.equal(pc.list_value_length(terms), _WIDTH)
    rows, terms = pc.filter(rows, whole), pc.filter(terms, whole)
    subject, predicate, object_ = (pc.list_element(terms, place) for place in range(_WIDTH))
    return pa.table({"row": rows, "subject": subject, "predicate": predicate, "object": object_})


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
