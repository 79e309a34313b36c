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
from triplewire.model import MATCHES, Event, EventHeaders, format_position, no_matches
from triplewire.model.subscriptions import ANSWER, ContinuousQuery
from triplewire.sparql.compiler.operators import compile_rows
from triplewire.sparql.conjunctions import RowStep, used_variables
from triplewire.sparql.construct import build_graph
from triplewire.sparql.dialects.duckdb import open_engine
from triplewire.sparql.queries import ensure_recursion_limit


@dataclass(frozen=True)
class Projection:
    """The projection of queries that report the same variables of the same slots: `slots` of the variables that are
    needed, `steps` that compute and filter, and the reported `variables`."""

    slots: tuple[tuple[str, int], ...]
    steps: tuple[RowStep, ...]
    variables: tuple[str, ...]

    @classmethod
    def for_structure(cls, structure: QueryStructure, slots: Mapping[str, int]) -> Projection:
        """Without steps, the names of variables are replaced by their slots, so that more queries share it."""
        if not structure.steps:
            numbers = [slots[name] for name in structure.projection]
            return cls(tuple((str(each), each) for each in numbers), (), tuple(map(str, numbers)))
        used = frozenset(structure.projection).union(*map(used_variables, structure.steps))
        return cls(tuple((n, at) for n, at in slots.items() if n in used), structure.steps, structure.projection)

    def project(self, answers: pa.Table) -> tuple[pa.Table, list[pa.Array]]:
        """Return the answers that pass the filters, and a column of terms for each variable."""
        split = pc.split_pattern(answers["text"].combine_chunks().cast(pa.large_string()), "\t")
        columns = {name: pc.list_element(split, slot).cast(pa.string()) for name, slot in self.slots}
        if not self.steps:
            return answers, [columns[name] for name in self.variables]
        rows = pa.table({"row": np.arange(answers.num_rows), **{f"v{n}": c for n, c in enumerate(columns.values())}})
        solutions = _run_sql(_projection_sql(self), rows).sort_by("row")
        return answers.take(solutions["row"]), [solutions[f"v{n}"].combine_chunks() for n in range(len(self.variables))]


@lru_cache(maxsize=1_000)
def _projection_sql(projection: Projection) -> str:
    return compile_rows([name for name, _ in projection.slots], projection.steps, projection.variables)


def _run_sql(sql: str, rows: pa.Table) -> pa.Table:
    duck = _process_engine()
    duck.register("rows", rows)
    try:
        return pa.table(duck.sql(sql))
    finally:
        duck.unregister("rows")


@cache
def _process_engine() -> duckdb.DuckDBPyConnection:
    ensure_recursion_limit()
    return open_engine()


@dataclass(frozen=True)
class ProjectionTable:
    """The projection of each group, by the number that the group has in a plan: `groups` has its own number, `indexes`
    the index of its projection."""

    groups: np.ndarray
    indexes: np.ndarray
    projections: Sequence[Projection]

    def to_matches(self, answers: pa.Table) -> pa.Table:
        """Return answers as `MATCHES`: one row for each, with the oldest position as its value."""
        if not answers.num_rows:
            return no_matches()
        indexes = self.indexes[answers["group"].to_numpy()]
        order = np.argsort(indexes, kind="stable")
        parts = [no_matches()]
        ordered, indexes = answers.take(pa.array(order)), indexes[order]
        for each in np.unique(indexes):
            first, last = np.searchsorted(indexes, [each, each + 1])
            parts.append(self._project(self.projections[each], ordered.slice(first, last - first)))
        return pa.concat_tables(parts)

    def _project(self, projection: Projection, answers: pa.Table) -> pa.Table:
        answers, terms = projection.project(answers)
        count = answers.num_rows
        columns = [pa.array(["0"] * count, pa.string()), *terms]
        width = len(columns)
        flat = pa.concat_arrays(columns).take(pa.array(np.arange(width * count).reshape(width, count).T.ravel()))
        offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
        return pa.Table.from_arrays(
            [
                answers["newest"],
                pa.nulls(count, pa.int64()),
                pa.array(self.groups[answers["group"].to_numpy()]),
                answers["oldest"].cast(pa.float64()),
                pa.nulls(count, pa.list_(pa.int32())),
                pa.ListArray.from_arrays(offsets, flat),
                pa.nulls(count, pa.string()),
            ],
            schema=MATCHES,
        )


@dataclass
class GroupProjections:
    """The projections of groups, in the order in which groups are added to a network."""

    _groups: list[int] = field(default_factory=list)
    _indexes: list[int] = field(default_factory=list)
    _known: dict[Projection, int] = field(default_factory=dict)

    def add(self, group: int, projection: Projection) -> None:
        self._groups.append(group)
        self._indexes.append(self._known.setdefault(projection, len(self._known)))

    def to_table(self) -> ProjectionTable:
        return ProjectionTable(np.array(self._groups, np.int64), np.array(self._indexes, np.int32), list(self._known))


def construct_events(
    matches: pa.Table, queries: Mapping[int, tuple[ContinuousQuery, QueryStructure]]
) -> Iterator[tuple[str, Event]]:
    """Yield the events that CONSTRUCT queries publish, each with its stream: one for each query and position, with the
    triples of all solutions that were completed there. Matches are in order of position; `queries` are by group."""
    for group, (query, structure) in queries.items():
        rows = matches.filter(pa.array(matches["group"].to_numpy() == group))
        rows = rows.filter(pa.array(rows["value"].to_numpy() > query.after))
        positions = rows["position"].to_numpy()
        starts = np.flatnonzero(np.diff(positions, prepend=-1))
        for first, last in pairwise([*starts, len(positions)]):
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
