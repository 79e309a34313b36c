"""Stations: where rows meet. Each has the rows of some addresses, and does all that can be done with these alone;
what
belongs to others leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from triplewire.kernels.compiler import Bytes, Flags, Int32, Records
from triplewire.ongoing.network.arrays import PARTIAL, PROBE, Entries, Held, Out, Plan
from triplewire.ongoing.network.emitting import room
from triplewire.ongoing.network.joining import met_by_partials, met_by_triples
from triplewire.ongoing.network.routing import routed
from triplewire.ongoing.network.rows import ANSWERS, ROWS, answers_of, arrays_of, table_of
from triplewire.ongoing.network.stores import Store
from triplewire.ongoing.network.tables import index_for

BUCKETS = 64
"""Logical places that work is spread over. A station has some of them, so that their number may differ from machine to
machine while rows stay where they belong."""

_NOBODY = index_for(1)


@dataclass(frozen=True)
class Ward:
    """Which buckets a station has: every so many, from a number on."""

    number: int = 0
    of: int = 1

    def has(self, rows: Records) -> Flags:
        """Those that are kept here."""
        return np.asarray((rows["address"] < 0) | (station_of(rows["address"], self.of) == self.number))

    def lacks(self, rows: Records) -> Flags:
        """Those that are kept at other stations, there as well or there alone."""
        return np.asarray((rows["address"] < 0) | (station_of(rows["address"], self.of) != self.number)) & (self.of > 1)


def station_of(addresses: Records, stations: int) -> Records:
    """The station of each address."""
    found: Records = addresses % BUCKETS % stations
    return found


def parted(rows: pa.Table, stations: int, but: int | None = None) -> Iterator[tuple[int, pa.Table]]:
    """Rows by the stations to which they go; what is for everyone goes to all but the one that it comes from."""
    addresses = rows["address"].to_numpy()
    where = station_of(addresses, stations)
    for station in range(stations):
        here = (where == station) | (addresses < 0)
        if station != but and here.any():
            yield station, rows if here.all() else rows.filter(pa.array(here))


@dataclass
class Taken:
    """What followed from some rows: rows for other stations, answers, and all that was kept here."""

    leaving: pa.Table
    answers: pa.Table
    kept: pa.Table


@dataclass
class _Batch:
    """Rows of one kind with their texts, and the nodes that they wait at."""

    rows: Records
    text: Bytes
    numbers: Int32

    def held(self) -> Held:
        return Held(self.rows, self.numbers, self.text, self.numbers, _NOBODY)

    def some(self, which: Flags) -> _Batch:
        return _Batch(self.rows[which], self.text, self.numbers[which])

    def table(self) -> pa.Table:
        return table_of(self.rows, self.text)


@dataclass
class _Found:
    """What compiled code gave, piece by piece."""

    batches: list[_Batch] = field(default_factory=list)
    answers: list[pa.Table] = field(default_factory=list)


def _places(ids: Records, sought: Records) -> tuple[Records, Flags]:
    """Where each of those that are sought is among ids, and whether it is there at all."""
    if not len(ids):
        return np.zeros(len(sought), np.int64), np.zeros(len(sought), np.bool_)
    order = np.argsort(ids, kind="stable")
    places = order[np.minimum(np.searchsorted(ids[order], sought), len(ids) - 1)]
    return places, np.asarray(ids[places] == sought)


class Numbers:
    """Ids of nodes and ports as their numbers in a plan."""

    def __init__(self, plan: Plan) -> None:
        self._ids = plan.nodes["id"]

    def of(self, rows: Records) -> Int32:
        """The node of each row; -1 for triples, and for what waits at a node that is there no more."""
        places, known = _places(self._ids, rows["id"])
        return np.where(known & (rows["kind"] == PARTIAL), places, -1).astype(np.int32)


class Station:
    """Triples and partial results of a ward. A pure function of the rows that it took, and of plans."""

    def __init__(self, plan: Plan, ward: Ward) -> None:
        self.ward = ward
        self.triples, self.partials = Store(), Store()
        self._out = room(16_384, 1 << 21, 4_096, 1 << 19)
        self._cuts = np.zeros(8, np.int64)
        self.adopt(plan)

    def adopt(self, plan: Plan) -> None:
        """Go by another plan from now on."""
        self.plan, self._numbers = plan, Numbers(plan)
        self.partials.renumber(self._numbers.of(self.partials.rows))

    def take(self, table: pa.Table) -> Taken:
        """Rows of this ward, new ones: triples meet what waits here, then what waits meets all triples."""
        fresh = self._batch(*arrays_of(table))
        triples, waiting = fresh.some(fresh.rows["kind"] != PARTIAL), [fresh.some(fresh.rows["kind"] == PARTIAL)]
        found = _Found()
        if len(triples.rows):
            self._meet(met_by_triples, triples.held(), self.partials.held(), found)
            triples = triples.some(triples.rows["kind"] != PROBE)
            self.triples.insert(triples.rows, triples.numbers, triples.text)
        leaving, kept = list[pa.Table](), [triples.table()]
        while waiting or found.batches:
            own = [each.some(self.ward.has(each.rows)) for each in found.batches]
            leaving += [each.some(self.ward.lacks(each.rows)).table() for each in found.batches]
            found.batches.clear()
            for each in [*waiting, *own]:
                if len(each.rows):
                    kept.append(each.table())
                    self._meet(met_by_partials, each.held(), self.triples.held(), found)
                    self.partials.insert(each.rows, each.numbers, each.text)
            waiting = []
        return Taken(_joined(leaving, ROWS), _joined(found.answers, ANSWERS), _joined(kept, ROWS))

    def restore(self, table: pa.Table) -> None:
        """Rows that were kept, here or in another process."""
        batch = self._batch(*arrays_of(table))
        waiting = batch.rows["kind"] == PARTIAL
        for store, which in ((self.triples, ~waiting), (self.partials, waiting)):
            part = batch.some(which)
            store.insert(part.rows, part.numbers, part.text)

    def expire(self, position: int, time: int) -> None:
        """Forget what can be no part of an answer any more, once a position and a time were reached, or what nobody
        waits for; but not before it is half of all."""
        for store, known in ((self.triples, self.plan.ports), (self.partials, self.plan.nodes)):
            rows = store.rows
            places, found = _places(known["id"], rows["id"])
            patient = (
                (rows["oldest"] > position - known["span"][places]) & (rows["began"] > time - known["within"][places])
                if len(known)
                else found
            )
            keep = found & patient
            if 2 * np.count_nonzero(keep) < len(rows):
                store.keep(keep)

    def crowded(self, limit: int) -> list[int]:
        """The nodes, by id, at which more wait than a limit."""
        if self.partials.size <= limit:
            return []
        numbers, counts = np.unique(self._numbers.of(self.partials.rows), return_counts=True)
        return [int(self.plan.nodes["id"][each]) for each in numbers[counts > limit] if each >= 0]

    def heavy(self, limit: int) -> list[int]:
        """The keys under which more triples lie than a limit, and than a quarter of all that are here."""
        return self.triples.heavy(max(limit, self.triples.size // 4)) if self.triples.size > limit else []

    def kept(self) -> pa.Table:
        """All that is kept."""
        return _joined([table_of(each.rows, each.text) for each in (self.triples, self.partials)], ROWS)

    def _batch(self, rows: Records, text: Bytes) -> _Batch:
        return _Batch(rows, text, self._numbers.of(rows))

    def _meet(self, kernel: Callable[..., int], fresh: Held, others: Held, found: _Found) -> None:
        def step(first: int, out: Out) -> int:
            return kernel(self.plan, fresh, first, others, out, self._cuts)

        for rows, text, answers, told in pieces(step, len(fresh.rows), self):
            if len(rows):
                found.batches.append(self._batch(rows, text))
            if len(answers):
                found.answers.append(answers_of(answers, told))

    @property
    def out(self) -> Out:
        return self._out

    @out.setter
    def out(self, room: Out) -> None:
        self._out = room


@dataclass
class Router:
    """Lets events in."""

    plan: Plan

    def __post_init__(self) -> None:
        self.out = room(65_536, 1 << 23, 4_096, 1 << 19, len(self.plan.ports))

    def seen(self) -> dict[str, int]:
        """How many triples came in so far, by predicate, as far as some query asks for it."""
        found: dict[str, int] = {}
        for port, count in zip(self.plan.ports, self.out.seen.tolist(), strict=True):
            start, length = int(port["predicate_start"]), int(port["predicate_length"])
            if length >= 0 and count:
                name = self.plan.pool[start : start + length].tobytes().decode()
                found[name] = max(count, found.get(name, 0))
        return found

    def route(self, entries: Entries) -> tuple[pa.Table, pa.Table]:
        """What follows from events: rows, and answers of queries that ask for one triple alone."""
        found, answered = list[pa.Table](), list[pa.Table]()
        for rows, text, answers, told in pieces(
            lambda first, out: routed(self.plan, entries, first, out), len(entries.position), self
        ):
            found.append(table_of(rows, text))
            answered.append(answers_of(answers, told))
        return _joined(found, ROWS), _joined(answered, ANSWERS)


def pieces(
    step: Callable[[int, Out], int], count: int, holder: Station | Router
) -> Iterator[tuple[Records, Bytes, Records, Bytes]]:
    """All that a step gives, as much as there is room for at a time; with more room, where one thing needs it."""
    done = 0
    while done < count:
        out = holder.out
        out.counts[:] = 0
        reached = step(done, out)
        if reached == done:
            sizes = (2 * len(each) for each in (out.rows, out.text, out.answers, out.told))
            holder.out = room(*sizes)._replace(seen=out.seen)
            continue
        done = reached
        rows, size, answers, told = (int(each) for each in out.counts)
        yield out.rows[:rows].copy(), out.text[:size].copy(), out.answers[:answers].copy(), out.told[:told].copy()


def _joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *tables])
