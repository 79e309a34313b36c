"""The evaluator of stream filters: the events of a batch that each filtered stream lets through, found once for all
its clients.

ASK queries of all filters share one matching index, which is loaded when the first query comes, so that an edge starts
without compiled code. A query that takes too much CPU time is given up; an event that it could not decide in time is
reported as undecided.

    events ─▶ stream, source, application ─▶ vocabulary ─▶ queries ─▶ plug-in ─▶ delivered
              Arrow                          Arrow         index      Python, with its state
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from threading import Lock
from typing import Final, Protocol
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config.metrics import Metrics
from triplewire.http.formats.notifications import MatchSelector, find_positions
from triplewire.http.ports import ThreadPool
from triplewire.http.stream_filters.parameters import AskFilter, StreamFilter, StreamView, parse_stream_filter
from triplewire.http.stream_filters.plugins import (
    FilterBatch,
    Mask,
    PluginFailed,
    PluginFilter,
    PluginFilters,
    apply_plugin,
)
from triplewire.matching.evaluator import BudgetExhausted, CpuBudget
from triplewire.matching.index import Memberships
from triplewire.matching.visibility import redact_entries
from triplewire.model import END, MATCHES, Kind, LimitReached, Subscription, no_matches
from triplewire.model.errors import Unavailable
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.security import visibility_name
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

STREAM_FILTERS: Final = 1_024
"""Different stream filters of an edge at the same time, however many clients each has: at some 20 µs for each, a pass
takes 20 ms at worst, but for queries."""

FILTER_CPU_SECONDS: Final = 0.5
"""CPU time of one query of a filter on one pass of events, for which all clients with filters wait. The clients of a
query that takes more are told so and cut off; a subscription can ask it."""

FILTER_EVENT_SECONDS: Final = 0.05
"""CPU time of such a query on a single event. An event that is not decided then is reported as undecided."""

FILTER_READY_SECONDS: Final = 90.0
"""How long a client waits for the index of queries to load: a second is usual, a minute where it must be compiled."""

_BUDGET = CpuBudget(FILTER_CPU_SECONDS, pair=FILTER_EVENT_SECONDS, total=FILTER_CPU_SECONDS)
_GARBAGE = 4_096
"""Changes of dropped queries above which the index is built anew, which takes 0.1 s."""
_TOO_EXPENSIVE = (
    f"the query takes more than {FILTER_CPU_SECONDS:g} s of CPU time on a pass of events; ask for less, "
    "or make a subscription of it"
)

logger = logging.getLogger(__name__)


class AskMatcher(Protocol):
    """The part of a matcher that is needed here."""

    def match(self, entries: pa.Table) -> pa.Table:
        """Return the matches of a batch of `ENTRIES`, as `MATCHES`. Raises BudgetExhausted."""

    def spent(self) -> dict[str, float]:
        """Return the CPU seconds of the evaluators for each shape since the last call."""


AskMatcherFactory = Callable[[list[RegistryChange]], AskMatcher]
"""Makes a matcher for a list of changes, to which later ones are appended."""


def make_matcher(changes: list[RegistryChange]) -> AskMatcher:
    """Make the real matcher. It takes a second, and a minute where it must be compiled."""
    # Half a second and 100 MB, which only edges with queries need.
    from triplewire.matching.index.groups import warm_up
    from triplewire.matching.matcher import ChangeList, Matcher

    warm_up()
    return Matcher.private(ChangeList(changes), _BUDGET)


@dataclass(frozen=True)
class AskResults:
    """The events that pass each query, and those that it did not decide in time, for queries that have such."""

    passed: Mapping[AskFilter, Mask] = field(default_factory=dict)
    undecided: Mapping[AskFilter, Mask] = field(default_factory=dict)

    def spread(self, candidates: Mask) -> AskResults:
        """Extend results on candidates to all events."""
        return AskResults(_spread(self.passed, candidates), _spread(self.undecided, candidates))


class AskIndex:
    """The queries of all filters in one matching index. Any thread may use it, one at a time.

    The index has positions of its own: queries come and go at them, and the events of a pass take the next ones. So it
    can be asked about any events, and never has to go back. Queries that took too much time (`given_up`) are not
    evaluated again while they are in use.
    """

    def __init__(self, make: AskMatcherFactory = make_matcher, garbage: int = _GARBAGE) -> None:
        self._make = make
        self._garbage = garbage
        self._lock = Lock()
        self._matcher: AskMatcher | None = None
        self._changes: list[RegistryChange] = []
        self._shapes: set[str] = set()
        self._known: dict[AskFilter, MatchSelector] = {}
        self._position = 0
        self.given_up: set[AskFilter] = set()

    def load(self) -> None:
        """Load the matcher. It may take a minute."""
        with self._lock:
            self._get_matcher()

    def close(self) -> None:
        """Release what the matcher holds on disk."""
        with self._lock:
            self._matcher = None

    def evaluate(self, entries: pa.Table, asks: Collection[AskFilter], in_use: Collection[AskFilter]) -> AskResults:
        """Evaluate queries on events; without those that were given up. Queries that are not in use are dropped."""
        with self._lock:
            self._update({*in_use, *asks})
            matches = self._match(entries) if entries.num_rows else no_matches()
            decided, others = _split_undecided(matches)
            passed = self._masks(decided, asks, entries.num_rows)
            undecided = self._masks(others, asks, entries.num_rows) if others.num_rows else {}
            return AskResults(passed, {ask: mask for ask, mask in undecided.items() if mask.any()})

    def _masks(self, matches: pa.Table, asks: Collection[AskFilter], events: int) -> dict[AskFilter, Mask]:
        by_since = {self._known[ask].since: ask for ask in asks if ask in self._known}
        masks, first = {ask: np.zeros(events, bool) for ask in by_since.values()}, self._position - events + 1
        for since, positions in find_positions(matches, [self._known[ask] for ask in masks]):
            masks[by_since[since]][positions - first] = True
        return masks

    def _match(self, entries: pa.Table) -> pa.Table:
        """Match all queries with events at the next positions. Queries that take too much time are given up."""
        while True:
            first, self._position = self._position + 1, self._position + entries.num_rows
            positions = pa.array(np.arange(first, self._position + 1))
            matcher = self._get_matcher()
            try:
                matches = matcher.match(entries.set_column(0, MATCHES.field("position"), positions))
                spent = matcher.spent()
            except BudgetExhausted as error:
                matches, spent = None, {**matcher.spent(), error.shape: FILTER_CPU_SECONDS}
            self._give_up({shape for shape, seconds in spent.items() if seconds >= FILTER_CPU_SECONDS})
            if matches is not None:
                return matches

    def _give_up(self, shapes: set[str]) -> None:
        for ask in [each for each in self._known if each.shape in shapes]:
            logger.warning("a query of a stream filter takes too much CPU time and is given up: %s", ask)
            self.given_up.add(ask)
            self._remove(ask)

    def _update(self, asks: set[AskFilter]) -> None:
        self.given_up &= asks
        for ask in [each for each in self._known if each not in asks]:
            self._remove(ask)
        if len(self._changes) > 2 * len(self._known) + self._garbage:
            self._rebuild()
        for ask in asks - self._known.keys() - self.given_up:
            self._add(ask)

    def _add(self, ask: AskFilter) -> None:
        shape = ask.lifted.shape
        if ask.shape not in self._shapes:
            self._shapes.add(ask.shape)
            self._change(SHAPE, ask.shape, shape.to_value())
        subscription = Subscription(_ask_id(ask), None, Kind.SIGNAL, ask.shape, ask.constants)
        since = self._change(SUBSCRIPTION, subscription.id, subscription_to_value(subscription))
        self._known[ask] = MatchSelector(since, END, Memberships(shape).of(ask.constants))

    def _remove(self, ask: AskFilter) -> None:
        self._known.pop(ask)
        self._change(SUBSCRIPTION, _ask_id(ask), None)

    def _change(self, kind: str, key: str, value: Mapping[str, object] | None) -> int:
        self._position += 1
        self._changes.append(RegistryChange(self._position, kind, key, value))
        return self._position

    def _rebuild(self) -> None:
        asks = [*self._known]
        self._matcher, self._changes, self._shapes, self._known = None, [], set(), {}
        for ask in asks:
            self._add(ask)

    def _get_matcher(self) -> AskMatcher:
        if self._matcher is None:
            self._matcher = self._make(self._changes)
        return self._matcher


def _split_undecided(matches: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Split rows into matches, and those that say that an event was not decided."""
    if matches["limit"].null_count == matches.num_rows:
        return matches, matches.slice(0, 0)
    decided = pc.fill_null(pc.not_equal(matches["limit"], LimitReached.WORK.value), True)
    return matches.filter(decided), matches.filter(pc.invert(decided))


