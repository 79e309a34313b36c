"""Batches: some events, and which of them pass what is said of headers and vocabulary, each found out once."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.edge.sieves.quads import quads_of, rdf
from triplewire.edge.sieves.sieves import Tap
from triplewire.model.subscriptions import ANSWER
from triplewire.model.terms import RDF_TYPE

Mask = npt.NDArray[np.bool_]
"""One truth for each event of a batch."""

_LAST = "\U0010ffff"
"""Comes after whatever may follow the beginning of an IRI."""


class Batch:
    """A table of `ENTRIES`. What several sieves ask of it is looked at once, term by term and not event by event."""

    def __init__(self, entries: pa.Table) -> None:
        self.entries = entries
        self._columns: dict[str, Names] = {}
        self._masks: dict[tuple[str, tuple[str, ...]], Mask] = {}

    def passing(self, tap: Tap) -> Mask:
        """Those of its stream that pass all but queries and filters of the deployment."""
        mask, sieve = self._among("stream", (tap.stream,)), tap.sieve
        mask = mask if tap.query is None else mask & self._answering(tap.query)
        if sieve is None:
            return mask
        for name in ("source", "application"):
            values: tuple[str, ...] = getattr(sieve, name)
            mask = mask & self._among(name, values) if values else mask
        mask = mask & self._of_vocabulary(sieve.vocabulary) if sieve.vocabulary else mask
        return mask & self._rdf if sieve.asks else mask

    def _among(self, column: str, values: tuple[str, ...]) -> Mask:
        found = self._masks.get((column, values))
        if found is None:
            names = self._columns.get(column)
            if names is None:
                names = self._columns[column] = Names(self.entries[column], np.arange(self.entries.num_rows))
            found = self._masks[column, values] = names.among(values, self.entries.num_rows)
        return found

    def _answering(self, query: str) -> Mask:
        return np.asarray(pc.starts_with(self.entries["event"], f"{ANSWER}{query}:").to_numpy(), bool)

    def _of_vocabulary(self, beginnings: tuple[str, ...]) -> Mask:
        found = self._masks.get(("vocabulary", beginnings))
        if found is None:
            found = self._used.begin(tuple("<" + each for each in beginnings), self.entries.num_rows)
            self._masks["vocabulary", beginnings] = found
        return found

    @cached_property
    def _rdf(self) -> Mask:
        return np.asarray(rdf(self.entries).to_numpy(), bool)

    @cached_property
    def _used(self) -> Names:
        """Predicates and classes."""
        quads = quads_of(self.entries)
        classes = quads.filter(pc.equal(quads["predicate"], RDF_TYPE))
        named = pa.chunked_array([*quads["predicate"].chunks, *classes["object"].chunks], pa.string())
        return Names(named, np.concatenate([quads["row"].to_numpy(), classes["row"].to_numpy()]))


class Names:
    """Terms that events have, and in which rows: few different ones, in order."""

    def __init__(self, column: pa.ChunkedArray, rows: npt.NDArray[np.int64]) -> None:
        told = np.asarray(column.is_valid().to_numpy(), bool)
        encoded = column.drop_null().combine_chunks().dictionary_encode()
        names: list[str] = encoded.dictionary.to_pylist()
        order = sorted(range(len(names)), key=names.__getitem__)
        ranks = np.zeros(len(names), np.int64)
        ranks[order] = np.arange(len(names))
        self._names = [names[each] for each in order]
        self._ranks = ranks[encoded.indices.to_numpy()]
        self._rows = rows[told]

    def among(self, names: tuple[str, ...], events: int) -> Mask:
        """For each event whether it has one of these."""
        return self._marked([(name, name + "\0") for name in names], events)

    def begin(self, beginnings: tuple[str, ...], events: int) -> Mask:
        """For each event whether one of its names begins so."""
        return self._marked([(each, each + _LAST) for each in beginnings], events)

    def _marked(self, spans: list[tuple[str, str]], events: int) -> Mask:
        found = np.zeros(events, bool)
        for first, last in spans:
            start, stop = bisect_left(self._names, first), bisect_left(self._names, last)
            if start < stop:
                found[self._rows[(self._ranks >= start) & (self._ranks < stop)]] = True
        return found
