"""Rows: log entries as quads, in the order of a data file, made column by column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.lake.facets import INSTANT, Facets

Places = NDArray[np.int64]


def rows(entries: pa.Table, facets: Facets) -> pa.Table:
    """All quads of a table of entries, by predicate, position and number. Columns are those of `QUADS`; texts that come
    again and again are dictionaries, whose values are all in use."""
    entries = _in_order(entries).combine_chunks()
    lines = pc.split_pattern(_column(entries, "text"), "\n")
    terms = pc.split_pattern(lines.flatten(), "\t").flatten()
    order, predicates = _sorted(_every_third(terms, 1))
    events = pc.list_parent_indices(lines).to_numpy()[order]
    starts = lines.offsets.to_numpy()[:-1] - lines.offsets[0].as_py()
    numbers = order - starts[events]
    objects = _every_third(terms, 2).dictionary_encode()
    return pa.table(
        {
            "position": _column(entries, "position").take(pa.array(events)),
            "quad": pa.array(numbers.astype(np.int32)),
            "graph": _graphs(entries).take(pa.array(events)),
            "subject": terms.take(pa.array(3 * order)),
            "predicate": predicates,
            "object": terms.take(pa.array(3 * order + 2)),
            **_typed(facets.of(objects.dictionary), objects.indices.take(pa.array(order))),
            **{name: _repeated(entries, name, events) for name in ("stream", "source", "application")},
            **{name: _column(entries, name).cast(INSTANT).take(pa.array(events)) for name in ("time", "received")},
            "extensions": _of_first(entries, "extensions", events, numbers),
        }
    )


def _in_order(entries: pa.Table) -> pa.Table:
    positions = entries["position"].to_numpy()
    return entries if bool(np.all(positions[1:] > positions[:-1])) else entries.sort_by("position")


def _sorted(predicates: pa.StringArray) -> tuple[Places, pa.DictionaryArray]:
    """The order by predicate in which quads of one predicate stay as they came, and the predicates in that order."""
    encoded = predicates.dictionary_encode()
    by_text = pc.sort_indices(encoded.dictionary).to_numpy()
    # Numbers of two bytes are sorted several times as fast.
    ranks = np.empty(len(by_text), np.uint16 if len(by_text) <= np.iinfo(np.uint16).max else np.uint32)
    ranks[by_text] = np.arange(len(by_text))
    coded = ranks[encoded.indices.to_numpy()]
    order = np.argsort(coded, kind="stable")
    values = encoded.dictionary.take(pa.array(by_text))
    return order, pa.DictionaryArray.from_arrays(pa.array(coded[order].astype(np.int32)), values)


def _every_third(terms: pa.StringArray, first: int) -> pa.StringArray:
    return terms.take(pa.array(np.arange(first, len(terms), 3)))


def _typed(facets: pa.Table, objects: pa.Int32Array) -> dict[str, pa.Array]:
    """The facets of distinct objects, for each row."""
    return {f"object_{name}": _column(facets, name).take(objects) for name in facets.column_names}


def _graphs(entries: pa.Table) -> pa.StringArray:
    return pc.binary_join_element_wise("<", _column(entries, "event"), ">", "")


def _repeated(entries: pa.Table, name: str, events: Places) -> pa.DictionaryArray:
    encoded = _column(entries, name).dictionary_encode()
    return encoded.take(pa.array(events))


def _of_first(entries: pa.Table, name: str, events: Places, numbers: Places) -> pa.StringArray:
    """What an event has, in the row of its first quad."""
    column = _column(entries, name)
    if column.null_count == len(column):
        return pa.nulls(len(events), pa.string())
    return column.take(pa.array(events, mask=numbers > 0))


def _column(table: pa.Table, name: str) -> pa.Array:
    """Of a table whose columns are in one piece each."""
    column = table[name]
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
