"""Fallback and residual matching: what the index leaves to the interpreter and the evaluator.

The residual matcher has the subscriptions that are more than the index decides:

```
pairs of event and guard ──┬─ few of a shape ── interpreter ── not decided? ──┐
                           └─ many ─────────────────────────── evaluator ◀────┘
events, for shapes without a guard ─────────────────────────── evaluator
```

The fallback matcher has the events about which the index does not decide for some groups, such as those with long
numbers. The members of these groups are read from the registry when such an event first comes, and cached while there
is room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import thread_time
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.kernels.arrays import Int32, Int64, Records
from triplewire.matching.bags import make_table
from triplewire.matching.evaluator import DEFAULT_BUDGET, CpuBudget, Evaluator
from triplewire.matching.index.columns import StaleIndex
from triplewire.matching.index.groups import Candidates, pair_numbers
from triplewire.matching.index.store import IndexGenerations
from triplewire.matching.index_maintenance import ChangeSource, KnownShape, read_subscriptions
from triplewire.matching.interpreter.matcher import InterpreterBatch, Pair
from triplewire.matching.interpreter.runs import OntologyRows, ParsedEvent
from triplewire.matching.tables import OntologyClosure
from triplewire.model import END, MATCHED_COLUMNS, Subscription
from triplewire.security.visibility import Visibility
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SUBSCRIPTION, subscription_from_change

INTERPRETER_PAIRS: Final = 400
"""Pairs of event and subscription of one shape in a batch that go to the interpreter, at some 40 µs each: an SQL
query for all of them takes 5 to 30 ms before it reads a row (docs/decisions/2026-11-18-interpreter.md)."""


_NAME = "urn:nothing"
EMPTY_EVENT = ParsedEvent(
    {**dict.fromkeys(MATCHED_COLUMNS), "position": 0, "event": _NAME, "text": "\t".join([f"<{_NAME}>"] * 3)}
)
"""An event without any data."""


class ResidualMatcher:
    """Matches the subscriptions of one worker that the index does not decide. Not thread-safe."""

    def __init__(
        self, duck: duckdb.DuckDBPyConnection, closures: OntologyClosure, budget: CpuBudget = DEFAULT_BUDGET
    ) -> None:
        self._evaluator = Evaluator(duck, closures, "rest", budget, make_table)
        self._ontologies = OntologyRows(closures.rows)
        self._shapes: dict[str, KnownShape] = {}
        self._unguarded: set[str] = set()
        """Shapes without a guard."""
        self._subscriptions = defaultdict[int, dict[int, Subscription]](dict)
        """Subscriptions by guard group, and then by the position at which they were made."""
        self._groups: dict[str, tuple[int, int]] = {}
        """The group of each subscription, and the position at which it was made."""
        self._ended: list[tuple[int, int, int]] = []
        """Ended subscriptions: the position of the end, the group, and the position at which they were made."""

    @property
    def version(self) -> int:
        return self._evaluator.version

    @property
    def spent(self) -> defaultdict[str, float]:
        """The CPU seconds that each shape took since the caller last cleared it."""
        return self._evaluator.spent

    def apply(self, changes: Iterable[RegistryChange], shapes: Mapping[str, KnownShape], position: int) -> None:
        """Apply changes of the registry, in order. `shapes` has all shapes by key."""
        news = list[RegistryChange]()
        for change in changes:
            if change.kind == SUBSCRIPTION:
                self._end(change)
                if change.value is not None:
                    news += self._add(change, shapes[change.value["shape"]])
            news.append(change)
        self._evaluator.apply(news, position)

    def forget(self, before: int) -> int:
        """Drop subscriptions that ended before a position. Return the last of their ends, or 0."""
        for _, group, since in [each for each in self._ended if each[0] < before]:
            del self._subscriptions[group][since]
            if not self._subscriptions[group]:
                del self._subscriptions[group]
        self._ended = [each for each in self._ended if each[0] >= before]
        return self._evaluator.forget(before)

    def relate(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Replace the ontologies: rows of relation, lower and upper name."""
        self._ontologies = OntologyRows(rows)

    def match(
        self, entries: pa.Table, candidates: Candidates, shapes: Mapping[int, KnownShape], away: frozenset[str]
    ) -> list[pa.Table]:
        """Match the candidates, and all events against shapes without a guard. `shapes` has the shape of each
        program; those in `away` are skipped."""
        found = [self._evaluator.match(entries, self._unguarded - away)]
        batches, many = dict[Visibility | None, InterpreterBatch](), dict[str, np.ndarray]()
        for program in np.unique(candidates.program).tolist():
            known = shapes.get(program)
            if known is None or known.change.key not in self._shapes or known.change.key in self._unguarded:
                continue
            its = candidates.select(program)
            few = [] if known.interpreted is None else [*islice(self._pairs(its), INTERPRETER_PAIRS + 1)]
            if known.interpreted is None or len(few) > INTERPRETER_PAIRS:
                many[known.change.key] = its.event
            else:
                if known.visibility not in batches:
                    batches[known.visibility] = InterpreterBatch(entries, self._ontologies, known.visibility)
                found += self._interpret(entries, batches[known.visibility], few, known)
        if many:
            indexes = np.unique(np.concatenate([*many.values()]))
            found.append(self._evaluator.match(entries.take(pa.array(indexes)), many))
        return found

    def _pairs(self, candidates: Candidates) -> Iterator[Pair]:
        for event, group in zip(candidates.event.tolist(), candidates.group.tolist(), strict=True):
            for subscription in self._subscriptions.get(group, {}).values():
                yield event, subscription

    def _interpret(
        self, entries: pa.Table, batch: InterpreterBatch, pairs: Sequence[Pair], known: KnownShape
    ) -> list[pa.Table]:
        began = thread_time()
        found, left = batch.decide(pairs, known.interpreted)
        self.spent[known.change.key] += thread_time() - began
        decided = self._evaluator.select_live(found)
        return [decided, self._evaluate_pairs(entries, left, known.change.key)] if left else [decided]

    def _evaluate_pairs(self, entries: pa.Table, pairs: Sequence[Pair], shape: str) -> pa.Table:
        """The evaluator's matches among these pairs."""
        indexes = sorted({place for place, _ in pairs})
        found = self._evaluator.match(entries.take(pa.array(indexes)), [shape])
        positions = entries["position"].to_numpy()
        asked = {(int(positions[place]), subscription.since) for place, subscription in pairs}
        pairs_found = zip(found["position"].to_pylist(), found["subscription"].to_pylist(), strict=True)
        return found.filter(pa.array([each in asked for each in pairs_found], pa.bool_()))

    def _add(self, change: RegistryChange, known: KnownShape) -> Sequence[RegistryChange]:
        """Add a subscription. Return the change that registered its shape if that is new here."""
        subscription = subscription_from_change(change)
        if known.guards.program is not None:
            group = known.guards.of(subscription.constants).group
            self._subscriptions[group][subscription.since] = subscription
            self._groups[change.key] = group, subscription.since
        if known.guards.program is None or not (known.guards.sure or _never_matches_empty(known, subscription)):
            self._unguarded.add(known.change.key)
        if known.change.key in self._shapes:
            return ()
        self._shapes[known.change.key] = known
        return (known.change,)

    def _end(self, change: RegistryChange) -> None:
        if change.key in self._groups:
            group, since = self._groups.pop(change.key)
            self._ended.append((change.position, group, since))


