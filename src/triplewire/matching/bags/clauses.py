"""Bag clauses: a query with bags as independent constraints, each on the values of one predicate, and the values that
a batch has for them.

A filter is a conjunction of constraints that share no variable, so each can be decided by itself: some value of the
predicate is in a relation with a constant, or all values together can be paired with several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from triplewire.kernels.arrays import Int64
from triplewire.matching.bags.pairing import BagTest, ClauseValues
from triplewire.matching.shapes import Shape
from triplewire.model.terms import RDF, literal
from triplewire.sparql import Apply, Const, Expression, Param, Pattern, Query, Var, to_sql
from triplewire.sparql.algebra import HEADER_PREDICATES, Bag, Basic, Filter, Join, Operator
from triplewire.sparql.compiler.bags import define_members
from triplewire.sparql.compiler.contexts import QueryBuild, with_shared_relations
from triplewire.sparql.compiler.operators import compile_operator
from triplewire.sparql.traversal import iterate_parts

VALUE = Var("value")
_HEADERS = frozenset(
    term for term, (name, _) in HEADER_PREDICATES.items() if name in ("stream", "source", "application")
)


_BAGS = {"#=": BagTest.EQUAL, "#<": BagTest.SUB, "#>": BagTest.SUPER}


@dataclass(frozen=True)
class BagElement:
    """An element of a bag. `relation` is a condition on `VALUE` with parameters from 0 on; None if the value must
    equal the constant itself. `constants_at` are the numbers of the shape's constants for these parameters."""

    relation: Expression | None
    constants_at: tuple[int, ...]


@dataclass(frozen=True)
class BagClause:
    """A condition on all values of a predicate."""

    predicate: str
    how: BagTest
    elements: tuple[BagElement, ...]

    @property
    def header(self) -> str | None:
        """The header of the event, for a predicate that is not stored."""
        return HEADER_PREDICATES[self.predicate][0] if self.how is BagTest.SOME and self.predicate in _HEADERS else None


def split_clauses(shape: Shape) -> tuple[BagClause, ...] | None:
    """The clauses of a query with bags; None if it has no bags, or other parts."""
    query = shape.query
    if not isinstance(query, Query) or query.form != "ask" or shape.stream:
        return None
    found = [part for operator in _join_operands(query.where) for part in _parts(operator)]
    made = tuple(each for each in found if each is not None)
    bagged = any(each.how is not BagTest.SOME for each in made)
    return made if bagged and len(made) == len(found) and _are_independent(query.where) else None


def _join_operands(operator: Operator) -> Iterator[Operator]:
    if isinstance(operator, Join):
        yield from _join_operands(operator.left)
        yield from _join_operands(operator.right)
    else:
        yield operator


def _parts(operator: Operator) -> Iterator[BagClause | None]:
    match operator:
        case Bag(predicate, relation, member, elements):
            made = [_element(each, member) for each in elements]
            known = tuple(each for each in made if each is not None)
            yield BagClause(predicate.term, _BAGS[relation], known) if len(known) == len(made) else None
        case Basic(patterns):
            yield from (_clause(each, ()) for each in patterns)
        case Filter(Basic(patterns), conditions):
            asked = [each for each in conditions if len(_variables(each)) != 1]
            yield from (None for _ in asked)
            yield from (_clause(each, conditions) for each in patterns)
        case _:
            yield None


def _clause(pattern: Pattern, conditions: Sequence[Expression]) -> BagClause | None:
    """The clause of a pattern with the conditions on its object."""
    predicate, object_ = pattern.predicate, pattern.object
    stored = isinstance(predicate, Const) and (predicate.term not in HEADER_PREDICATES or predicate.term in _HEADERS)
    if not isinstance(predicate, Const) or not stored or pattern.graph or not isinstance(pattern.subject, Var):
        return None
    if isinstance(object_, Param):
        return BagClause(predicate.term, BagTest.SOME, (BagElement(None, (object_.index,)),))
    if not isinstance(object_, Var):
        return None
    mine = [each for each in conditions if _variables(each) == {object_.name}]
    element = _element(mine[0], object_.name) if len(mine) == 1 else None
    return None if element is None else BagClause(predicate.term, BagTest.SOME, (element,))


