"""The quad index: sorted arrays over the copy of the lake, from which index joins are answered.

DuckDB takes milliseconds to plan a join and reads whole columns for it, however few rows are asked for. Here a look-up
is a binary search: rows are in the order of positions, with orders by subject and by object beside them. New rows form
runs of their own, which are merged as they grow. Terms and ids of events are found by their hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import isnan
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.sparql.compiler.index_joins import (
    ID_COLUMNS,
    OBJECT,
    POSITION,
    SUBJECT,
    ColumnComparison,
    IndexJoin,
    IndexScan,
)
from triplewire.sparql.compiler.scan_predicates import ColumnKey, SqlConstant
from triplewire.sparql.statistics import PREDICATE_NUMBER

INDEX_BYTES: Final = 320 * 1024 * 1024
"""Bytes of the quad index, beside the copy: some 55 for a quad, and its terms once. With longer terms there is none."""

INDEX_JOIN_ROWS: Final = 20_000
"""Rows that one step of an index join looks at. DuckDB is faster with more."""

_RUN_RATIO = 4
"""A run is at least so many times as long as the next one: a few runs, in which a row was moved a dozen times."""

Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]
RowColumns: TypeAlias = Mapping[str, NDArray[Any]]

FACETS = ("object_number", "object_time")
COLUMNS = (POSITION, PREDICATE_NUMBER, SUBJECT, OBJECT, *FACETS)
"""The columns of rows that are added."""


@dataclass(frozen=True)
class _Order:
    """The rows of a column in the order of its values."""

    values: NDArray[Any]
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, column: NDArray[Any]) -> Self:
        rows = np.argsort(column, kind="stable").astype(np.int32)
        return cls(column[rows], rows)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.rows.nbytes

    def ranges(self, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # Values of another type would have the whole column converted.
        values = values.astype(self.values.dtype, copy=False)
        return np.searchsorted(self.values, values, "left"), np.searchsorted(self.values, values, "right")


@dataclass(frozen=True)
class _Texts:
    """Texts by number, and by hash."""

    texts: pa.StringArray
    hashes: NDArray[np.int64]

    @classmethod
    def of(cls, texts: pa.StringArray) -> Self:
        return cls(texts, np.fromiter(map(hash, texts.to_pylist()), np.int64, len(texts)))

    @cached_property
    def _by_hash(self) -> _Order:
        return _Order.of(self.hashes)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def nbytes(self) -> int:
        return int(self.texts.nbytes) + self.hashes.nbytes + self._by_hash.nbytes

    def find(self, text: str) -> list[int]:
        """Return the numbers of a text."""
        start, end = self._by_hash.ranges(np.array([hash(text)], np.int64))
        found = self._by_hash.rows[start[0] : end[0]].tolist()
        return [each for each in found if self.texts[each].as_py() == text]

    def merge(self, other: _Texts) -> _Texts:
        return _Texts(pa.concat_arrays([self.texts, other.texts]), np.concatenate([self.hashes, other.hashes]))


@dataclass(frozen=True)
class _Rows:
    """A run of rows in the order of positions, with the events that they belong to."""

    columns: RowColumns
    """With a mask of the rows that have it for each facet."""
    positions: NDArray[np.int64]
    """The positions of the events, in order."""
    graphs: _Texts
    """The id of each event."""

    @classmethod
    def of(cls, rows: pa.Table, events: pa.Table) -> Self:
        columns = {name: rows[name].to_numpy() for name in COLUMNS if name not in FACETS}
        facets = {name: rows[name].fill_null(pa.scalar(0, rows[name].type)).to_numpy() for name in FACETS}
        masks = {_mask(name): rows[name].is_valid().to_numpy() for name in FACETS}
        order = np.argsort(columns[POSITION], kind="stable")
        events = events.sort_by("position")
        return cls(
            {name: each[order] for name, each in (columns | facets | masks).items()},
            events["position"].to_numpy(),
            _Texts.of(events["graph"].combine_chunks()),
        )

    def __len__(self) -> int:
        return len(self.columns[POSITION])

    @cached_property
    def orders(self) -> Mapping[str, _Order]:
        return {name: _Order.of(self.columns[name]) for name in (SUBJECT, OBJECT)}

    @property
    def nbytes(self) -> int:
        columns = sum(each.nbytes for each in (*self.columns.values(), self.positions))
        return columns + sum(each.nbytes for each in self.orders.values()) + self.graphs.nbytes

    def ranges(self, column: str, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the rows with each value begin and end, in the order of the column."""
        if column == POSITION:
            rows = self.columns[POSITION]
            return np.searchsorted(rows, values, "left"), np.searchsorted(rows, values, "right")
        return self.orders[column].ranges(values)

    def rows(self, column: str, places: NDArray[np.int64]) -> Numbers:
        """Return the rows at some places in the order of the column."""
        return places if column == POSITION else self.orders[column].rows[places]

    def merge(self, other: _Rows) -> _Rows:
        columns = {name: np.concatenate([each, other.columns[name]]) for name, each in self.columns.items()}
        order = np.argsort(columns[POSITION], kind="stable")
        positions = np.concatenate([self.positions, other.positions])
        # An event whose quads came in several files may be in both.
        positions, events = np.unique(positions, return_index=True)
        graphs = self.graphs.merge(other.graphs)
        return _Rows(
            {name: each[order] for name, each in columns.items()},
            positions,
            _Texts(graphs.texts.take(pa.array(events)), graphs.hashes[events]),
        )


