"""Results of matches: expands a match, with its event and shape, into the bindings or the graph that a subscriber
reads.

A solution is a list of quad numbers, one for each pattern of the shape. A variable is read off the first pattern that
holds it. Negative numbers stand for the event's own metadata (see `METADATA`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triplewire.matching.shapes import Shape
from triplewire.model import Subscription
from triplewire.model.clock import format_timestamp
from triplewire.model.terms import XSD, boolean_document, iri, literal, results_document
from triplewire.rdf import N_TRIPLES, to_ntriples
from triplewire.sparql import Conjunction, Query
from triplewire.sparql.construct import build_graph

METADATA = {-1: "stream", -2: "source", -3: "application", -4: "time", -5: "received"}
"""The headers of an event, by the number of their virtual quad in a solution."""


def expand_bindings(
    shape: Shape, constants: tuple[str, ...], entry: Mapping[str, Any], solutions: Sequence[int]
) -> dict[str, Any]:
    """The solutions of one match as a SPARQL 1.1 JSON results document. `entry` is a row of an `ENTRIES` table."""
    return results_document(shape.query.projection, _expand_rows(shape, entry, solutions))


def expand_terms(shape: Shape, terms: Sequence[str | None]) -> dict[str, Any]:
    """The same for solutions that are terms: for each its rank, and a term for each variable."""
    assert isinstance(shape.query, Query)
    if shape.query.form == "ask":
        return boolean_document(True)
    return results_document(shape.query.projection, _split_terms(shape, terms))


def expand_graph(
    shape: Shape,
    subscription: Subscription,
    entry: Mapping[str, Any],
    solutions: Sequence[int],
    terms: Sequence[str | None],
) -> dict[str, Any]:
    """The graph that a CONSTRUCT builds from one match: `graph` has it as N-Triples, and `format` says so.

    Solutions are those of the match: numbers of quads for a conjunction, terms for a general shape. A graph without
    triples is not a match, so there is at least one. Each triple occurs once, in the order of the solutions.
    """
    whole = isinstance(shape.query, Query)
    rows = _split_terms(shape, terms) if whole else _expand_rows(shape, entry, solutions)
    bound = (dict(zip(shape.query.projection, row, strict=True)) for row in rows)
    name = f"{subscription.id} {entry['position']}"
    triples = build_graph(shape.template, subscription.constants, bound, name)
    return {"format": N_TRIPLES.media_type, "graph": to_ntriples("\n".join(map("\t".join, triples)))}


def _split_terms(shape: Shape, terms: Sequence[str | None]) -> list[tuple[str | None, ...]]:
    width = 1 + len(shape.query.projection)
    return [tuple(terms[start + 1 : start + width]) for start in range(0, len(terms), width)]


def _expand_rows(shape: Shape, entry: Mapping[str, Any], solutions: Sequence[int]) -> list[tuple[str | None, ...]]:
    query = shape.query
    assert isinstance(query, Conjunction)
    rows = list(_solutions(shape, entry, solutions))
    if query.distinct:
        rows = list(dict.fromkeys(rows))
    return rows[query.offset : None if query.limit is None else query.offset + query.limit]


def _solutions(shape: Shape, entry: Mapping[str, Any], solutions: Sequence[int]) -> Iterator[tuple[str | None, ...]]:
    assert isinstance(shape.query, Conjunction)
    # Without patterns there is one solution, of no quads.
    width = len(shape.query.patterns)
    lines = entry["text"].split("\n")
    if not width:
        yield (None,) * len(shape.places)
        return
    for start in range(0, len(solutions), width):
        yield tuple(
            None if place is None else _term(entry, lines, solutions[start + place[0]], place[1])
            for place in shape.places
        )


def _term(entry: Mapping[str, Any], lines: Sequence[str], number: int, slot: int) -> str:
    if slot == 3 or (number < 0 and slot == 0):
        return iri(entry["event"])
    if number < 0:
        return _metadata(entry, METADATA[number])
    return lines[number].split("\t")[slot]


def _metadata(entry: Mapping[str, Any], name: str) -> str:
    value = entry[name]
    return literal(format_timestamp(value), XSD + "dateTime") if name in ("time", "received") else literal(value)
