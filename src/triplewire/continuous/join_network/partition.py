"""Join partitions: each holds the triples and partial results of some buckets and joins them.

A partition does everything that its own rows allow; rows for other partitions leave it. The router turns events into
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from triplewire.continuous.join_network.kernels import allocate_buffers, join_partials, join_triples, route_events
from triplewire.continuous.join_network.layout import (
    ANSWERS,
    PARTIAL,
    PROBE,
    ROWS,
    NetworkEvents,
    NetworkPlan,
    OutputBuffers,
    StoredRows,
    answers_to_table,
    rows_to_table,
    table_to_rows,
)
from triplewire.continuous.join_network.store import RowStore, empty_index
from triplewire.kernels.arrays import Bytes, Flags, Int32, Records

BUCKETS = 64
"""Buckets that addresses are grouped into. A partition has some of them, so that the number of partitions may differ
from machine to machine."""

_EMPTY_INDEX = empty_index(1)


@dataclass(frozen=True)
class PartitionBuckets:
    """The buckets of a partition: every `of`-th, from `number` on."""

    number: int = 0
    of: int = 1

    def has(self, rows: Records) -> Flags:
        """Return the rows that are stored here."""
        return np.asarray((rows["address"] < 0) | (partition_of(rows["address"], self.of) == self.number))

    def lacks(self, rows: Records) -> Flags:
        """Return the rows that are stored in other partitions, there too or only there."""
        return np.asarray((rows["address"] < 0) | (partition_of(rows["address"], self.of) != self.number)) & (
            self.of > 1
        )


def partition_of(addresses: Records, partitions: int) -> Records:
    found: Records = addresses % BUCKETS % partitions
    return found


def split_by_partition(rows: pa.Table, partitions: int, but: int | None = None) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows for each partition. Rows for every partition go to all but the one that they come from."""
    addresses = rows["address"].to_numpy()
    where = partition_of(addresses, partitions)
    for partition in range(partitions):
        here = (where == partition) | (addresses < 0)
        if partition != but and here.any():
            yield partition, rows if here.all() else rows.filter(pa.array(here))


@dataclass
class JoinOutput:
    """The outcome of some rows: rows for other partitions, answers, and the rows that were stored here."""

    leaving: pa.Table
    answers: pa.Table
    stored: pa.Table


@dataclass
class _RowBatch:
    """Rows with their texts, and the nodes at which they wait."""

    rows: Records
    text: Bytes
    numbers: Int32

    def held(self) -> StoredRows:
        return StoredRows(self.rows, self.numbers, self.text, self.numbers, _EMPTY_INDEX)

    def some(self, which: Flags) -> _RowBatch:
        return _RowBatch(self.rows[which], self.text, self.numbers[which])

    def table(self) -> pa.Table:
        return rows_to_table(self.rows, self.text)


@dataclass
class _KernelOutput:
    """The output of a kernel, in pieces."""

    batches: list[_RowBatch] = field(default_factory=list)
    answers: list[pa.Table] = field(default_factory=list)


def _locate_ids(ids: Records, sought: Records) -> tuple[Records, Flags]:
    """Return the index of each sought id, and whether it is there at all."""
    if not len(ids):
        return np.zeros(len(sought), np.int64), np.zeros(len(sought), np.bool_)
    order = np.argsort(ids, kind="stable")
    places = order[np.minimum(np.searchsorted(ids[order], sought), len(ids) - 1)]
    return places, np.asarray(ids[places] == sought)


class KernelBuffers:
    """Output buffers of kernels, which grow if one row needs more than they have."""

    def __init__(self, rows: int, text: int, answers: int, answer_text: int, ports: int = 0) -> None:
        self.out = allocate_buffers(rows, text, answers, answer_text, ports)

    def drain(
        self, step: Callable[[int, OutputBuffers], int], count: int
    ) -> Iterator[tuple[Records, Bytes, Records, Bytes]]:
        """Yield all that a step emits for `count` inputs, as much as the buffers hold at a time."""
        done = 0
        while done < count:
            out = self.out
            out.counts[:] = 0
            reached = step(done, out)
            if reached == done:
                sizes = (2 * len(each) for each in (out.rows, out.text, out.answers, out.answer_text))
                self.out = allocate_buffers(*sizes)._replace(seen=out.seen)
                continue
            done = reached
            columns = zip((out.rows, out.text, out.answers, out.answer_text), out.counts.tolist(), strict=True)
            rows, text, answers, answer_text = (column[:count].copy() for column, count in columns)
            yield rows, text, answers, answer_text


class NodeNumbers:
    """Numbers of nodes in a plan, by id."""

    def __init__(self, plan: NetworkPlan) -> None:
        self._ids = plan.nodes["id"]

    def of_rows(self, rows: Records) -> Int32:
        """Return the node of each row; -1 for triples, and for nodes that are not in the plan."""
        places, known = _locate_ids(self._ids, rows["id"])
        return np.where(known & (rows["kind"] == PARTIAL), places, -1).astype(np.int32)


