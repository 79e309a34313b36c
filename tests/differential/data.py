"""Data: a few events of a few triples; the same triple is often in several, and links run in circles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyoxigraph as ox
from hypothesis import strategies as st

from tests.conformance.datasets import Dataset
from tests.differential import vocabulary

ANCHOR = f"{vocabulary.RESOURCES[0]} {vocabulary.LINKS[0]} {vocabulary.RESOURCES[1]}"
"""In the first event of all data, so that both its ends are known to it."""


@dataclass(frozen=True)
class Data:
    """The triples of each event, as lines of N-Triples without the dot; the events are called `GRAPHS`."""

    events: tuple[tuple[str, ...], ...]

    @property
    def graphs(self) -> tuple[str, ...]:
        return vocabulary.GRAPHS[: len(self.events)]

    def union(self, graphs: Iterable[str]) -> tuple[ox.Triple, ...]:
        """The triples of these graphs, each once."""
        lines = dict.fromkeys(line for graph in graphs for line in self.events[self.graphs.index(graph)])
        return tuple(map(_triple, lines))

    def dataset(self, default: Iterable[str], named: Iterable[str]) -> Dataset:
        return Dataset(self.union(default), {graph[1:-1]: self.union([graph]) for graph in named})


def _triple(line: str) -> ox.Triple:
    quads: list[ox.Quad] = list(ox.parse(f"{line} .", format=ox.RdfFormat.N_TRIPLES))
    return quads[0].triple


_resources = st.sampled_from(vocabulary.RESOURCES)
_links = st.sampled_from(vocabulary.LINKS)
_literals = st.sampled_from(vocabulary.COMMON) | st.sampled_from(vocabulary.LITERALS)
_triples = st.one_of(
    st.tuples(_resources, _links, _resources),
    st.tuples(_resources, st.just(vocabulary.VALUE), _literals),
    st.tuples(_resources, st.just(vocabulary.VALUE), _literals),
    st.tuples(_resources, st.sampled_from((*vocabulary.LINKS, vocabulary.VALUE)), st.one_of(_literals, _resources)),
)
_events = st.lists(_triples.map(" ".join), min_size=4, max_size=12, unique=True)


def _anchored(events: list[list[str]]) -> Data:
    first = tuple(dict.fromkeys([ANCHOR, *events[0]]))
    return Data((first, *map(tuple, events[1:])))


data = st.lists(_events, min_size=2, max_size=len(vocabulary.GRAPHS)).map(_anchored)
