"""Asks: the queries of all sieves in one index, with the two tiers that decide subscriptions.

The index knows an order of its own: queries come and go at positions of it, and the events of a pass take the next
ones. So it may be asked of any events, those of the past as well, and never has to go back.

Nothing of it is there until the first query comes; an edge starts without the compiled code.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config import limits
from triplewire.edge.feeds.notifications import Wanted, positions_of
from triplewire.edge.sieves.batches import Mask
from triplewire.edge.sieves.sieves import Ask
from triplewire.matching.evaluator import BudgetExhausted, CpuBudget
from triplewire.matching.index import Memberships
from triplewire.model import END, MATCHES, Kind, LimitReached, Subscription
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

_PATIENCE = CpuBudget(limits.SIEVE_CPU_SECONDS, pair=limits.SIEVE_EVENT_SECONDS, whole=limits.SIEVE_CPU_SECONDS)
_GARBAGE = 4_096
"""Changes of queries that are gone, above which the index is begun anew: it takes 0.1 s."""

logger = logging.getLogger(__name__)


class Matching(Protocol):
    """A matcher, as far as it is needed here."""

    def match(self, entries: pa.Table) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as `MATCHES`. Raises Exhausted."""

    def spent(self) -> dict[str, float]:
        """The CPU seconds that the evaluators took for each shape since this was asked last."""


class Making(Protocol):
    """Makes a matcher that knows some changes, and those that are put at their end later."""

    def __call__(self, changes: list[RegistryChange]) -> Matching: ...


def compiled(changes: list[RegistryChange]) -> Matching:
    """The real one. It takes a second, and a minute where the compiled code has to be made first."""
    # Half a second and 100 MB, which only those who are asked queries need.
    from triplewire.matching.index.groups import warm_up
    from triplewire.matching.matcher import ChangeList, Matcher

    warm_up()
    return Matcher.alone(ChangeList(changes), _PATIENCE)


@dataclass(frozen=True)
class Answers:
    """Which events pass each query, and which of them were not decided in the time that there is, of queries that have
    such."""

    passed: Mapping[Ask, Mask] = field(default_factory=dict)
    undecided: Mapping[Ask, Mask] = field(default_factory=dict)

    def spread(self, wanted: Mask) -> Answers:
        """What was found of some events, of all."""
        return Answers(_spread(self.passed, wanted), _spread(self.undecided, wanted))


class Asks:
    """The index. Any thread may use it, one at a time. `given_up` are queries that took too much time: they are not
    asked again while they are known."""

    def __init__(self, make: Making = compiled, garbage: int = _GARBAGE) -> None:
        self._make = make
        self._garbage = garbage
        self._turn = Lock()
        self._matcher: Matching | None = None
        self._changes: list[RegistryChange] = []
        self._shapes: set[str] = set()
        self._known: dict[Ask, Wanted] = {}
        self._position = 0
        self.given_up: set[Ask] = set()

    def load(self) -> None:
        """Be ready. It may take a minute."""
        with self._turn:
            self._ready()

    def close(self) -> None:
        """Let go of what the index holds on the disk."""
        with self._turn:
            self._matcher = None

    def passing(self, entries: pa.Table, asks: Collection[Ask], known: Collection[Ask]) -> Answers:
        """What some queries say of events; without those that were given up. `known` are all that somebody listens
        through: others are forgotten."""
        with self._turn:
            self._keep({*known, *asks})
            matches = self._matched(entries) if entries.num_rows else MATCHES.empty_table()
            decided, others = _parted(matches)
            passed = self._masks(decided, asks, entries.num_rows)
            left = self._masks(others, asks, entries.num_rows) if others.num_rows else {}
            return Answers(passed, {ask: mask for ask, mask in left.items() if mask.any()})

    def _masks(self, matches: pa.Table, asks: Collection[Ask], events: int) -> dict[Ask, Mask]:
        wanted = {self._known[ask].since: ask for ask in asks if ask in self._known}
        found, first = {ask: np.zeros(events, bool) for ask in wanted.values()}, self._position - events + 1
        for since, positions in positions_of(matches, [self._known[ask] for ask in found]):
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
                matches, spent = None, {**matcher.spent(), error.shape: limits.SIEVE_CPU_SECONDS}
            self._give_up({shape for shape, seconds in spent.items() if seconds >= limits.SIEVE_CPU_SECONDS})
            if matches is not None:
                return matches

    def _give_up(self, shapes: set[str]) -> None:
        for ask in [each for each in self._known if each.shape in shapes]:
            logger.warning("a query of a sieve takes too much time and is given up: %s", ask)
            self.given_up.add(ask)
            self._remove(ask)

    def _keep(self, asks: set[Ask]) -> None:
        self.given_up &= asks
        for ask in [each for each in self._known if each not in asks]:
            self._remove(ask)
        if len(self._changes) > 2 * len(self._known) + self._garbage:
            self._begin_anew()
        for ask in asks - self._known.keys() - self.given_up:
            self._add(ask)

    def _add(self, ask: Ask) -> None:
        shape = ask.lifted.shape
        if ask.shape not in self._shapes:
            self._shapes.add(ask.shape)
            self._change(SHAPE, ask.shape, shape.to_value())
        made = Subscription(_name(ask), None, Kind.SIGNAL, ask.shape, ask.constants)
        since = self._change(SUBSCRIPTION, made.id, subscription_to_value(made))
        self._known[ask] = Wanted(since, END, Memberships(shape).of(ask.constants))

    def _remove(self, ask: Ask) -> None:
        self._known.pop(ask)
        self._change(SUBSCRIPTION, _name(ask), None)

    def _change(self, kind: str, key: str, value: Mapping[str, object] | None) -> int:
        self._position += 1
        self._changes.append(RegistryChange(self._position, kind, key, value))
        return self._position

    def _begin_anew(self) -> None:
        kept = [*self._known]
        self._matcher, self._changes, self._shapes, self._known = None, [], set(), {}
        for ask in kept:
            self._add(ask)

    def _ready(self) -> Matching:
        if self._matcher is None:
            self._matcher = self._make(self._changes)
        return self._matcher


def _parted(matches: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Those that tell of a match, and those that tell that nothing was found out."""
    if matches["limit"].null_count == matches.num_rows:
        return matches, matches.slice(0, 0)
    told = pc.fill_null(pc.not_equal(matches["limit"], LimitReached.WORK.value), True)
    return matches.filter(told), matches.filter(pc.invert(told))


def _spread(masks: Mapping[Ask, Mask], wanted: Mask) -> dict[Ask, Mask]:
    found = {ask: np.zeros(len(wanted), bool) for ask in masks}
    for ask, mask in masks.items():
        found[ask][wanted] = mask
    return found


def _name(ask: Ask) -> str:
    return "\n".join((ask.shape, *ask.constants))
