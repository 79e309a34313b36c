"""Remainders: subscriptions that are more than the index decides.

```
pairs of event and guard ──┬─ few of a shape ── one by one ── not decided? ──┐
                           └─ many ──────────────────────────── evaluator ◀──┘
events, for what nothing guards ─────────────────────────────── evaluator
```
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import thread_time

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.access.sights import Sight
from triplewire.config.limits import SINGLE_PAIRS
from triplewire.matching.bags import tabled
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.index.groups import Candidates
from triplewire.matching.known import Known
from triplewire.matching.ontologies import Closures
from triplewire.matching.portions import PATIENT, Patience
from triplewire.matching.singles import Batch, Ontologies, Parsed
from triplewire.matching.singles.batches import Pair
from triplewire.model import MATCHED_COLUMNS, Subscription
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SUBSCRIPTION, subscription_from_change

_NAME = "urn:nothing"
NOTHING = Parsed(
    {**dict.fromkeys(MATCHED_COLUMNS), "position": 0, "event": _NAME, "text": "\t".join([f"<{_NAME}>"] * 3)}
)
"""An event of which nobody knows anything."""


class Remainders:
    """These subscriptions as one worker knows them. Not safe for threads."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, closures: Closures, patience: Patience = PATIENT) -> None:
        self._evaluator = Evaluator(duck, closures, "rest", patience, tabled)
        self._ontologies = Ontologies(closures.rows)
        self._shapes: dict[str, Known] = {}
        self._open: set[str] = set()
        """Shapes that nothing guards."""
        self._behind = defaultdict[int, dict[int, Subscription]](dict)
        """Behind each group of a guard: subscriptions, by where they were made."""
        self._groups: dict[str, tuple[int, int]] = {}
        """Of each subscription: its group, and where it was made."""
        self._ended: list[tuple[int, int, int]] = []
        """Where they ended, their groups, and where they were made."""

    @property
    def version(self) -> int:
        return self._evaluator.version

    @property
    def spent(self) -> defaultdict[str, float]:
        """The CPU seconds that shapes took, until somebody clears it."""
        return self._evaluator.spent

    def apply(self, changes: Iterable[RegistryChange], shapes: Mapping[str, Known], upto: int) -> None:
        """Take in changes of the registry, in order. `shapes` are all that there are, by key."""
        news = list[RegistryChange]()
        for change in changes:
            if change.kind == SUBSCRIPTION:
                self._end(change)
                if change.value is not None:
                    news += self._add(change, shapes[change.value["shape"]])
            news.append(change)
        self._evaluator.apply(news, upto)

    def forget(self, before: int) -> int:
        """Drop subscriptions that ended below a position. Where the last of them ended, or 0."""
        for _, group, since in [each for each in self._ended if each[0] < before]:
            del self._behind[group][since]
            if not self._behind[group]:
                del self._behind[group]
        self._ended = [each for each in self._ended if each[0] >= before]
        return self._evaluator.forget(before)

    def relate(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Ontologies say this from now on: relation, lower and upper name."""
        self._ontologies = Ontologies(rows)

    def match(
        self, entries: pa.Table, candidates: Candidates, shapes: Mapping[int, Known], away: frozenset[str]
    ) -> list[pa.Table]:
        """What of the candidates matches, and of all events for shapes that have no guard. `shapes` are those of
        programs; of those that are `away` nothing is told."""
        found = [self._evaluator.match(entries, self._open - away)]
        batches, many = dict[Sight | None, Batch](), dict[str, np.ndarray]()
        for program in np.unique(candidates.program).tolist():
            known = shapes.get(program)
            if known is None or known.change.key not in self._shapes or known.change.key in self._open:
                continue
            its = candidates.of(program)
            few = [] if known.single is None else [*islice(self._pairs(its), SINGLE_PAIRS + 1)]
            if known.single is None or len(few) > SINGLE_PAIRS:
                many[known.change.key] = its.event
            else:
                if known.sight not in batches:
                    batches[known.sight] = Batch(entries, self._ontologies, known.sight)
                found += self._one_by_one(entries, batches[known.sight], few, known)
        if many:
            places = np.unique(np.concatenate([*many.values()]))
            found.append(self._evaluator.match(entries.take(pa.array(places)), many))
        return found

    def _pairs(self, candidates: Candidates) -> Iterator[Pair]:
        for event, group in zip(candidates.event.tolist(), candidates.group.tolist(), strict=True):
            for subscription in self._behind.get(group, {}).values():
                yield event, subscription

    def _one_by_one(self, entries: pa.Table, batch: Batch, pairs: Sequence[Pair], known: Known) -> list[pa.Table]:
        began = thread_time()
        found, left = batch.decide(pairs, known.single)
        self.spent[known.change.key] += thread_time() - began
        decided = self._evaluator.holding(found)
        return [decided, self._evaluated(entries, left, known.change.key)] if left else [decided]

    def _evaluated(self, entries: pa.Table, pairs: Sequence[Pair], shape: str) -> pa.Table:
        """The matches of just these pairs."""
        places = sorted({place for place, _ in pairs})
        found = self._evaluator.match(entries.take(pa.array(places)), [shape])
        positions = entries["position"].to_numpy()
        asked = {(int(positions[place]), subscription.since) for place, subscription in pairs}
        told = zip(found["position"].to_pylist(), found["subscription"].to_pylist(), strict=True)
        return found.filter(pa.array([each in asked for each in told], pa.bool_()))

    def _add(self, change: RegistryChange, known: Known) -> Sequence[RegistryChange]:
        """A subscription comes; with the change that tells of its shape, if that is not known here."""
        subscription = subscription_from_change(change)
        if known.guards.program is not None:
            group = known.guards.of(subscription.constants).group
            self._behind[group][subscription.since] = subscription
            self._groups[change.key] = group, subscription.since
        if known.guards.program is None or not (known.guards.sure or _nothing_of_nothing(known, subscription)):
            self._open.add(known.change.key)
        if known.change.key in self._shapes:
            return ()
        self._shapes[known.change.key] = known
        return (known.change,)

    def _end(self, change: RegistryChange) -> None:
        if change.key in self._groups:
            group, since = self._groups.pop(change.key)
            self._ended.append((change.position, group, since))


def _nothing_of_nothing(known: Known, subscription: Subscription) -> bool:
    """Does a subscription surely not match an event that has nothing of what it counts?"""
    told = None if known.single is None else known.single.solve(NOTHING, subscription.constants)
    return told is not None and not told.matched
