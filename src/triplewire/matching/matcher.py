"""The matcher: matches batches of events against all subscriptions of the registry, by the index, the interpreter and
the evaluator.

```
          ┌── programs ─────────────────────────── groups ──────────────┐
          │       └─ undecided pairs ─ fallback ── subscriptions ───────┤
events ───┤                                                             ├── matches
          ├── guards ── candidates ── residual ─── subscriptions ───────┤
          └── shapes without a guard  residual ─── subscriptions ───────┘
```

The index belongs to the machine: its files are shared by all workers, and the first that needs a later position has it
learn the registry's changes up to there. The evaluators are each worker's own. One decides about the few events that
the index leaves: those with long numbers, times without a zone, escapes, and those of which a subscriber may see only
a part. The other has the subscriptions that are more than the index decides, on the events that have what they
require.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from triplewire.kernels.words import memory_fence
from triplewire.matching import index_maintenance
from triplewire.matching.evaluator import DEFAULT_BUDGET, CpuBudget, open_evaluator_engine
from triplewire.matching.fallback import FallbackMatcher, ResidualMatcher
from triplewire.matching.index.columns import Allocate, StaleIndex, allocate
from triplewire.matching.index.groups import GroupIndex, VisibilityMask
from triplewire.matching.index.memberships import hides_few_events
from triplewire.matching.index.store import IndexGenerations, IndexStore
from triplewire.matching.tables import OntologyClosure
from triplewire.matching.visibility import find_redacted
from triplewire.model import no_matches
from triplewire.model.events import drop_opaque_payloads
from triplewire.security.visibility import Visibility
from triplewire.storage.registry.ontologies import BATCH_EVENTS
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import LANE, SHAPE, SUBSCRIPTION

FALLBACK_SUBSCRIPTIONS: Final = 100_000
"""Subscriptions that a worker caches for the events that the index leaves to the evaluator: some 100 MB."""


_POSITION = attrgetter("position")


class Matcher:
    """Matches batches of events against the subscriptions of a registry.

    Not thread-safe: one matcher belongs to one worker. Any number of them, in any processes of one machine, share a
    directory.
    """

    def __init__(
        self,
        registry: index_maintenance.ChangeSource,
        directory: Path,
        *,
        allocate: Allocate = allocate,
        fallback_subscriptions: int = FALLBACK_SUBSCRIPTIONS,
        budget: CpuBudget = DEFAULT_BUDGET,
    ) -> None:
        """`fallback_subscriptions` are cached for events that the index leaves. Raises StorageFull
        if the directory cannot be made."""
        self._registry = registry
        self._fallback_subscriptions = fallback_subscriptions
        self._budget = budget
        self._index = IndexGenerations(directory, allocate)
        with self._index.locked() as store:
            if not self._was_built_from_registry(store):
                self._index.renew()
        self._reset()

    @classmethod
    def from_changes(cls, changes: Iterable[RegistryChange]) -> Matcher:
        """A matcher with a private directory that knows these changes alone."""
        return cls.private(ChangeList(sorted(changes, key=lambda each: each.position)))

    @classmethod
    def private(cls, registry: index_maintenance.ChangeSource, budget: CpuBudget = DEFAULT_BUDGET) -> Matcher:
        """A matcher with a private directory, which is removed with it."""
        directory = tempfile.mkdtemp(prefix="triplewire-index-")
        made = cls(registry, Path(directory), budget=budget)
        weakref.finalize(made, shutil.rmtree, directory, True)
        return made

    @property
    def change_count(self) -> int:
        """The number of registry changes that this worker holds itself, outside the index."""
        return self._entries

    def match(self, entries: pa.Table) -> pa.Table:
        """The matches of a batch of `ENTRIES`, in order, as a `MATCHES` table: a pure function of the batch and of the
        registry as it was at the position of each event. If an ontology changes within the batch, its new version holds
        from there on.

        A match of a group may concern no subscription: groups do not record since when their members exist. For shapes
        in the slow lane only matches of the index are returned. Opaque payloads match nothing. Raises StorageFull if
        the index cannot grow; it can still be read. Raises BudgetExhausted for a shape that takes too much CPU time, if
        the budget is finite.
        """
        entries = drop_opaque_payloads(entries)
        while entries.num_rows:
            try:
                return self._match_stages(entries)
            except StaleIndex:
                # Another process has started a new generation: the results so far have group numbers of the old one.
                continue
        return no_matches()

    def spent(self) -> dict[str, float]:
        """The CPU seconds that the evaluators took for each shape since the last call."""
        taken = Counter[str]()
        for each in (self._residual.spent, self._fallback.spent):
            taken.update(each)
            each.clear()
        return dict(taken)

    def learn(self, through: int, first: int | None = None) -> None:
        """Index the registry up to a position, and keep ended subscriptions that events from position `first` on can
        concern. Raises StorageFull."""
        if self._is_behind(through) or (first is not None and first < self._index.files.header["horizon"]):
            self._index_changes(through, first)
        memory_fence()
        try:
            self._read()
        except StaleIndex:
            self._index_changes(through, first)

    def _match_stages(self, entries: pa.Table) -> pa.Table:
        """Match from one change of an ontology to the next. Raises StaleIndex."""
        positions = entries["position"].to_numpy()
        first, last = int(positions[0]), int(positions[-1])
        self.learn(last, first)
        if first < self._irreversible:
            self._reset()
            self._read()
        away = frozenset(shape for shape, since in self._lanes.items() if since < first)
        changed = [each.position for each in self._pending if each.kind not in (SHAPE, SUBSCRIPTION)]
        found, start = [no_matches()], 0
        for through in [*(position - 1 for position in changed if first < position <= last), last]:
            self._catch_up(through, first)
            stop = int(np.searchsorted(positions, through, "right"))
            found.append(self._match_stage(entries.slice(start, stop - start), away))
            start = stop
        return pa.concat_tables(found)

    def _is_behind(self, through: int) -> bool:
        """Must the index learn something up to a position? Where the registry has no changes, only now and then, so
        that ended subscriptions are forgotten."""
        version = int(self._index.files.header["version"])
        if through - version > BATCH_EVENTS:
            return True
        return through > version and bool(self._registry.changes(version, through, 1))

    def _index_changes(self, through: int, first: int | None) -> None:
        """Index changes in chunks, each of which is published as a whole."""
        with self._index.locked() as store:
            if first is not None and first < store.files.header["horizon"]:
                store = self._index.renew()
            self._read()
            version = int(store.files.header["version"])
            while version < through:
                changes = self._registry.changes(version, through, index_maintenance.INDEX_CHANGES)
                version = through if len(changes) < index_maintenance.INDEX_CHANGES else changes[-1].position
                index_maintenance.apply_changes(store, self._known, changes, version)
                self._read()
            if first is not None:
                # The parts of one batch may come in any order, so subscriptions that ended within a batch's length are
                # still needed.
                store.forget(min(first, version - BATCH_EVENTS))

    def _reset(self) -> None:
        """Reset everything that was read from the generation."""
        self._files = self._index.files
        self._groups = GroupIndex(self._files)
        self._known: dict[str, index_maintenance.KnownShape] = {}
        self._shapes: dict[int, index_maintenance.KnownShape] = {}
        """Shapes by program."""
        self._visibilities: dict[Visibility, list[int]] = {}
        """Programs of shapes with a visibility that hides few events: the index decides the others."""
        self._entries = 0
        """Journal entries that were read."""
        self._pending = deque[RegistryChange]()
        """Changes that the evaluator has not applied yet."""
        self._lanes: dict[str, int] = {}
        """Positions at which shapes moved to the slow lane."""
        self._irreversible = 0
        """The last position at which a change took effect that the evaluator cannot undo."""
        duck = open_evaluator_engine()
        self._closures = OntologyClosure(duck)
        self._residual = ResidualMatcher(duck, self._closures, self._budget)
        self._fallback = FallbackMatcher(
            duck, self._closures, self._registry, self._fallback_subscriptions, self._budget
        )

    def _read(self) -> None:
        """Read the rest of the journal of the newest generation that is open."""
        if self._files is not self._index.files:
            self._reset()
        self._files.follow()
        numbers = self._files.filled("journal")[self._entries :].copy()
        for change in index_maintenance.read_journal(self._registry, numbers):
            if change.kind == SHAPE:
                self._add_shape(change)
            elif change.kind == LANE:
                self._lanes.setdefault(change.key, change.position)
            else:
                self._pending.append(change)
        self._entries += len(numbers)

    def _add_shape(self, change: RegistryChange) -> None:
        known = self._known[change.key] = index_maintenance.KnownShape(change)
        programs = self._files.filled("programs")["shape"]
        its = np.flatnonzero(programs == change.position).tolist()
        self._shapes |= dict.fromkeys(its, known)
        if known.visibility is not None and hides_few_events(known.visibility):
            self._visibilities.setdefault(known.visibility, []).extend(its)

    def _catch_up(self, through: int, first: int) -> None:
        """Bring the evaluator up to a position, for events from `first` on."""
        news = list[RegistryChange]()
        while self._pending and self._pending[0].position <= through:
            change = self._pending.popleft()
            if change.kind != SUBSCRIPTION:
                self._irreversible = max(self._irreversible, change.position)
            news.append(change)
        if through > self._residual.version:
            self._residual.apply(news, self._known, through)
            self._irreversible = max(self._irreversible, self._residual.forget(min(first, through - BATCH_EVENTS)))

    def _match_stage(self, entries: pa.Table, away: frozenset[str]) -> pa.Table:
        if self._closures.prepare():
            self._groups.relate(self._closures.rows)
            self._residual.relate(self._closures.rows)
        masks = [
            VisibilityMask(programs, find_redacted(entries["text"], visibility))
            for visibility, programs in self._visibilities.items()
        ]
        result = self._groups.match(entries, masks)
        # Shapes that were registered after the events are not known yet.
        shapes = {program: known for program, known in self._shapes.items() if known.change.key not in away}
        found = [result.matches, *self._residual.match(entries, result.candidates, shapes, away)]
        if len(result.slow):
            found += self._fallback.match(entries, result.slow, self._index, shapes)
        filled = [each for each in found if each.num_rows]
        return pa.concat_tables(filled).sort_by("position") if len(filled) > 1 else (filled or found)[0]

    def _was_built_from_registry(self, store: IndexStore) -> bool:
        last, fingerprint = int(store.files.header["last"]), int(store.files.header["fingerprint"])
        return not last or fingerprint in map(
            index_maintenance.change_fingerprint, self._registry.changes(last - 1, last)
        )


class ChangeList:
    """Changes in order, without a registry. More may be appended."""

    def __init__(self, changes: Sequence[RegistryChange]) -> None:
        self._changes = changes

    def changes(self, after: int, through: int, most: int | None = None) -> Sequence[RegistryChange]:
        """Changes of one position are not separated, so there may be a few more than `most`."""
        first, last = (bisect_right(self._changes, each, key=_POSITION) for each in (after, through))
        if most is not None and first + most < last:
            last = bisect_right(self._changes, self._changes[first + most - 1].position, key=_POSITION)
        return self._changes[first:last]