def _spread(masks: Mapping[AskFilter, Mask], candidates: Mask) -> dict[AskFilter, Mask]:
    spread = {ask: np.zeros(len(candidates), bool) for ask in masks}
    for ask, mask in masks.items():
        spread[ask][candidates] = mask
    return spread


def _ask_id(ask: AskFilter) -> str:
    return "\n".join((ask.shape, *ask.constants))


class QueryTooExpensive(Exception):
    """A query takes too much CPU time and was given up."""


@dataclass(frozen=True)
class FilterPass:
    """Events on their way through queries and plug-ins. Views that let the same events through get the same table, so
    that messages are rendered once for all of them."""

    entries: pa.Table
    asked: AskResults = field(default_factory=AskResults)
    _tables: dict[bytes, pa.Table] = field(default_factory=dict)

    def select(self, view: StreamView, mask: Mask, plugin: PluginFilter | None) -> pa.Table:
        """Return the events of a mask that pass the queries of a view and then its plug-in. Raises PluginFailed or
        QueryTooExpensive."""
        mask = self._apply_asks(view, mask)
        if view.plugin is None or not mask.any():
            return self._table(mask)
        if plugin is None:
            raise PluginFailed("it was not made")
        passed = mask.copy()
        passed[mask] = apply_plugin(plugin, self._table(mask))
        return self._table(passed)

    def undecided(self, view: StreamView, mask: Mask) -> list[int]:
        """Return the positions of events that a query of the view did not decide, and no other let through."""
        undecided = [self.asked.undecided[ask] for ask in view.asks if ask in self.asked.undecided]
        if not undecided:
            return []
        rows = mask & np.logical_or.reduce(undecided) & ~self._apply_asks(view, mask)
        positions: list[int] = self.entries["position"].to_numpy()[rows].tolist()
        return positions

    def _apply_asks(self, view: StreamView, mask: Mask) -> Mask:
        if any(ask not in self.asked.passed for ask in view.asks):
            raise QueryTooExpensive
        return mask & np.logical_or.reduce([self.asked.passed[ask] for ask in view.asks]) if view.asks else mask

    def _table(self, mask: Mask) -> pa.Table:
        key = np.packbits(mask).tobytes()
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = self.entries if mask.all() else self.entries.filter(pa.array(mask))
        return table