def _never_matches_empty(known: KnownShape, subscription: Subscription) -> bool:
    """Is it certain that a subscription does not match an event that has nothing to count?"""
    result = None if known.interpreted is None else known.interpreted.solve(EMPTY_EVENT, subscription.constants)
    return result is not None and not result.matched


class FallbackMatcher:
    """An evaluator for the events that the index leaves, with a cache of the subscriptions that they need."""

    def __init__(
        self,
        duck: duckdb.DuckDBPyConnection,
        closures: OntologyClosure,
        registry: ChangeSource,
        most: int,
        budget: CpuBudget = DEFAULT_BUDGET,
    ) -> None:
        self._duck = duck
        self._closures = closures
        self._registry = registry
        self._most = most
        self._budget = budget
        self.spent = defaultdict[str, float](float)
        """The CPU seconds that each shape took since the caller last cleared it."""
        self._last = -1
        """The registry change up to which the cached groups are complete."""
        self._groups = np.zeros(0, np.int32)
        self._since, self._group = np.zeros(0, np.int64), np.zeros(0, np.int32)
        """The positions at which the cached subscriptions were made, in order, and the group of each."""
        self._clear()

    def match(
        self, entries: pa.Table, pairs: Records, generations: IndexGenerations, shapes: Mapping[int, KnownShape]
    ) -> list[pa.Table]:
        """The matches of pairs of event (its index in the batch) and group. `shapes` has the shape of each program;
        groups of other programs are later than the events. Raises StaleIndex if groups have new numbers."""
        programs = generations.files.columns["groups"].data["program"][pairs["group"]]
        pairs = pairs[np.isin(programs, [*shapes])]
        groups = np.unique(pairs["group"])
        since, group = self._missing(groups, generations)
        if len(self._since) + len(since) > self._most:
            self._clear()
            since, group = self._missing(groups, generations)
        found = []
        for start in range(0, max(1, len(since)), self._most):
            if start:
                self._clear()
            part = slice(start, start + self._most)
            self._load(since[part], group[part], shapes)
            found += self._match_programs(entries, pairs, generations, shapes)
        if len(since) > self._most:
            self._clear()
        return found

    def _missing(self, groups: Int32, generations: IndexGenerations) -> tuple[Int64, Int32]:
        """The members of groups that are not cached: the positions at which they were made, in order, and the group
        of each. After a change of the registry, groups may have new members."""
        last = int(generations.files.header["last"])
        if last != self._last:
            self._last, self._groups = last, np.zeros(0, np.int32)
        since, group = self._members(groups[~np.isin(groups, self._groups)], generations)
        self._groups = np.union1d(self._groups, groups)
        fresh = ~np.isin(since, self._since)
        return since[fresh], group[fresh]

    def _clear(self) -> None:
        """Empty the cache."""
        for (table,) in self._duck.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            if table.startswith("left_"):
                self._duck.execute(f"DROP TABLE {table}")
        self._evaluator = Evaluator(self._duck, self._closures, "left", self._budget, spent=self.spent)
        self._shapes: set[str] = set()
        self._groups = np.zeros(0, np.int32)
        self._since, self._group = np.zeros(0, np.int64), np.zeros(0, np.int32)

    def _members(self, groups: Int32, generations: IndexGenerations) -> tuple[Int64, Int32]:
        """The positions at which the subscriptions of groups were made, in order, and the group of each."""
        if not len(groups):
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        known = generations.files
        with generations.locked() as store:
            if store.files is not known:
                raise StaleIndex("groups have other numbers")
            since, group = store.members_of(groups)
        order = np.argsort(since)
        return since[order], group[order]

    def _load(self, since: Int64, group: Int32, shapes: Mapping[int, KnownShape]) -> None:
        changes = list(read_subscriptions(self._registry, since))
        asked = {each.value["shape"] for each in changes if each.value is not None}
        fresh = [each.change for each in shapes.values() if each.change.key in asked - self._shapes]
        self._shapes |= asked
        # Keyed by position: two versions of a subscription may be cached, and neither ends the other here.
        named = [type(each)(each.position, each.kind, str(each.position), each.value) for each in changes]
        self._evaluator.apply([*fresh, *named], END)
        order = np.argsort(both := np.concatenate((self._since, since)))
        self._since, self._group = both[order], np.concatenate((self._group, group))[order]

    def _match_programs(
        self, entries: pa.Table, pairs: Records, generations: IndexGenerations, shapes: Mapping[int, KnownShape]
    ) -> list[pa.Table]:
        files = generations.files
        programs = files.columns["groups"].data["program"][pairs["group"]]
        found = []
        for program in np.unique(programs).tolist():
            indexes = np.unique(pairs["event"][programs == program])
            if shapes[program].change.key in self._shapes:
                batch = entries.take(pa.array(indexes))
                matches = self._evaluator.match(batch, [shapes[program].change.key])
                found.append(self._select_pairs(matches, entries, pairs, files.filled("ended")))
        return found

    def _select_pairs(self, matches: pa.Table, entries: pa.Table, pairs: Records, ended: Records) -> pa.Table:
        """The matches among the given pairs whose subscription had not ended."""
        position, since = matches["position"].to_numpy(), matches["subscription"].to_numpy()
        place = np.searchsorted(entries["position"].to_numpy(), position)
        group = self._group[np.searchsorted(self._since, since)]
        asked = np.isin(pair_numbers(place, group), pair_numbers(pairs["event"], pairs["group"]))
        return matches.filter(pa.array(asked & (position < _end_positions(ended, since))))


def _end_positions(ended: Records, since: Sequence[int] | np.ndarray) -> Int64:
    """The end positions of subscriptions, by the positions at which they were made."""
    found = np.full(len(since), END, np.int64)
    for each in ended[np.isin(ended["since"], since)]:
        found[since == each["since"]] = each["until"]
    return found
