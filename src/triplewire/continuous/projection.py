"""Projection of complete joins: filters, computed and projected terms as matches, CONSTRUCT answers as events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.continuous.structures import QueryStructure
from triplewire.model import MATCHES, Event, EventHeaders, format_position
from triplewire.model.subscriptions import ANSWER, ContinuousQuery
from triplewire.sparql.compiler.operators import compile_rows
from triplewire.sparql.conjunctions import RowStep, used_variables
from triplewire.sparql.construct import build_graph
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.queries import ensure_recursion_limit


@dataclass(frozen=True)
class Projection:
    """Of queries that tell the same of the same slots: the slot of each variable that is needed; what is computed and
    checked; and what is told."""

    slots: tuple[tuple[str, int], ...]
    steps: tuple[RowStep, ...]
    told: tuple[str, ...]

    @classmethod
    def of(cls, structure: QueryStructure, slots: Mapping[str, int]) -> Projection:
        """The names of variables do not matter where nothing is computed of them."""
        if not structure.steps:
            places = [slots[name] for name in structure.projection]
            return cls(tuple((str(each), each) for each in places), (), tuple(map(str, places)))
        used = frozenset(structure.projection).union(*map(used_variables, structure.steps))
        return cls(tuple((n, at) for n, at in slots.items() if n in used), structure.steps, structure.projection)

    def terms(self, answers: pa.Table) -> tuple[pa.Table, list[pa.Array]]:
        """Of answers, those that pass; and of these the terms of each variable that is told."""
        split = pc.split_pattern(answers["text"].combine_chunks().cast(pa.large_string()), "\t")
        columns = {name: pc.list_element(split, slot).cast(pa.string()) for name, slot in self.slots}
        if not self.steps:
            return answers, [columns[name] for name in self.told]
        rows = pa.table({"row": np.arange(answers.num_rows), **{f"v{n}": c for n, c in enumerate(columns.values())}})
        found = _run_sql(_projection_sql(self), rows).sort_by("row")
        return answers.take(found["row"]), [found[f"v{n}"].combine_chunks() for n in range(len(self.told))]


@lru_cache(maxsize=1_000)
def _projection_sql(tail: Projection) -> str:
    return compile_rows([name for name, _ in tail.slots], tail.steps, tail.told)


def _run_sql(sql: str, rows: pa.Table) -> pa.Table:
    duck = _open_engine()
    duck.register("rows", rows)
    try:
        return pa.table(duck.sql(sql))
    finally:
        duck.unregister("rows")


@cache
def _open_engine() -> duckdb.DuckDBPyConnection:
    """Of this process."""
    ensure_recursion_limit()
    found = duckdb.connect(config={"threads": 1})
    register_functions(found)
    return found


@dataclass
class GroupProjections:
    """What is told to each group, by the number that it has in a plan: its own number, and its tail."""

    numbers: list[int] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)
    known: dict[Projection, int] = field(default_factory=dict)

    def add(self, number: int, tail: Projection) -> None:
        self.numbers.append(number)
        self.tails.append(self.known.setdefault(tail, len(self.known)))


@dataclass(frozen=True)
class ProjectionTable:
    """The same, as it travels."""

    numbers: np.ndarray
    tails: np.ndarray
    kinds: Sequence[Projection]

    @classmethod
    def of(cls, groups: GroupProjections) -> ProjectionTable:
        return cls(np.array(groups.numbers, np.int64), np.array(groups.tails, np.int32), list(groups.known))

    def matches(self, answers: pa.Table) -> pa.Table:
        """Answers as `MATCHES`: one row for each, with the oldest position as its value."""
        if not answers.num_rows:
            return MATCHES.empty_table()
        groups = answers["group"].to_numpy()
        order = np.argsort(self.tails[groups], kind="stable")
        parts = [MATCHES.empty_table()]
        ordered, tails = answers.take(pa.array(order)), self.tails[groups][order]
        for tail in np.unique(tails):
            first, last = np.searchsorted(tails, [tail, tail + 1])
            parts.append(self._told(self.kinds[tail], ordered.slice(first, last - first)))
        return pa.concat_tables(parts)

    def _told(self, tail: Projection, answers: pa.Table) -> pa.Table:
        answers, terms = tail.terms(answers)
        count = answers.num_rows
        columns = [pa.array(["0"] * count, pa.string()), *terms]
        width = len(columns)
        flat = pa.concat_arrays(columns).take(pa.array(np.arange(width * count).reshape(width, count).T.ravel()))
        offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
        return pa.Table.from_arrays(
            [
                answers["newest"],
                pa.nulls(count, pa.int64()),
                pa.array(self.numbers[answers["group"].to_numpy()]),
                answers["oldest"].cast(pa.float64()),
                pa.nulls(count, pa.list_(pa.int32())),
                pa.ListArray.from_arrays(offsets, flat),
                pa.nulls(count, pa.string()),
            ],
            schema=MATCHES,
        )


# Constructions: answers of an unbounded CONSTRUCT, as events that are published.


def construct_events(
    matches: pa.Table, queries: Mapping[int, tuple[ContinuousQuery, QueryStructure]]
) -> Iterator[tuple[str, Event]]:
    """One event for each query and position: what all solutions make that the event there has completed. Matches are
    in order of position; `queries` are by group."""
    for group, (query, structure) in queries.items():
        rows = matches.filter(pa.array(matches["group"].to_numpy() == group))
        rows = rows.filter(pa.array(rows["value"].to_numpy() > query.after))
        positions = rows["position"].to_numpy()
        marks = np.flatnonzero(np.diff(positions, prepend=-1))
        for first, last in pairwise([*marks, len(positions)]):
            yield from _construct_event(
                query, structure, int(positions[first]), rows["terms"].slice(first, last - first)
            )


def _construct_event(
    query: ContinuousQuery, structure: QueryStructure, position: int, terms: pa.ChunkedArray
) -> Iterator[tuple[str, Event]]:
    solutions = [dict(zip(structure.projection, each[1:], strict=True)) for each in terms.to_pylist()]
    triples = build_graph(structure.template, (), solutions, f"{query.id} {position}")
    if triples and query.into is not None:
        headers = EventHeaders(extensions={"query": query.id, "position": format_position(position)})
        yield (
            query.into,
            Event(f"{ANSWER}{query.id}:{format_position(position)}", "\n".join(map("\t".join, triples)), headers),
        )
