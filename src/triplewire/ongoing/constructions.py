"""Constructions: answers of an unbounded CONSTRUCT, as events that are published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from triplewire.model import Event, EventHeaders, format_position
from triplewire.model.subscriptions import ANSWER, ContinuousQuery
from triplewire.ongoing.structures import Structure
from triplewire.sparql.construct import build_graph


def constructed(
    matches: pa.Table, queries: Mapping[int, tuple[ContinuousQuery, Structure]]
) -> Iterator[tuple[str, Event]]:
    """One event for each query and position: what all solutions make that the event there has completed. Matches are
    in order of position; `queries` are by group."""
    for group, (query, structure) in queries.items():
        rows = matches.filter(pa.array(matches["group"].to_numpy() == group))
        rows = rows.filter(pa.array(rows["value"].to_numpy() > query.after))
        positions = rows["position"].to_numpy()
        marks = np.flatnonzero(np.diff(positions, prepend=-1))
        for first, last in pairwise([*marks, len(positions)]):
            yield from _event(query, structure, int(positions[first]), rows["terms"].slice(first, last - first))


def _event(
    query: ContinuousQuery, structure: Structure, position: int, terms: pa.ChunkedArray
) -> Iterator[tuple[str, Event]]:
    solutions = [dict(zip(structure.projection, each[1:], strict=True)) for each in terms.to_pylist()]
    triples = build_graph(structure.template, (), solutions, f"{query.id} {position}")
    if triples and query.into is not None:
        headers = EventHeaders(extensions={"query": query.id, "position": format_position(position)})
        yield (
            query.into,
            Event(f"{ANSWER}{query.id}:{format_position(position)}", "\n".join(map("\t".join, triples)), headers),
        )