def _mask(facet: str) -> str:
    return f"has {facet}"


class _Mergeable(Protocol):
    def __len__(self) -> int: ...

    def merge(self, other: Self) -> Self: ...


Run = TypeVar("Run", bound=_Mergeable)


def _add_run(runs: Sequence[Run], run: Run) -> list[Run]:
    """Return the runs with one more, merged into those before it that are not much longer."""
    made = list(runs)
    while made and len(made[-1]) < _RUN_RATIO * len(run):
        run = made.pop().merge(run)
    return [*made, run]


class UnfitJoin(Exception):
    """An index join is left to the query engine."""


class QuadIndex:
    """Indexes of quads whose subjects, objects and predicates have numbers. Rows are only added."""

    def __init__(self, most_bytes: int = INDEX_BYTES, most_rows: int = INDEX_JOIN_ROWS) -> None:
        self._most_bytes, self._most_rows = most_bytes, most_rows
        self._rows: list[_Rows] = []
        self._terms: list[_Texts] = []
        self._predicates: pa.StringArray = pa.array([], pa.string())

    @property
    def rows(self) -> int:
        return sum(map(len, self._rows))

    @property
    def terms(self) -> int:
        return sum(map(len, self._terms))

    @property
    def is_full(self) -> bool:
        """Whether it takes as much memory as it may."""
        return sum(each.nbytes for each in self._rows) + sum(each.nbytes for each in self._terms) > self._most_bytes

    def add(self, rows: pa.Table, events: pa.Table, terms: pa.StringArray, predicates: Sequence[str]) -> None:
        """Add rows with `COLUMNS`, the position and graph of each of their events, and the terms with the next
        numbers, which begin with 1; `predicates` are all by number."""
        if len(terms):
            self._terms = _add_run(self._terms, _Texts.of(terms))
        self._predicates = pa.array(predicates, pa.string())
        if len(rows):
            self._rows = _add_run(self._rows, _Rows.of(rows, events))

    def answer(self, join: IndexJoin) -> pa.RecordBatch | None:
        """Return the rows of an index join; None if it is left to DuckDB, mostly because it looks at too many."""
        try:
            found = _JoinRun(join, self._rows, self._find_constant, self._most_rows).run()
        except UnfitJoin:
            return None
        if join.ask:
            return pa.record_batch([pa.array([found.rows > 0])], ["answer"])
        if not join.outputs:
            return pa.record_batch([pa.array(np.ones(found.rows, np.int32))], ["unit"])
        columns = [self._texts(name, found.columns[alias, name]) for alias, name in join.outputs]
        return pa.record_batch(columns, [f"v{number}" for number in range(len(columns))])

    def _find_constant(self, column: str, text: str) -> NDArray[np.int64]:
        """Return the ids of a subject or object, or the positions of the events with an id."""
        if column == POSITION:
            found = (run.positions[run.graphs.find(text)] for run in self._rows)
            return np.unique(np.concatenate([*found, np.empty(0, np.int64)]))
        start, ids = 1, list[int]()
        for run in self._terms:
            ids += (start + each for each in run.find(text))
            start += len(run)
        return np.array(ids, np.int64)

    def _texts(self, column: str, numbers: NDArray[Any]) -> pa.StringArray:
        if column == PREDICATE_NUMBER:
            return self._predicates.take(pa.array(numbers))
        if column == POSITION:
            return _take([each.graphs.texts for each in self._rows], self._event_numbers(numbers))
        return _take([each.texts for each in self._terms], numbers - 1)

    def _event_numbers(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of each event, counted over all runs."""
        numbers, start = np.zeros(len(positions), np.int64), 0
        for run in self._rows:
            places = np.minimum(np.searchsorted(run.positions, positions), len(run.positions) - 1)
            mine = run.positions[places] == positions
            numbers[mine] = start + places[mine]
            start += len(run.positions)
        return numbers


def _take(chunks: Sequence[pa.StringArray], numbers: NDArray[np.integer[Any]]) -> pa.StringArray:
    """Return texts by their numbers. To take from a chunked array would join its chunks."""
    if len(chunks) == 1:
        return chunks[0].take(pa.array(numbers))
    ends = np.cumsum([len(each) for each in chunks])
    owners = np.searchsorted(ends, numbers, "right")
    order = np.argsort(owners, kind="stable")
    starts = ends - [len(each) for each in chunks]
    found = [
        chunk.take(pa.array(numbers[order][owners[order] == owner] - starts[owner]))
        for owner, chunk in enumerate(chunks)
    ]
    return pa.concat_arrays(found).take(pa.array(np.argsort(order)))


@dataclass(frozen=True)
class _Bindings:
    """Rows of scans that were joined: the columns of theirs that are still needed."""

    rows: int
    columns: Mapping[ColumnKey, NDArray[Any]]


@dataclass(frozen=True)
class _Access:
    """A scan and the column by which its rows are found: for each of the bindings, those with its value."""

    scan: IndexScan
    column: str
    values: NDArray[Any]


class _JoinRun:
    """One run of an index join: the scan that looks at the fewest rows comes next."""

    def __init__(
        self,
        join: IndexJoin,
        runs: Sequence[_Rows],
        find_constant: Callable[[str, str], NDArray[np.int64]],
        most_rows: int,
    ) -> None:
        self._join = join
        self._runs = runs
        self._most_rows = most_rows
        self._constants = {
            scan.alias: [
                (ID_COLUMNS[each.column], find_constant(ID_COLUMNS[each.column], each.constant.text))
                for each in scan.comparisons
                if each.column in ID_COLUMNS
            ]
            for scan in join.scans
        }

    def run(self) -> _Bindings:
        """Raises UnfitJoin."""
        waiting = {each.alias: each for each in self._join.scans}
        bindings = _Bindings(0, {})
        while waiting:
            started = len(waiting) < len(self._join.scans)
            ways = [
                way for each in waiting.values() for way in (self._tied if started else self._first)(each, bindings)
            ]
            access = self._cheapest(ways)
            del waiting[access.scan.alias]
            bindings = self._extend(bindings, access, started=started)
        limit = self._join.limit
        if limit is None or bindings.rows <= limit:
            return bindings
        return _Bindings(limit, {key: each[:limit] for key, each in bindings.columns.items()})

    def _first(self, scan: IndexScan, _: _Bindings) -> Iterable[_Access]:
        return (_Access(scan, column, values) for column, values in self._constants[scan.alias])

    def _tied(self, scan: IndexScan, bindings: _Bindings) -> Iterable[_Access]:
        return (
            _Access(scan, column, bindings.columns[key])
            for column, key in self._ties(scan.alias)
            if key in bindings.columns
        )

    def _ties(self, alias: str) -> list[tuple[str, ColumnKey]]:
        """Return the columns of a scan that are equal to columns, with these."""
        pairs = [*self._join.ties, *((other, one) for one, other in self._join.ties)]
        return [(one[1], other) for one, other in pairs if one[0] == alias]

    def _cheapest(self, ways: Iterable[_Access]) -> _Access:
        counted = [(self._count(each), number, each) for number, each in enumerate(ways)]
        if not counted or (cheapest := min(counted))[0] > self._most_rows:
            raise UnfitJoin
        return cheapest[2]

    def _count(self, access: _Access) -> int:
        """Return how many rows have the values."""
        ranges = (run.ranges(access.column, access.values) for run in self._runs)
        return sum(int((ends - starts).sum()) for starts, ends in ranges)

    def _extend(self, bindings: _Bindings, access: _Access, *, started: bool) -> _Bindings:
        """Join the bindings with the rows of a scan."""
        parts = [(run, *self._extend_by(run, bindings, access)) for run in self._runs]
        alias, none = access.scan.alias, np.empty(0, np.int64)
        olds = np.concatenate([none, *(old for _, old, _ in parts)])
        made = {
            (alias, name): np.concatenate([run.columns[name][rows] for run, _, rows in parts] or [none])
            for name in self._needed(alias)
        }
        kept = {key: each[olds] for key, each in bindings.columns.items()} if started else {}
        return _Bindings(len(olds), kept | made)

    def _needed(self, alias: str) -> set[str]:
        ends = (end for tie in self._join.ties for end in tie)
        return {name for owner, name in (*ends, *self._join.outputs) if owner == alias}

    def _extend_by(self, run: _Rows, bindings: _Bindings, access: _Access) -> tuple[Numbers, Numbers]:
        """Return the bindings that rows of a run extend, and these rows."""
        starts, ends = run.ranges(access.column, access.values)
        counts = ends - starts
        olds = np.repeat(np.arange(len(counts)), counts)
        places = np.arange(len(olds)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
        rows = run.rows(access.column, places)
        kept = self._filter(run, access.scan, rows)
        for column, key in self._ties(access.scan.alias):
            if key[0] == access.scan.alias:
                kept &= run.columns[column][rows] == run.columns[key[1]][rows]
            elif key in bindings.columns:
                kept &= run.columns[column][rows] == bindings.columns[key][olds]
        return olds[kept], rows[kept]

    def _filter(self, run: _Rows, scan: IndexScan, rows: Numbers) -> Mask:
        kept = np.ones(len(rows), np.bool_)
        if scan.predicate is not None:
            kept &= run.columns[PREDICATE_NUMBER][rows] == scan.predicate
        for column, values in self._constants[scan.alias]:
            found = run.columns[column][rows]
            kept &= found == values[0] if len(values) == 1 else np.isin(found, values)
        for each in scan.comparisons:
            if each.column in FACETS:
                kept &= run.columns[_mask(each.column)][rows]
                kept &= _compare(run.columns[each.column][rows], each)
        return kept


def _compare(values: NDArray[Any], comparison: ColumnComparison) -> Mask:
    """Compare as DuckDB does, for which NaN is greater than any number."""
    constant = _constant_value(comparison.constant)
    found: Mask
    match comparison.operator:
        case "=":
            found = values == constant
        case "<":
            found = values < constant
        case "<=":
            found = values <= constant
        case ">":
            found = ~(values <= constant)
        case ">=":
            found = ~(values < constant)
        case "is not NaN":
            found = ~np.isnan(values)
    return found


def _constant_value(constant: SqlConstant) -> float | np.datetime64:
    """Raises UnfitJoin for a constant that DuckDB orders in its own way."""
    if constant.kind == "time":
        try:
            return np.datetime64(datetime.fromisoformat(constant.text) + timedelta(hours=constant.hours), "us")
        except OverflowError:
            raise UnfitJoin from None
    if isnan(number := float(constant.text)):
        raise UnfitJoin
    return number
