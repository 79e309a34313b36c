"""Log entries become rows of the quad table, column by column, with typed columns for their objects.

IRIs, plain strings, numbers and times in their usual form are typed in Arrow. Other forms go to the SQL that defines
the typed columns, at some microseconds each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from triplewire.model.terms import XSD, XSD_STRING
from triplewire.sparql import facets_of, to_sql

INSTANT = pa.timestamp("us", "UTC")
TYPES = {"datatype": pa.string(), "language": pa.string(), "number": pa.float64(), "time": INSTANT}
"""Columns of facets, except the kind, which every term has."""

_KINDS = ("iri", "literal", "triple", "blank")
_IRI, _LITERAL, _TRIPLE, _BLANK = range(4)

# What two engines read alike: few digits, and no day that only some years have.
_DECIMAL = r"^-?[0-9]{1,9}(\.[0-9]{1,9})?$"
_NUMBERS = {
    "double": r"^-?[0-9]{1,9}(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?$",
    "decimal": _DECIMAL,
    "integer": "^-?[0-9]{1,15}$",
}
_DAY = "((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
_TIME = rf"^[12][0-9]{{3}}-{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{{1,6}})?Z$"

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class FacetPart:
    """Facets of some of the terms, by row; a facet that is not there is null for all of them."""

    rows: NDArray[np.int64]
    facets: dict[str, pa.Array]


class TermFacets:
    """Knows the facets of terms. Belongs to one thread."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        made = facets_of(exp.column("term", "t"))
        columns = [exp.alias_(sql, name) for name, sql in made.items()]
        self._duck = duck
        self._sql = to_sql(exp.select(*columns).from_(exp.to_table("terms", alias="t")), "duckdb")

    def of(self, terms: pa.StringArray) -> pa.Table:
        """A row for each term, which are canonical N-Triples texts: its kind, and the columns of `TYPES`."""
        kinds = _kinds(terms)
        literal = kinds == _LITERAL
        numbers = (_numbers(terms, literal, name) for name in _NUMBERS)
        known = [_strings(terms, literal), *numbers, _times(terms, literal)]
        rest = reduce(_exclude, known, literal.copy())
        parts = [*known, self._asked(terms, np.flatnonzero(rest))]
        facets = {name: _join_parts(parts, name, len(terms)) for name in TYPES}
        return pa.table({"kind": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(_KINDS)), **facets})

    def _asked(self, terms: pa.StringArray, rows: NDArray[np.int64]) -> FacetPart:
        if not len(rows):
            return FacetPart(rows, {})
        self._duck.register("terms", pa.table({"term": terms.take(pa.array(rows))}))
        found = pa.table(self._duck.sql(self._sql))
        self._duck.unregister("terms")
        return FacetPart(rows, {name: found[name].cast(kind).combine_chunks() for name, kind in TYPES.items()})


def _kinds(terms: pa.StringArray) -> NDArray[np.int8]:
    kinds = np.full(len(terms), _IRI, np.int8)
    for start, kind in (('"', _LITERAL), ("<<", _TRIPLE), ("_:", _BLANK)):
        kinds[_mask(pc.starts_with(terms, start))] = kind
    return kinds


def _strings(terms: pa.StringArray, literal: Mask) -> FacetPart:
    rows = np.flatnonzero(literal & _mask(pc.ends_with(terms, '"')))
    return FacetPart(rows, {"datatype": pa.repeat(XSD_STRING, len(rows))})


def _numbers(terms: pa.StringArray, literal: Mask, name: str) -> FacetPart:
    rows, lexical = _match_form(terms, literal, name, _NUMBERS[name])
    return FacetPart(rows, {"datatype": pa.repeat(XSD + name, len(rows)), "number": lexical.cast(pa.float64())})


def _times(terms: pa.StringArray, literal: Mask) -> FacetPart:
    rows, lexical = _match_form(terms, literal, "dateTime", _TIME)
    return FacetPart(rows, {"datatype": pa.repeat(XSD + "dateTime", len(rows)), "time": lexical.cast(INSTANT)})


