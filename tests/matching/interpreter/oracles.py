"""Judges: what the evaluator says of the same subscription and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any

import duckdb
import pyarrow as pa

from tests.matching.subscriptions import registered
from tests.matching.test_evaluator import entries
from triplewire.matching.evaluator import Evaluator, open_evaluator_engine
from triplewire.matching.interpreter.matcher import NO_MATCH, InterpreterBatch, PairResult, interpret_shape
from triplewire.matching.shapes import LiftedShape, Shape, lift
from triplewire.matching.tables import OntologyClosure
from triplewire.model import Event, Kind, Subscription
from triplewire.sparql import Query, parse_query

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
_SERIALS = count()
PREFIXES = f"PREFIX : <{EX}> PREFIX xsd: <{XSD}> PREFIX tw: <https://triplewire.dev/ns#> "


def event(*lines: tuple[str, str, str], id: str = f"{EX}event") -> Event:
    """Each line a triple of terms; names without brackets are completed."""
    terms = [[each if each[0] in '"<' else f"<{EX}{each}>" for each in line] for line in lines]
    return Event(id, "\n".join(map("\t".join, terms)))


def lifted(sparql: str, kind: Kind = Kind.BINDINGS, stream: str | None = None) -> LiftedShape:
    """With the shape as it is after it was in the registry."""
    found = lift(parse_query(sparql), solutions=kind is Kind.BINDINGS, stream=stream)
    return LiftedShape(Shape.from_value(found.shape.to_value()), found.constants)


def batch(events: Sequence[Event]) -> pa.Table:
    return entries(dict(enumerate(events, start=10)))


def singly(
    sparql: str, table: pa.Table, kind: Kind = Kind.BINDINGS, stream: str | None = None
) -> list[PairResult | None]:
    """What is decided one by one of each event; None for what is not."""
    asked = lifted(sparql, kind, stream)
    subscription = Subscription("1", sparql, kind, asked.shape.key, asked.constants, stream, since=1)
    found, left = InterpreterBatch(table).decide(
        [(place, subscription) for place in range(table.num_rows)], interpret_shape(asked.shape)
    )
    told = _rows(found)
    undecided = {place for place, _ in left}
    positions = table["position"].to_pylist()
    return [None if place in undecided else told.get(position, NO_MATCH) for place, position in enumerate(positions)]


def evaluated(sparql: str, table: pa.Table, kind: Kind = Kind.BINDINGS, stream: str | None = None) -> list[PairResult]:
    """What the evaluator says of each."""
    judge = Evaluator(*_connected(), f"judge{next(_SERIALS)}")
    judge.apply(registered(1, sparql, kind, stream), 1_000_000)
    told = _rows(judge.match(table))
    return [told.get(position, NO_MATCH) for position in table["position"].to_pylist()]


@cache
def _connected() -> tuple[duckdb.DuckDBPyConnection, OntologyClosure]:
    """One for all, as to open it takes longer than what is asked."""
    duck = open_evaluator_engine()
    return duck, OntologyClosure(duck)


def alike(sparql: str, one: PairResult, other: PairResult) -> bool:
    """The same row of `MATCHES`, but for the order of solutions that their ORDER BY leaves open."""
    if one == other:
        return True
    query = lifted(sparql).shape.query
    ordered = isinstance(query, Query) and bool(getattr(query.where, "order", ()))
    if not ordered or one.terms is None or other.terms is None:
        return False
    width = 1 + len(query.projection)
    counts = [
        Counter(tuple(terms[at + 1 : at + width]) for at in range(0, len(terms), width))
        for terms in (one.terms, other.terms)
    ]
    return counts[0] == counts[1]


def _rows(found: pa.Table) -> Mapping[int, PairResult]:
    made: list[Mapping[str, Any]] = found.to_pylist()
    assert all(each["limit"] is None for each in made)
    return {each["position"]: PairResult(True, each["solutions"], each["terms"]) for each in made}