class JoinPartition:
    """The triples and partial results of some buckets: a pure function of rows and plans."""

    def __init__(self, plan: NetworkPlan, buckets: PartitionBuckets) -> None:
        self.buckets = buckets
        self.triples, self.partials = RowStore(), RowStore()
        self._buffers = KernelBuffers(16_384, 1 << 21, 4_096, 1 << 19)
        self._cuts = np.zeros(8, np.int64)
        self.adopt(plan)

    def adopt(self, plan: NetworkPlan) -> None:
        """Follow another plan from now on."""
        self.plan, self._numbers = plan, NodeNumbers(plan)
        self.partials.renumber(self._numbers.of_rows(self.partials.rows))

    def process(self, table: pa.Table) -> JoinOutput:
        """Join new rows: triples with the partial results that wait here, then new partial results with all triples."""
        fresh = self._batch(*table_to_rows(table))
        triples, waiting = fresh.some(fresh.rows["kind"] != PARTIAL), [fresh.some(fresh.rows["kind"] == PARTIAL)]
        found = _KernelOutput()
        if len(triples.rows):
            self._meet(join_triples, triples.held(), self.partials.held(), found)
            triples = triples.some(triples.rows["kind"] != PROBE)
            self.triples.insert(triples.rows, triples.numbers, triples.text)
        leaving, kept = list[pa.Table](), [triples.table()]
        while waiting or found.batches:
            own = [each.some(self.buckets.has(each.rows)) for each in found.batches]
            leaving += [each.some(self.buckets.lacks(each.rows)).table() for each in found.batches]
            found.batches.clear()
            for each in [*waiting, *own]:
                if len(each.rows):
                    kept.append(each.table())
                    self._meet(join_partials, each.held(), self.triples.held(), found)
                    self.partials.insert(each.rows, each.numbers, each.text)
            waiting = []
        return JoinOutput(_concat(leaving, ROWS), _concat(found.answers, ANSWERS), _concat(kept, ROWS))

    def restore(self, table: pa.Table) -> None:
        """Add rows that this partition, or one in another process, had stored."""
        batch = self._batch(*table_to_rows(table))
        waiting = batch.rows["kind"] == PARTIAL
        for store, which in ((self.triples, ~waiting), (self.partials, waiting)):
            part = batch.some(which)
            store.insert(part.rows, part.numbers, part.text)

    def expire(self, position: int, time: int) -> None:
        """Drop rows that can be no part of an answer after a position and a time, and rows of nodes that are gone, once
        they are half of all."""
        for store, known in ((self.triples, self.plan.ports), (self.partials, self.plan.nodes)):
            rows = store.rows
            places, found = _locate_ids(known["id"], rows["id"])
            patient = (
                (rows["oldest"] > position - known["span"][places]) & (rows["began"] > time - known["within"][places])
                if len(known)
                else found
            )
            keep = found & patient
            if 2 * np.count_nonzero(keep) < len(rows):
                store.keep(keep)

    def overfull_nodes(self, limit: int) -> list[int]:
        """Return the ids of nodes at which more partial results wait than a limit."""
        if self.partials.size <= limit:
            return []
        numbers, counts = np.unique(self._numbers.of_rows(self.partials.rows), return_counts=True)
        return [int(self.plan.nodes["id"][each]) for each in numbers[counts > limit] if each >= 0]

    def heavy_keys(self, limit: int) -> list[int]:
        """Return the join keys with more triples than a limit, and than a quarter of all here."""
        return self.triples.heavy_keys(max(limit, self.triples.size // 4)) if self.triples.size > limit else []

    def snapshot(self) -> pa.Table:
        """Return all rows; `restore` builds an equal partition from them."""
        return _concat([rows_to_table(each.rows, each.text) for each in (self.triples, self.partials)], ROWS)

    def _batch(self, rows: Records, text: Bytes) -> _RowBatch:
        return _RowBatch(rows, text, self._numbers.of_rows(rows))

    def _meet(self, kernel: Callable[..., int], fresh: StoredRows, others: StoredRows, found: _KernelOutput) -> None:
        def step(first: int, out: OutputBuffers) -> int:
            return kernel(self.plan, fresh, first, others, out, self._cuts)

        for rows, text, answers, answer_text in self._buffers.drain(step, len(fresh.rows)):
            if len(rows):
                found.batches.append(self._batch(rows, text))
            if len(answers):
                found.answers.append(answers_to_table(answers, answer_text))


class EventRouter:
    """Turns events into rows for partitions."""

    def __init__(self, plan: NetworkPlan) -> None:
        self.plan = plan
        self._buffers = KernelBuffers(65_536, 1 << 23, 4_096, 1 << 19, len(plan.ports))

    def count_predicates(self) -> dict[str, int]:
        """Return how many triples were routed so far, by predicates that queries name."""
        found: dict[str, int] = {}
        for port, count in zip(self.plan.ports, self._buffers.out.seen.tolist(), strict=True):
            start, length = int(port["predicate_start"]), int(port["predicate_length"])
            if length >= 0 and count:
                name = self.plan.pool[start : start + length].tobytes().decode()
                found[name] = max(count, found.get(name, 0))
        return found

    def route(self, entries: NetworkEvents) -> tuple[pa.Table, pa.Table]:
        """Return the rows of events, and the answers of queries with one pattern."""
        found, answered = list[pa.Table](), list[pa.Table]()
        for rows, text, answers, answer_text in self._buffers.drain(
            lambda first, out: route_events(self.plan, entries, first, out), len(entries.position)
        ):
            found.append(rows_to_table(rows, text))
            answered.append(answers_to_table(answers, answer_text))
        return _concat(found, ROWS), _concat(answered, ANSWERS)


def _concat(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *tables])