def _match_form(terms: pa.StringArray, literal: Mask, name: str, form: str) -> tuple[NDArray[np.int64], pa.StringArray]:
    """Where literals of a type are written in a form, and their lexical forms."""
    closing = f'"^^<{XSD}{name}>'
    rows = np.flatnonzero(literal & _mask(pc.ends_with(terms, closing)))
    lexical = pc.utf8_slice_codeunits(terms.take(pa.array(rows)), 1, -len(closing))
    usual = pc.match_substring_regex(lexical, form)
    return rows[_mask(usual)], lexical.filter(usual)


def _exclude(left: Mask, part: FacetPart) -> Mask:
    left[part.rows] = False
    return left


def _join_parts(parts: list[FacetPart], name: str, count: int) -> pa.Array:
    """One facet of all terms."""
    holding = [part for part in parts if name in part.facets]
    source = np.full(count, -1, np.int64)
    for part, start in zip(holding, np.cumsum([0, *(len(part.rows) for part in holding)]), strict=False):
        source[part.rows] = np.arange(start, start + len(part.rows))
    values = pa.chunked_array([part.facets[name] for part in holding], TYPES[name]).combine_chunks()
    taken = values.take(pa.array(source, mask=source < 0))
    return taken.dictionary_encode() if pa.types.is_string(taken.type) else taken


def _mask(found: pa.BooleanArray) -> Mask:
    mask: Mask = found.to_numpy(zero_copy_only=False)
    return mask


RowNumbers = NDArray[np.int64]


def quad_rows(entries: pa.Table, facets: TermFacets) -> pa.Table:
    """All quads of a table of entries, by predicate, position and number. Columns are those of `QUADS`; texts that come
    again and again are dictionaries, whose values are all in use."""
    entries = _in_order(entries).combine_chunks()
    lines = pc.split_pattern(_column(entries, "text"), "\n")
    terms = pc.split_pattern(lines.flatten(), "\t").flatten()
    order, predicates = _sort_by_predicate(_every_third(terms, 1))
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
            **_typed_columns(facets.of(objects.dictionary), objects.indices.take(pa.array(order))),
            **{name: _repeat_column(entries, name, events) for name in ("stream", "source", "application")},
            **{name: _column(entries, name).cast(INSTANT).take(pa.array(events)) for name in ("time", "received")},
            "extensions": _first_rows_only(entries, "extensions", events, numbers),
        }
    )


def _in_order(entries: pa.Table) -> pa.Table:
    positions = entries["position"].to_numpy()
    return entries if bool(np.all(positions[1:] > positions[:-1])) else entries.sort_by("position")


def _sort_by_predicate(predicates: pa.StringArray) -> tuple[RowNumbers, pa.DictionaryArray]:
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


def _typed_columns(facets: pa.Table, objects: pa.Int32Array) -> dict[str, pa.Array]:
    """The facets of distinct objects, for each row."""
    return {f"object_{name}": _column(facets, name).take(objects) for name in facets.column_names}


def _graphs(entries: pa.Table) -> pa.StringArray:
    return pc.binary_join_element_wise("<", _column(entries, "event"), ">", "")


def _repeat_column(entries: pa.Table, name: str, events: RowNumbers) -> pa.DictionaryArray:
    encoded = _column(entries, name).dictionary_encode()
    return encoded.take(pa.array(events))


def _first_rows_only(entries: pa.Table, name: str, events: RowNumbers, numbers: RowNumbers) -> pa.StringArray:
    """Columns that only the first quad of an event has."""
    column = _column(entries, name)
    if column.null_count == len(column):
        return pa.nulls(len(events), pa.string())
    return column.take(pa.array(events, mask=numbers > 0))


def _column(table: pa.Table, name: str) -> pa.Array:
    """Columns of a table, each in one chunk."""
    column = table[name]
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
