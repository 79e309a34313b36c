"""Window partitions: the state partition of some windowed queries and the streams that their windows hold.

A partition is given every batch, also those that bring no events: time goes on with them, and windows close.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.continuous.state import BatchContext
from triplewire.continuous.windows.assigners import ArrivedEvents, Int64Array, TimedEvents
from triplewire.continuous.windows.evaluation import (
    INPUTS,
    POSITION,
    WINDOW_MEMORY,
    PlannedQuery,
    WindowedStream,
    WindowEvaluator,
    WindowLimits,
)
from triplewire.continuous.windows.plans import WindowPlan, plan_windows
from triplewire.continuous.windows.results import RESULTS
from triplewire.continuous.windows.static_data import NoStaticData, StaticData, StaticTable
from triplewire.continuous.windows.watermarks import ArrivalClock
from triplewire.continuous.windows.windowed_query import ResultRow, WindowedQuery, WindowProgress, suspension_row
from triplewire.model.errors import InputError, NotFound, QueryLimit
from triplewire.model.events import drop_opaque_payloads
from triplewire.model.subscriptions import ContinuousQuery, QueryState
from triplewire.sparql.dialects.duckdb import open_engine
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, query_from_change

_STATE = b"windows"
_REFUSED = (QueryLimit, NotFound, InputError)


@dataclass(frozen=True)
class WindowFigures:
    """The size of a partition: triples and bytes of all streams; by query id, the triples that its windows hold, and
    the late events that were dropped."""

    rows: int
    bytes: int
    held: Mapping[str, int]
    dropped: Mapping[str, int]


class WindowPartition:
    """A state partition: a pure function of registry changes, inputs and batches, but for queries that take too much
    time. Not safe for threads."""

    def __init__(self, static: StaticData | None = None, limits: WindowLimits | None = None) -> None:
        ensure_recursion_limit()
        self._limits = limits or WindowLimits()
        self._static = static or NoStaticData()
        self._duck = open_engine(WINDOW_MEMORY)
        self._streams: dict[str, WindowedStream] = {}
        self._queries: dict[str, WindowedQuery] = {}
        self._refused: dict[str, tuple[ContinuousQuery, str]] = {}
        """Queries that are suspended in the next batch, and why."""
        self._over: dict[str, int] = {}
        """Queries that were suspended, and the positions of their registration."""
        self._arrivals = ArrivalClock()
        self._position = 0
        self._tables = 0
        self._evaluator = WindowEvaluator(self._duck, lambda name: self._streams[name].stored, self._limits)

    def close(self) -> None:
        self._duck.close()

    @property
    def streams(self) -> frozenset[str]:
        """The streams whose events it needs."""
        return frozenset(self._streams)

    @property
    def figures(self) -> WindowFigures:
        stored = [each.stored for each in self._streams.values()]
        return WindowFigures(
            sum(each.rows for each in stored),
            sum(each.bytes for each in stored),
            {id: each.progress.weight for id, each in self._queries.items()},
            {id: each.progress.dropped for id, each in self._queries.items()},
        )

    def due(self, now: int) -> int | None:
        """Return when, after a batch at `now`, the next one is due even without events; None if none is."""
        times = (each.progress.due(now) for each in self._queries.values())
        return min((each for each in times if each is not None), default=None)

    def apply_changes(self, changes: Iterable[RegistryChange]) -> None:
        """Apply changes of the registry up to the end of the next batch, in order. Known changes may be repeated. A
        query that ends reports nothing more, not even in that batch."""
        for change in changes:
            if change.kind == QUERY and change.value is None:
                self._end(change.key)
            elif change.kind == QUERY:
                self._learn(change, query_from_change(change))

    def _learn(self, change: RegistryChange, query: ContinuousQuery) -> None:
        windowed = self._queries.get(query.id)
        if windowed is not None and _is_same_query(query, windowed.query):
            windowed.query = query
        elif self._over.get(query.id) != query.since:
            self._end(query.id)
            if query.windowed and query.state is QueryState.ON:
                self._begin(change, query)

    def _begin(self, change: RegistryChange, query: ContinuousQuery) -> None:
        try:
            asked = self._asked(plan_windows(query.text), query)
        except _REFUSED as error:
            self._refused[query.id] = query, str(error)
            return
        for name in asked.plan.streams:
            if name not in self._streams:
                self._streams[name] = WindowedStream(self._duck, self._table("stream"), self._limits.slack_triples)
            self._streams[name].stored.want({POSITION, *asked.plan.columns})
        timelines = {name: self._streams[name].timelines[query.time] for name in asked.plan.streams}
        self._queries[query.id] = WindowedQuery(change, query, asked, WindowProgress(query, asked.plan, timelines))

    def _asked(self, found: WindowPlan, query: ContinuousQuery) -> PlannedQuery:
        if not found.reads_static:
            return PlannedQuery(found)
        quads = self._static.quads(found.registration.query.dataset, query.since)
        return PlannedQuery(found, StaticTable.load(self._duck, self._table("static"), quads))

    def _table(self, kind: str) -> str:
        self._tables += 1
        return f"{kind}_{self._tables}"

    def _end(self, id: str) -> None:
        self._refused.pop(id, None)
        gone = self._queries.pop(id, None)
        if gone is None:
            return
        if gone.planned.static is not None:
            gone.planned.static.drop()
        wanted = {name for each in self._queries.values() for name in each.planned.plan.streams}
        for name in [*self._streams]:
            if name not in wanted:
                self._streams.pop(name).stored.drop()

    def process(self, inputs: pa.Table, context: BatchContext) -> pa.Table:
        """Run a batch; return a `RESULTS` table. Inputs of other streams are ignored."""
        results = list(self._run(inputs, context, reporting=True))
        results.sort(key=_result_order)
        return pa.Table.from_pylist(results, schema=RESULTS)

    def restore(self, inputs: pa.Table, context: BatchContext) -> None:
        metadata = inputs.schema.metadata or {}
        if _STATE in metadata:
            self._load(inputs, orjson.loads(metadata[_STATE]))
        else:
            for _ in self._run(inputs, context, reporting=False):
                pass

    def _run(self, inputs: pa.Table, context: BatchContext, *, reporting: bool) -> Iterator[ResultRow]:
        arrived = self._arrived(inputs)
        self._arrivals.advance(context.now)
        self._position = context.position
        for id, (query, reason) in sorted(self._refused.items()):
            yield self._suspended(id, query, reason, context)
        for id, windowed in sorted(self._queries.items()):
            if windowed.query.since > context.position:
                # A partition that is rebuilt may know queries before their registration.
                continue
            try:
                windowed.take(arrived, context, self._limits.triples)
                if reporting:
                    yield from windowed.report(self._evaluator, self._arrivals.reached, context)
                else:
                    windowed.advance(self._arrivals.reached, context)
            except QueryLimit as error:
                yield self._suspended(id, windowed.query, str(error), context)
        self._evaluator.forget()
        for name, needed in self._needed().items():
            self._streams[name].keep(needed)

    def _arrived(self, inputs: pa.Table) -> dict[str, ArrivedEvents]:
        """Return the events of needed streams, by stream."""
        wanted = pc.is_in(inputs["stream"], pa.array(sorted(self._streams), pa.string()))
        entries = drop_opaque_payloads(inputs.filter(wanted)).select(INPUTS.names).sort_by(POSITION)
        arrivals = self._arrivals.take(entries["received"].to_numpy())
        return self._added(entries, arrivals)

    def _added(self, entries: pa.Table, arrivals: Int64Array) -> dict[str, ArrivedEvents]:
        found = {}
        for name in pc.unique(entries["stream"]).to_pylist():
            here = pc.equal(entries["stream"], name)
            found[name] = self._streams[name].add(entries.filter(here), arrivals[here.to_numpy()])
        return found

    def _suspended(self, id: str, query: ContinuousQuery, reason: str, context: BatchContext) -> ResultRow:
        self._end(id)
        self._over[id] = query.since
        return suspension_row(query, reason, context)

    def _needed(self) -> dict[str, list[TimedEvents]]:
        found: dict[str, list[TimedEvents]] = {name: [] for name in self._streams}
        for windowed in self._queries.values():
            for name, events in windowed.progress.needed():
                found[name].append(events)
        return found

    def snapshot(self) -> pa.Table:
        parts, moved = [INPUTS.empty_table()], list[list[int]]()
        for name, needed in self._needed().items():
            entries, pairs = self._streams[name].kept(needed)
            parts.append(entries)
            moved += pairs
        state = {
            "position": self._position,
            "arrivals": self._arrivals.reached,
            "moved": sorted(moved),
            "over": self._over,
            "queries": [_query_state(each) for _, each in sorted(self._queries.items())],
        }
        table = pa.concat_tables(parts).sort_by(POSITION)
        return table.replace_schema_metadata({_STATE: orjson.dumps(state)})

    def _load(self, inputs: pa.Table, state: Mapping[str, Any]) -> None:
        """Restore a snapshot. Changes of the registry after it stay."""
        later = [each.change for each in self._queries.values() if each.change.position > state["position"]]
        for id in [*self._queries, *self._refused]:
            self._end(id)
        self._over, self._position = dict(state["over"]), state["position"]
        self._arrivals = ArrivalClock(state["arrivals"])
        self.apply_changes(RegistryChange(**each["change"]) for each in state["queries"])
        positions, arrivals = inputs[POSITION].to_numpy(), inputs["received"].to_numpy().copy()
        for position, moment in state["moved"]:
            arrivals[np.searchsorted(positions, position)] = moment
        self._added(inputs.replace_schema_metadata(None), arrivals)
        for each in state["queries"]:
            if windowed := self._queries.get(each["change"]["key"]):
                windowed.progress.restore(each["progress"], self._position)
        self.apply_changes(later)


def _is_same_query(query: ContinuousQuery, known: ContinuousQuery) -> bool:
    """Return whether a change leaves the answers of a query as they are."""
    names = ("text", "since", "time", "lateness", "late", "state")
    return all(getattr(query, name) == getattr(known, name) for name in names)


def _query_state(windowed: WindowedQuery) -> dict[str, Any]:
    change = windowed.change
    place = {"position": change.position, "kind": change.kind, "key": change.key, "value": change.value}
    return {"change": place, "progress": windowed.progress.state()}


def _result_order(result: ResultRow) -> tuple[bool, int, int, str, int]:
    """Order results by the close of their windows, suspensions last."""
    over = result["end"] is None
    return over, result["end"] or 0, result["at"] or 0, result["query"], result["revision"]