def _element(condition: Expression, member: str) -> BagElement | None:
    """The element of a condition; None if it depends on more than the value and constants."""
    if _variables(condition) != {member} or any(part == Apply("now", ()) for part in iterate_parts(condition)):
        return None
    constants_at = list[int]()
    relation = _number_parameters(condition, constants_at)
    return BagElement(relation, tuple(constants_at))


def _number_parameters(part: Expression, constants_at: list[int]) -> Expression:
    match part:
        case Var():
            return VALUE
        case Param(index):
            constants_at.append(index)
            return replace(part, index=len(constants_at) - 1)
        case Apply(op, args):
            return Apply(op, tuple(_number_parameters(each, constants_at) for each in args))
    return part


def _variables(expression: Expression) -> set[str]:
    return {part.name for part in iterate_parts(expression) if isinstance(part, Var)}


def _are_independent(where: Operator) -> bool:
    """Do the patterns share no variable but the event, which is the same for all headers?"""
    patterns = [part for part in iterate_parts(where) if isinstance(part, Pattern)]
    objects = [part.object.name for part in patterns if isinstance(part.object, Var)]
    stored = [
        part
        for part in patterns
        if not isinstance(part.predicate, Const) or part.predicate.term not in HEADER_PREDICATES
    ]
    subjects = [part.subject.name for part in stored if isinstance(part.subject, Var)]
    events = {part.subject.name for part in patterns if part not in stored and isinstance(part.subject, Var)}
    members = [part.member for part in iterate_parts(where) if isinstance(part, Bag)]
    named = [*objects, *subjects, *members, *events]
    return len(named) == len(set(named))


COLUMNS = frozenset({"position", "quad", "graph", "subject", "predicate", "object", "stream", "source", "application"})
"""The columns of `quads`, and of `events`, that are read."""

_FIRST, _NIL = f"<{RDF}first>", f"<{RDF}nil>"


@dataclass(frozen=True)
class BagBatch:
    """The events by position, in order, and their values as numbers of texts."""

    positions: Int64
    texts: pa.Array
    values: ClauseValues


def read_batch(duck: duckdb.DuckDBPyConnection, clauses: Sequence[BagClause]) -> BagBatch:
    """Read the events in the table `quads`; those that lack a predicate are left out."""
    lists = duck.execute("SELECT count(*) FROM quads WHERE predicate = ?", [_FIRST]).fetchall() != [(0,)]
    objects_by_key = {key: _read_objects(duck, *key, lists=lists) for key in dict.fromkeys(map(_key, clauses))}
    tables = [objects_by_key[_key(each)] for each in clauses]
    positions = _common_positions([each["position"].to_numpy() for each in tables])
    objects = pa.chunked_array([chunk for each in tables for chunk in each["object"].chunks], pa.string())
    encoded = objects.combine_chunks().dictionary_encode()
    numbers = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return BagBatch(positions, encoded.dictionary, _values(tables, positions, numbers))


def _key(clause: BagClause) -> tuple[str, bool, str | None]:
    return clause.predicate, clause.how is not BagTest.SOME, clause.header


def _read_objects(
    duck: duckdb.DuckDBPyConnection, predicate: str, bag: bool, header: str | None, *, lists: bool
) -> pa.Table:
    """Rows of `position` and `object`; a null object means that the predicate is there, without a value."""
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


def _common_positions(columns: Sequence[Int64]) -> Int64:
    found = np.unique(columns[0])
    for each in columns[1:]:
        found = np.intersect1d(found, each)
    return found


def _values(tables: Sequence[pa.Table], positions: Int64, numbers: Int64) -> ClauseValues:
    """The values of a clause, without rows of events that lack something."""
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
    return ClauseValues(np.concatenate(starts).astype(np.int64), value, np.concatenate(there), events)
