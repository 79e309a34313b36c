"""Tails: what is told of a combination of triples once it is whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model import MATCHES
from triplewire.ongoing.structures import Structure
from triplewire.sparql.compiler.operators import compile_rows
from triplewire.sparql.conjunctions import RowStep, used_variables
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.queries import ensure_recursion_limit


@dataclass(frozen=True)
class Tail:
    """Of queries that tell the same of the same slots: the slot of each variable that is needed; what is computed and
    checked; and what is told."""

    slots: tuple[tuple[str, int], ...]
    steps: tuple[RowStep, ...]
    told: tuple[str, ...]

    @classmethod
    def of(cls, structure: Structure, slots: Mapping[str, int]) -> Tail:
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
        found = _run(_sql(self), rows).sort_by("row")
        return answers.take(found["row"]), [found[f"v{n}"].combine_chunks() for n in range(len(self.told))]


@lru_cache(maxsize=1_000)
def _sql(tail: Tail) -> str:
    return compile_rows([name for name, _ in tail.slots], tail.steps, tail.told)


def _run(sql: str, rows: pa.Table) -> pa.Table:
    duck = _engine()
    duck.register("rows", rows)
    try:
        return pa.table(duck.sql(sql))
    finally:
        duck.unregister("rows")


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """Of this process."""
    ensure_recursion_limit()
    found = duckdb.connect(config={"threads": 1})
    register_functions(found)
    return found


@dataclass
class Groups:
    """What is told to each group, by the number that it has in a plan: its own number, and its tail."""

    numbers: list[int] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)
    known: dict[Tail, int] = field(default_factory=dict)

    def add(self, number: int, tail: Tail) -> None:
        self.numbers.append(number)
        self.tails.append(self.known.setdefault(tail, len(self.known)))


@dataclass(frozen=True)
class Speech:
    """The same, as it travels."""

    numbers: np.ndarray
    tails: np.ndarray
    kinds: Sequence[Tail]

    @classmethod
    def of(cls, groups: Groups) -> Speech:
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

    def _told(self, tail: Tail, answers: pa.Table) -> pa.Table:
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
