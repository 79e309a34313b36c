"""The evaluator of stream filters: the events of a batch that each filtered stream lets through, found once for all
its clients.

ASK queries of all filters share one matching index, which is loaded when the first query comes, so that an edge starts
without compiled code. A query that takes too much CPU time is given up; an event that it could not decide in time is
reported as undecided.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
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
from triplewire.model import END, MATCHES, Kind, LimitReached, Subscription
from triplewire.model.errors import Unavailable
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.security import visibility_name
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

SIEVES: Final = 1_024
"""Different sieves through which an edge tells streams at the same time, however many listen through each: at some
20 µs for each and a pass, a pass takes 20 ms at worst, but for queries."""

SIEVE_CPU_SECONDS: Final = 0.5
"""CPU time of one query of a sieve on one pass of events, for which all who listen through sieves wait. Who asks for
more is told so and cut off; a subscription can ask it."""

SIEVE_EVENT_SECONDS: Final = 0.05
"""CPU time of such a query on one event that is looked at alone. Of an event that is not decided then, only that is
told."""

SIEVE_READY_SECONDS: Final = 90.0
"""How long a listener waits for the index of such queries when nobody had one before: a second is usual, a minute where
the compiled code has to be made first."""


# Asks: the queries of all sieves in one index, with the two tiers that decide subscriptions.
#
# The index knows an order of its own: queries come and go at positions of it, and the events of a pass take the next
# ones. So it may be asked of any events, those of the past as well, and never has to go back.
#
# Nothing of it is there until the first query comes; an edge starts without the compiled code.

_PATIENCE = CpuBudget(SIEVE_CPU_SECONDS, pair=SIEVE_EVENT_SECONDS, whole=SIEVE_CPU_SECONDS)
_GARBAGE = 4_096
"""Changes of queries that are gone, above which the index is begun anew: it takes 0.1 s."""

logger = logging.getLogger(__name__)


class AskMatcher(Protocol):
    """A matcher, as far as it is needed here."""

    def match(self, entries: pa.Table) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as `MATCHES`. Raises Exhausted."""

    def spent(self) -> dict[str, float]:
        """The CPU seconds that the evaluators took for each shape since this was asked last."""


class AskMatcherFactory(Protocol):
    """Makes a matcher that knows some changes, and those that are put at their end later."""

    def __call__(self, changes: list[RegistryChange]) -> AskMatcher: ...


def make_matcher(changes: list[RegistryChange]) -> AskMatcher:
    """The real one. It takes a second, and a minute where the compiled code has to be made first."""
    # Half a second and 100 MB, which only those who are asked queries need.
    from triplewire.matching.index.groups import warm_up
    from triplewire.matching.matcher import ChangeList, Matcher

    warm_up()
    return Matcher.alone(ChangeList(changes), _PATIENCE)


@dataclass(frozen=True)
class AskResults:
    """Which events pass each query, and which of them were not decided in the time that there is, of queries that have
    such."""

    passed: Mapping[AskFilter, Mask] = field(default_factory=dict)
    undecided: Mapping[AskFilter, Mask] = field(default_factory=dict)

    def spread(self, wanted: Mask) -> AskResults:
        """What was found of some events, of all."""
        return AskResults(_spread(self.passed, wanted), _spread(self.undecided, wanted))


