"""Batches: some events, and which of them pass what is said of headers and vocabulary, each found out once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.edge.sieves.quads import quads_of, rdf
from triplewire.edge.sieves.sieves import Tap
from triplewire.model.terms import RDF_TYPE

Mask = npt.NDArray[np.bool_]
"""One truth for each event of a batch."""


class Batch:
    """A table of `ENTRIES`. What several sieves ask of it is looked at once."""

    def __init__(self, entries: pa.Table) -> None:
        self.entries = entries
        self._masks: dict[tuple[str, tuple[str, ...]], Mask] = {}

    def passing(self, tap: Tap) -> Mask:
        """Those of its stream that pass all but queries and filters of the deployment."""
        mask, sieve = self._among("stream", (tap.stream,)), tap.sieve
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
            found = _mask(pc.is_in(self.entries[column], value_set=pa.array(values, pa.string())))
            self._masks[column, values] = found
        return found

    def _of_vocabulary(self, beginnings: tuple[str, ...]) -> Mask:
        found = self._masks.get(("vocabulary", beginnings))
        if found is None:
            found = self._masks["vocabulary", beginnings] = self._names.begin(beginnings)
        return found

    @cached_property
    def _rdf(self) -> Mask:
        return _mask(rdf(self.entries))

    @cached_property
    def _names(self) -> Names:
        return Names(self.entries)


class Names:
    """The predicates and classes that events have: few of them, however many quads there are."""

    def __init__(self, entries: pa.Table) -> None:
        quads, self._events = quads_of(entries), entries.num_rows
        typed = pc.equal(quads["predicate"], RDF_TYPE)
        classes = quads.filter(typed)
        named = pa.chunked_array([*quads["predicate"].chunks, *classes["object"].chunks], pa.string())
        encoded = named.combine_chunks().dictionary_encode()
        self._rows = np.concatenate([quads["row"].to_numpy(), classes["row"].to_numpy()])
        self._codes = encoded.indices.to_numpy()
        self._terms = encoded.dictionary

    def begin(self, beginnings: tuple[str, ...]) -> Mask:
        """For each event whether one of its names begins so."""
        terms = np.zeros(len(self._terms), bool)
        for each in beginnings:
            terms |= _mask(pc.starts_with(self._terms, "<" + each))
        found = np.zeros(self._events, bool)
        found[self._rows[terms[self._codes]]] = True
        return found


def _mask(column: pa.ChunkedArray | pa.Array) -> Mask:
    found: Mask = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    return found.astype(bool)