PluginStates = Mapping[StreamView, PluginFilter]
"""Plug-in filters of views, with their state."""


@dataclass(frozen=True)
class FilterResult:
    """The events that each view lets through, and why views have failed. Views that let the same events through have
    the same table."""

    passed: dict[StreamView, pa.Table] = field(default_factory=dict)
    failed: dict[StreamView, str] = field(default_factory=dict)
    undecided: dict[StreamView, Sequence[int]] = field(default_factory=dict)
    """Positions of events on which a query took too long."""


class FilterEvaluator:
    """All stream filters of an edge. A filter is held by its clients, and forgotten when there are none."""

    def __init__(
        self,
        metrics: Metrics,
        plugins: PluginFilters | None = None,
        asks: AskIndex | None = None,
        limit: int = STREAM_FILTERS,
        threads: ThreadPool | None = None,
    ) -> None:
        self._metrics = metrics
        self._plugins = plugins
        self._asks = AskIndex() if asks is None else asks
        self._limit = limit
        self._known: WeakValueDictionary[Hashable, StreamFilter] = WeakValueDictionary()
        # While the index loads, other filters must not wait in the same thread.
        self._loaders = ThreadPool(2, "edge-filter-load")
        self._threads = threads or ThreadPool(1, "edge-filter")
        # However many clients replay, live ones wait for one step of them at most.
        self._replay_threads = threads or ThreadPool(1, "edge-filter-replay")
        self._loaded = False

    def __len__(self) -> int:
        """Return how many different filters are in use."""
        return len(self._known)

    async def parse(self, parameters: Iterable[tuple[str, str]]) -> StreamFilter | None:
        """Do the same as `parse_stream_filter`, in a thread if there is a query to parse."""
        given = [*parameters]
        has_query = any(name == "ask" for name, _ in given)
        return await self._loaders.run(parse_stream_filter, given) if has_query else parse_stream_filter(given)

    async def admit(self, filter: StreamFilter) -> tuple[StreamFilter, PluginFilter | None]:
        """Return the filter, ready to use, the same object for all that are equal, and a new plug-in without state.
        Raises BadRequest for an unknown plug-in or parameter, Unavailable where there are too many filters or one does
        not get ready."""
        if filter.key not in self._known and len(self._known) >= self._limit:
            raise Unavailable(f"{self._limit} different stream filters are in use here; try another edge, or later")
        held = self._known.setdefault(filter.key, filter)
        plugin = None if held.plugin is None else await self._loaders.run(self.make_plugin, held)
        if held.asks and not self._loaded:
            await self._load()
        return held, plugin

    def make_plugin(self, filter: StreamFilter) -> PluginFilter | None:
        """Return a new plug-in without state; None for a filter that has none."""
        if filter.plugin is None:
            return None
        if self._plugins is None:
            self._plugins = PluginFilters.installed()
        return self._plugins.make(filter.plugin)

    async def evaluate(
        self, entries: pa.Table, views: Collection[StreamView], plugins: PluginStates, *, replay: bool = False
    ) -> FilterResult:
        """Return the events of a table, of any streams, that each view lets through. Calls run one after the other, in
        one thread for live clients and one for replays: a stateful plug-in sees events in their order."""
        threads = self._replay_threads if replay else self._threads
        return await threads.run(self.evaluate_now, entries, views, plugins)

    def evaluate_now(self, entries: pa.Table, views: Collection[StreamView], plugins: PluginStates) -> FilterResult:
        """Do the same in this thread. Filters see only what is visible."""
        result = FilterResult()
        for visibility, group in groupby(sorted(views, key=_visibility_key), key=lambda view: view.visibility):
            visible = redact_entries(entries, visibility)
            batch = FilterBatch(visible)
            masks = {view: batch.passing(view) for view in group}
            filter_pass = FilterPass(visible, self._ask(visible, masks))
            for view, mask in masks.items():
                self._finish(result, filter_pass, view, mask, plugins.get(view))
        return result

    def close(self) -> None:
        self._loaders.close()
        self._threads.close()
        self._replay_threads.close()
        self._asks.close()

    async def _load(self) -> None:
        try:
            async with asyncio.timeout(FILTER_READY_SECONDS):
                await self._loaders.run(self._asks.load)
        except TimeoutError:
            raise Unavailable("the index of queries is being loaded; try again in a minute") from None
        self._loaded = True

    def _finish(
        self, result: FilterResult, filter_pass: FilterPass, view: StreamView, mask: Mask, plugin: PluginFilter | None
    ) -> None:
        try:
            result.passed[view] = filter_pass.select(view, mask, plugin)
            if undecided := filter_pass.undecided(view, mask):
                result.undecided[view] = undecided
        except PluginFailed as error:
            name = "" if view.plugin is None else view.plugin.name
            logger.error("the filter %s of the stream %s failed", name, view.stream, exc_info=error)
            self._metrics.stream_filters_failed.labels("filter").inc()
            result.failed[view] = f"the filter {name} failed: {error}"
        except QueryTooExpensive:
            self._metrics.stream_filters_failed.labels("query").inc()
            result.failed[view] = _TOO_EXPENSIVE

    def _ask(self, entries: pa.Table, masks: Mapping[StreamView, Mask]) -> AskResults:
        """Evaluate the queries of all views on the events that some view lets through so far."""
        asking = [view for view in masks if view.asks]
        if not asking:
            return AskResults()
        candidates = np.logical_or.reduce([masks[view] for view in asking])
        asks = {ask for view in asking for ask in view.asks}
        results = self._asks.evaluate(entries.filter(pa.array(candidates)), asks, self._asks_in_use())
        self._metrics.stream_filter_undecided.inc(sum(int(mask.sum()) for mask in results.undecided.values()))
        self._metrics.stream_filter_queries.inc(len(results.passed))
        return results.spread(candidates)

    def _asks_in_use(self) -> set[AskFilter]:
        filters = (reference() for reference in self._known.valuerefs())
        return {ask for each in filters if each is not None for ask in each.asks}


def _visibility_key(view: StreamView) -> str:
    return "" if view.visibility is None else visibility_name(view.visibility)