class AskIndex:
    """The index. Any thread may use it, one at a time. `given_up` are queries that took too much time: they are not
    asked again while they are known."""

    def __init__(self, make: AskMatcherFactory = make_matcher, garbage: int = _GARBAGE) -> None:
        self._make = make
        self._garbage = garbage
        self._turn = Lock()
        self._matcher: AskMatcher | None = None
        self._changes: list[RegistryChange] = []
        self._shapes: set[str] = set()
        self._known: dict[AskFilter, MatchSelector] = {}
        self._position = 0
        self.given_up: set[AskFilter] = set()

    def load(self) -> None:
        """Be ready. It may take a minute."""
        with self._turn:
            self._ready()

    def close(self) -> None:
        """Let go of what the index holds on the disk."""
        with self._turn:
            self._matcher = None

    def passing(self, entries: pa.Table, asks: Collection[AskFilter], known: Collection[AskFilter]) -> AskResults:
        """What some queries say of events; without those that were given up. `known` are all that somebody listens
        through: others are forgotten."""
        with self._turn:
            self._keep({*known, *asks})
            matches = self._matched(entries) if entries.num_rows else MATCHES.empty_table()
            decided, others = _split_undecided(matches)
            passed = self._masks(decided, asks, entries.num_rows)
            left = self._masks(others, asks, entries.num_rows) if others.num_rows else {}
            return AskResults(passed, {ask: mask for ask, mask in left.items() if mask.any()})

    def _masks(self, matches: pa.Table, asks: Collection[AskFilter], events: int) -> dict[AskFilter, Mask]:
        wanted = {self._known[ask].since: ask for ask in asks if ask in self._known}
        found, first = {ask: np.zeros(events, bool) for ask in wanted.values()}, self._position - events + 1
        for since, positions in find_positions(matches, [self._known[ask] for ask in found]):
            found[wanted[since]][positions - first] = True
        return found

    def _matched(self, entries: pa.Table) -> pa.Table:
        """All that is known, of events at the next positions. What takes too much time is given up."""
        while True:
            first, self._position = self._position + 1, self._position + entries.num_rows
            positions = pa.array(np.arange(first, self._position + 1))
            matcher = self._ready()
            try:
                matches = matcher.match(entries.set_column(0, MATCHES.field("position"), positions))
                spent = matcher.spent()
            except BudgetExhausted as error:
                matches, spent = None, {**matcher.spent(), error.shape: SIEVE_CPU_SECONDS}
            self._give_up({shape for shape, seconds in spent.items() if seconds >= SIEVE_CPU_SECONDS})
            if matches is not None:
                return matches

    def _give_up(self, shapes: set[str]) -> None:
        for ask in [each for each in self._known if each.shape in shapes]:
            logger.warning("a query of a sieve takes too much time and is given up: %s", ask)
            self.given_up.add(ask)
            self._remove(ask)

    def _keep(self, asks: set[AskFilter]) -> None:
        self.given_up &= asks
        for ask in [each for each in self._known if each not in asks]:
            self._remove(ask)
        if len(self._changes) > 2 * len(self._known) + self._garbage:
            self._begin_anew()
        for ask in asks - self._known.keys() - self.given_up:
            self._add(ask)

    def _add(self, ask: AskFilter) -> None:
        shape = ask.lifted.shape
        if ask.shape not in self._shapes:
            self._shapes.add(ask.shape)
            self._change(SHAPE, ask.shape, shape.to_value())
        made = Subscription(_ask_id(ask), None, Kind.SIGNAL, ask.shape, ask.constants)
        since = self._change(SUBSCRIPTION, made.id, subscription_to_value(made))
        self._known[ask] = MatchSelector(since, END, Memberships(shape).of(ask.constants))

    def _remove(self, ask: AskFilter) -> None:
        self._known.pop(ask)
        self._change(SUBSCRIPTION, _ask_id(ask), None)

    def _change(self, kind: str, key: str, value: Mapping[str, object] | None) -> int:
        self._position += 1
        self._changes.append(RegistryChange(self._position, kind, key, value))
        return self._position

    def _begin_anew(self) -> None:
        kept = [*self._known]
        self._matcher, self._changes, self._shapes, self._known = None, [], set(), {}
        for ask in kept:
            self._add(ask)

    def _ready(self) -> AskMatcher:
        if self._matcher is None:
            self._matcher = self._make(self._changes)
        return self._matcher


