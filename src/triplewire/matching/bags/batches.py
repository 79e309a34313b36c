"""Batches: the values that the events of a batch have for each clause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from triplewire.matching.bags.clauses import Clause, How
from triplewire.matching.bags.pairings import Int64, Values
from triplewire.model.terms import RDF, literal
from triplewire.sparql import to_sql
from triplewire.sparql.compiler.bags import define_members
from triplewire.sparql.compiler.contexts import QueryBuild, with_shared_relations
from triplewire.sparql.compiler.operators import compile_operator

COLUMNS = frozenset({"position", "quad", "graph", "subject", "predicate", "object", "stream", "source", "application"})
"""Of `quads`, and of `events`, that are read."""

_FIRST, _NIL = f"<{RDF}first>", f"<{RDF}nil>"


@dataclass(frozen=True)
class Batch:
    """The events by position, in order, and their values, which are numbers of texts."""

    positions: Int64
    texts: pa.Array
    values: Values


def batch(duck: duckdb.DuckDBPyConnection, clauses: Sequence[Clause]) -> Batch:
    """Of the events in the table `quads`; those that lack a predicate are not told of."""
    lists = duck.execute("SELECT count(*) FROM quads WHERE predicate = ?", [_FIRST]).fetchall() != [(0,)]
    told = {key: _told(duck, *key, lists=lists) for key in dict.fromkeys(map(_key, clauses))}
    tables = [told[_key(each)] for each in clauses]
    positions = _common([each["position"].to_numpy() for each in tables])
    objects = pa.chunked_array([chunk for each in tables for chunk in each["object"].chunks], pa.string())
    encoded = objects.combine_chunks().dictionary_encode()
    numbers = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return Batch(positions, encoded.dictionary, _values(tables, positions, numbers))


def _key(clause: Clause) -> tuple[str, bool, str | None]:
    return clause.predicate, clause.how is not How.SOME, clause.header


def _told(duck: duckdb.DuckDBPyConnection, predicate: str, bag: bool, header: str | None, *, lists: bool) -> pa.Table:
    """`position` and `object`; one that is null is no value, but the predicate is there."""
    if header is not None:
        found = pa.table(duck.sql(f"SELECT position, {header} AS object FROM events WHERE {header} IS NOT NULL"))
        texts = pa.array([literal(each) for each in found["object"].to_pylist()], pa.string())
        return pa.table({"position": found["position"], "object": texts})
    if bag and lists:
        return pa.table(duck.sql(_members(predicate)))
    what = "position, subject, object" if bag else "position, object"
    sql = f"SELECT position, object FROM (SELECT DISTINCT {what} FROM quads WHERE predicate = ?)"
    found = pa.table(duck.sql(sql, params=[predicate]))
    if not bag:
        return found
    objects = found["object"]
    return found.set_column(1, "object", pc.if_else(pc.equal(objects, _NIL), pa.scalar(None, pa.string()), objects))


@lru_cache(maxsize=256)
def _members(predicate: str) -> str:
    build = QueryBuild(compile_operator)
    name, _ = define_members(build, predicate, "m")
    return to_sql(with_shared_relations(build, exp.select("position", "object").from_(name)), "duckdb")


def _common(columns: Sequence[Int64]) -> Int64:
    found = np.unique(columns[0])
    for each in columns[1:]:
        found = np.intersect1d(found, each)
    return found


def _values(tables: Sequence[pa.Table], positions: Int64, numbers: Int64) -> Values:
    """Rows of events that lack something are left out."""
    events, begin = len(positions), 0
    starts, held, there = [np.zeros(1, np.int64)], list[np.ndarray](), list[np.ndarray]()
    for table in tables:
        mine = numbers[begin : begin + table.num_rows]
        begin += table.num_rows
        at = table["position"].to_numpy()
        event = np.searchsorted(positions, at)
        known = (event < events) & (positions[np.minimum(event, events - 1)] == at) if events else at < at
        event, mine = event[known], mine[known]
        there.append(np.bincount(event, minlength=events) > 0)
        event, mine = event[mine >= 0], mine[mine >= 0]
        held.append(mine[np.argsort(event, kind="stable")])
        starts.append(starts[-1][-1] + np.cumsum(np.bincount(event, minlength=events)))
    value = np.concatenate(held).astype(np.int32)
    return Values(np.concatenate(starts).astype(np.int64), value, np.concatenate(there), events)
