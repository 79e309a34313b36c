"""Facets: the typed columns of terms, for thousands of them at once.

What most data are made of (IRIs, plain strings, numbers and times written the usual way) is decided column by column
in Arrow. Whatever is written in another way goes to the SQL that defines the facets, at some microseconds each.
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
"""Of the facets, but for the kind, which is known of every term."""

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
class Part:
    """Facets of some of the terms, whose places are told; a facet that is not there is null for all of them."""

    places: NDArray[np.int64]
    facets: dict[str, pa.Array]


class Facets:
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
        rest = reduce(_without, known, literal.copy())
        parts = [*known, self._asked(terms, np.flatnonzero(rest))]
        facets = {name: _joined(parts, name, len(terms)) for name in TYPES}
        return pa.table({"kind": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(_KINDS)), **facets})

    def _asked(self, terms: pa.StringArray, places: NDArray[np.int64]) -> Part:
        if not len(places):
            return Part(places, {})
        self._duck.register("terms", pa.table({"term": terms.take(pa.array(places))}))
        found = pa.table(self._duck.sql(self._sql))
        self._duck.unregister("terms")
        return Part(places, {name: found[name].cast(kind).combine_chunks() for name, kind in TYPES.items()})


def _kinds(terms: pa.StringArray) -> NDArray[np.int8]:
    kinds = np.full(len(terms), _IRI, np.int8)
    for start, kind in (('"', _LITERAL), ("<<", _TRIPLE), ("_:", _BLANK)):
        kinds[_mask(pc.starts_with(terms, start))] = kind
    return kinds


def _strings(terms: pa.StringArray, literal: Mask) -> Part:
    places = np.flatnonzero(literal & _mask(pc.ends_with(terms, '"')))
    return Part(places, {"datatype": pa.repeat(XSD_STRING, len(places))})


def _numbers(terms: pa.StringArray, literal: Mask, name: str) -> Part:
    places, lexical = _written(terms, literal, name, _NUMBERS[name])
    return Part(places, {"datatype": pa.repeat(XSD + name, len(places)), "number": lexical.cast(pa.float64())})


def _times(terms: pa.StringArray, literal: Mask) -> Part:
    places, lexical = _written(terms, literal, "dateTime", _TIME)
    return Part(places, {"datatype": pa.repeat(XSD + "dateTime", len(places)), "time": lexical.cast(INSTANT)})


def _written(terms: pa.StringArray, literal: Mask, name: str, form: str) -> tuple[NDArray[np.int64], pa.StringArray]:
    """Where literals of a type are written in a form, and their lexical forms."""
    closing = f'"^^<{XSD}{name}>'
    places = np.flatnonzero(literal & _mask(pc.ends_with(terms, closing)))
    lexical = pc.utf8_slice_codeunits(terms.take(pa.array(places)), 1, -len(closing))
    usual = pc.match_substring_regex(lexical, form)
    return places[_mask(usual)], lexical.filter(usual)


def _without(left: Mask, part: Part) -> Mask:
    left[part.places] = False
    return left


def _joined(parts: list[Part], name: str, count: int) -> pa.Array:
    """One facet of all terms."""
    told = [part for part in parts if name in part.facets]
    source = np.full(count, -1, np.int64)
    for part, start in zip(told, np.cumsum([0, *(len(part.places) for part in told)]), strict=False):
        source[part.places] = np.arange(start, start + len(part.places))
    values = pa.chunked_array([part.facets[name] for part in told], TYPES[name]).combine_chunks()
    taken = values.take(pa.array(source, mask=source < 0))
    return taken.dictionary_encode() if pa.types.is_string(taken.type) else taken


def _mask(found: pa.BooleanArray) -> Mask:
    mask: Mask = found.to_numpy(zero_copy_only=False)
    return mask
