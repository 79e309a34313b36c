"""Answers: the table that a compiled query gives, as a value of the harness."""

from __future__ import annotations

import pyarrow as pa
import pyoxigraph as ox

from tests.conformance.graphs import Term
from tests.conformance.results import Answer, Rows, Triples
from triplewire.sparql import CompiledQuery


def answer(compiled: CompiledQuery, table: pa.Table) -> Answer:
    """What the table says. A text in it that is no term is an error."""
    if compiled.form == "ask":
        (found,) = table.column("answer").to_pylist()
        return bool(found)
    if compiled.form == "select":
        return _rows(compiled.projection, table)
    parts = zip(*(table.column(name).to_pylist() for name in ("subject", "predicate", "object")), strict=True)
    return Triples(frozenset(_triple(" ".join(each)) for each in parts))


def _rows(names: tuple[str, ...], table: pa.Table) -> Rows:
    if not names:
        return Rows((), ((),) * table.num_rows)
    columns = [map(_term, table.column(f"v{place}").to_pylist()) for place in range(len(names))]
    return Rows(names, tuple(zip(*columns, strict=True)))


def _term(text: str | None) -> Term | None:
    return None if text is None else _triple(f"<urn:s> <urn:p> {text}").object


def _triple(line: str) -> ox.Triple:
    quads: list[ox.Quad] = list(ox.parse(f"{line} .", format=ox.RdfFormat.N_TRIPLES))
    (found,) = quads
    return ox.Triple(found.subject, found.predicate, found.object)