def _split_undecided(matches: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Those that tell of a match, and those that tell that nothing was found out."""
    if matches["limit"].null_count == matches.num_rows:
        return matches, matches.slice(0, 0)
    told = pc.fill_null(pc.not_equal(matches["limit"], LimitReached.WORK.value), True)
    return matches.filter(told), matches.filter(pc.invert(told))


def _spread(masks: Mapping[AskFilter, Mask], wanted: Mask) -> dict[AskFilter, Mask]:
    found = {ask: np.zeros(len(wanted), bool) for ask in masks}
    for ask, mask in masks.items():
        found[ask][wanted] = mask
    return found


def _ask_id(ask: AskFilter) -> str:
    return "\n".join((ask.shape, *ask.constants))


# Passes: some events on their way through the last parts of sieves. What lets the same events through gives the same
# table, so that messages are written once for all of it.


class QueryTooExpensive(Exception):
    """A query was given up."""


@dataclass(frozen=True)
class FilterPass:
    """Events, and what queries say of them; without those queries that were given up."""

    entries: pa.Table
    answers: AskResults = field(default_factory=AskResults)
    _tables: dict[bytes, pa.Table] = field(default_factory=dict)

    def through(self, tap: StreamView, mask: Mask, memory: PluginFilter | None) -> pa.Table:
        """Those of some events that pass the queries of a tap and then its filter. Raises Broken or Costly."""
        mask = self._answered(tap, mask)
        if tap.sieve is None or tap.sieve.filter is None or not mask.any():
            return self._table(mask)
        if memory is None:
            raise PluginFailed("it was not made")
        told = mask.copy()
        told[mask] = apply_plugin(memory, self._table(mask))
        return self._table(told)

    def undecided(self, tap: StreamView, mask: Mask) -> list[int]:
        """The positions of those of which a query of the tap did not say anything, and no other said yes."""
        left = [self.answers.undecided[ask] for ask in _asks_of_view(tap) if ask in self.answers.undecided]
        if not left:
            return []
        found = mask & np.logical_or.reduce(left) & ~self._answered(tap, mask)
        positions: list[int] = self.entries["position"].to_numpy()[found].tolist()
        return positions

    def _answered(self, tap: StreamView, mask: Mask) -> Mask:
        asks = _asks_of_view(tap)
        if any(ask not in self.answers.passed for ask in asks):
            raise QueryTooExpensive
        return mask & np.logical_or.reduce([self.answers.passed[ask] for ask in asks]) if asks else mask

    def _table(self, mask: Mask) -> pa.Table:
        key = np.packbits(mask).tobytes()
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = self.entries if mask.all() else self.entries.filter(pa.array(mask))
        return found


def _asks_of_view(tap: StreamView) -> tuple[AskFilter, ...]:
    return () if tap.sieve is None else tap.sieve.asks


# ```
# events ─▶ stream, source, application ─▶ vocabulary ─▶ queries ─▶ filter of the deployment ─▶ told
#           Arrow                          Arrow         index      Python, with its memory
# ```

PluginStates = Mapping[StreamView, PluginFilter]
"""The filters of the deployment that taps have, with what they remember."""

_TOO_MUCH = (
    f"the query takes more than {SIEVE_CPU_SECONDS:g} s of CPU time on a pass of events; ask for less, "
    "or make a subscription of it"
)


@dataclass(frozen=True)
class FilterResult:
    """The events that each tap lets through, and in which words those are cut off whose tap failed. Taps that let the
    same events through have the same table."""

    passed: dict[StreamView, pa.Table] = field(default_factory=dict)
    failed: dict[StreamView, str] = field(default_factory=dict)
    undecided: dict[StreamView, Sequence[int]] = field(default_factory=dict)
    """Positions of events that may pass or not: a query took too long on them."""


class FilterEvaluator:
    """All sieves of an edge. Who listens through one holds it; it is forgotten when nobody does."""

    def __init__(
        self,
        metrics: Metrics,
        filters: PluginFilters | None = None,
        asks: AskIndex | None = None,
        most: int = SIEVES,
        workers: ThreadPool | None = None,
    ) -> None:
        self._metrics = metrics
        self._filters = filters
        self._asks = AskIndex() if asks is None else asks
        self._most = most
        self._known: WeakValueDictionary[Hashable, StreamFilter] = WeakValueDictionary()
        """By what they say, so that nothing but who listens through them holds them."""
        # While it loads, what others listen through must not wait in the same thread.
        self._loaders = ThreadPool(2, "edge-sieve-load")
        self._workers = workers or ThreadPool(1, "edge-sieve")
        # However many replay, who listens live waits for one step of them at most.
        self._historians = workers or ThreadPool(1, "edge-sieve-past")
        self._loaded = False

    async def asked(self, query: Iterable[tuple[str, str]]) -> StreamFilter | None:
        """`sieve_of`, in a thread where there is something to parse."""
        given = [*query]
        parsing = any(name == "ask" for name, _ in given)
        return await self._loaders.run(parse_stream_filter, given) if parsing else parse_stream_filter(given)

    async def admit(self, sieve: StreamFilter) -> tuple[StreamFilter, PluginFilter | None]:
        """The sieve to listen through, ready: the same object for all that are equal; and a filter of the deployment
        for who comes through it, which remembers nothing yet. Raises BadRequest for a filter that is not known or does
        not take its parameters, Unavailable where there are too many sieves or one does not get ready."""
        if sieve.key not in self._known and len(self._known) >= self._most:
            raise Unavailable(f"{self._most} different sieves are in use here; try another edge, or later")
        held = self._known.setdefault(sieve.key, sieve)
        memory = None if held.filter is None else await self._loaders.run(self.memory, held)
        if held.asks and not self._loaded:
            await self._load()
        return held, memory

    def __len__(self) -> int:
        """How many are in use."""
        return len(self._known)

    def memory(self, sieve: StreamFilter) -> PluginFilter | None:
        """A new filter of the deployment for it, which remembers nothing; None where it has none."""
        if sieve.filter is None:
            return None
        if self._filters is None:
            self._filters = PluginFilters.installed()
        return self._filters.make(sieve.filter)

    async def sift(
        self, entries: pa.Table, taps: Collection[StreamView], memories: PluginStates, *, past: bool = False
    ) -> FilterResult:
        """The events of a table, of whatever streams, that each tap lets through. One after the other, in a thread for
        the present and one for the past: a filter that remembers sees them in the order of these calls."""
        workers = self._historians if past else self._workers
        return await workers.run(self.sifted, entries, taps, memories)

    def sifted(self, entries: pa.Table, taps: Collection[StreamView], memories: PluginStates) -> FilterResult:
        """The same, in this thread. What is out of sight is not there for sieves either."""
        sifted = FilterResult()
        for sight, those in groupby(sorted(taps, key=_visibility_key), key=lambda tap: tap.sight):
            self._sift(sifted, redact_entries(entries, sight), [*those], memories)
        return sifted

    def _sift(
        self, sifted: FilterResult, entries: pa.Table, taps: Sequence[StreamView], memories: PluginStates
    ) -> None:
        """For taps of one sight, and what is in it."""
        batch = FilterBatch(entries)
        masks = {tap: batch.passing(tap) for tap in taps}
        whole = FilterPass(entries, self._answers(entries, masks))
        for tap, mask in masks.items():
            self._settle(sifted, whole, tap, mask, memories.get(tap))

    def close(self) -> None:
        self._loaders.close()
        self._workers.close()
        self._historians.close()
        self._asks.close()

    async def _load(self) -> None:
        try:
            async with asyncio.timeout(SIEVE_READY_SECONDS):
                await self._loaders.run(self._asks.load)
        except TimeoutError:
            raise Unavailable("the index of queries is being made ready; try again in a minute") from None
        self._loaded = True

    def _settle(
        self, sifted: FilterResult, whole: FilterPass, tap: StreamView, mask: Mask, memory: PluginFilter | None
    ) -> None:
        try:
            sifted.passed[tap] = whole.through(tap, mask, memory)
            if left := whole.undecided(tap, mask):
                sifted.undecided[tap] = left
        except PluginFailed as error:
            name = _plugin_name(tap)
            logger.error("the filter %s of the stream %s failed", name, tap.stream, exc_info=error)
            self._metrics.sieves_failed.labels("filter").inc()
            sifted.failed[tap] = f"the filter {name} failed: {error}"
        except QueryTooExpensive:
            self._metrics.sieves_failed.labels("query").inc()
            sifted.failed[tap] = _TOO_MUCH

    def _answers(self, entries: pa.Table, masks: Mapping[StreamView, Mask]) -> AskResults:
        """Which events pass each query, of those that somebody asks for them."""
        asking = {tap: tap.sieve.asks for tap in masks if tap.sieve is not None and tap.sieve.asks}
        if not asking:
            return AskResults()
        wanted = np.logical_or.reduce([masks[tap] for tap in asking])
        asks = {ask for each in asking.values() for ask in each}
        found = self._asks.passing(entries.filter(pa.array(wanted)), asks, self._alive())
        self._metrics.sieve_undecided.inc(sum(int(mask.sum()) for mask in found.undecided.values()))
        self._metrics.sieve_queries.inc(len(found.passed))
        return found.spread(wanted)

    def _alive(self) -> set[AskFilter]:
        held = (reference() for reference in self._known.valuerefs())
        return {ask for each in held if each is not None for ask in each.asks}


def _visibility_key(tap: StreamView) -> str:
    return "" if tap.sight is None else visibility_name(tap.sight)


def _plugin_name(tap: StreamView) -> str:
    return "" if tap.sieve is None or tap.sieve.filter is None else tap.sieve.filter.name
