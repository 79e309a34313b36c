"""The match jobs: events in, matches out, in the main lane and in the slow lane for expensive shapes.

Workers keep a matcher across batches; it knows the registry up to the position at which their part of the batch ends.
Shapes that are too expensive move to a query of their own, which delays nobody else.

```
position        made ───────────────── p, the registry's `lane` ─────────────────▶
main lane       matches it ──────────▶ │
slow lane                              │ matches it, as fast as it can ──────────▶
```

Both lanes may report more than their part of a shape's matches, for the batch that p lies in; neither reports less. A
reader takes those up to p from one and those after it from the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from triplewire.matching.bags import make_table
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.index.groups import warm_up
from triplewire.matching.matcher import Matcher
from triplewire.model import no_matches
from triplewire.spark.jobs.ports import JobPorts
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.ontologies import BATCH_EVENTS, ONTOLOGY
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.subscriptions import LANE, SHAPE, SUBSCRIPTION


class LaneMatcher(Protocol):
    """Matches the events of one lane."""

    def match(self, entries: pa.Table) -> pa.Table:
        """Match a batch of `ENTRIES`, in order, each against the registry as it was at its position."""

    def spent(self) -> dict[str, float]:
        """The CPU seconds that the evaluators took for each shape since the last call."""


def open_matcher(ports: JobPorts, lane: OutboxLane) -> LaneMatcher:
    """Open the matcher of a lane, with compiled code that is ready to run."""
    if lane is OutboxLane.SLOW:
        return SlowLaneMatcher(ports.open_registry())
    warm_up()
    return Matcher(ports.open_registry(), ports.index_files)


@dataclass
class SlowLaneMatcher:
    """The subscriptions of the slow lane. Only the evaluator matches them: it is complete, and speed does not matter
    here."""

    registry: Registry
    evaluator: Evaluator = field(default_factory=lambda: Evaluator(_make_table=make_table))
    shapes: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)

    def match(self, entries: pa.Table) -> pa.Table:
        """Match a batch of `ENTRIES`, in order. An ontology that changes within it holds from there on."""
        positions = entries["position"].to_numpy()
        first, last = int(positions[0]), int(positions[-1])
        changes = self._read_changes(last)
        splits = [each.position - 1 for each in changes if each.kind == ONTOLOGY and each.position > first]
        found, start = [no_matches()], 0
        for through in [*splits, last]:
            self._apply(changes, through)
            stop = int(np.searchsorted(positions, through, "right"))
            found.append(self.evaluator.match(entries.slice(start, stop - start)))
            start = stop
        return pa.concat_tables(found)

    def spent(self) -> dict[str, float]:
        """Nothing: no shape leaves this lane."""
        return {}

    def _read_changes(self, last: int) -> list[RegistryChange]:
        """Return the changes to apply. If a shape is new in this lane, that is all of its history, and matching starts
        anew."""
        version = self.evaluator.version
        changes = self.registry.changes(version, last) if last > version else ()
        moved = {each.key for each in changes if each.kind == LANE}
        if moved - self.shapes:
            self.shapes |= moved
            self.members, self.evaluator = set(), Evaluator(_make_table=make_table)
            changes = self.registry.changes(0, last)
        return [each for each in changes if self._concerns(each)]

    def _concerns(self, change: RegistryChange) -> bool:
        if change.kind == SHAPE:
            return change.key in self.shapes
        if change.kind != SUBSCRIPTION:
            return change.kind == ONTOLOGY
        known = change.key in self.members
        here = change.value is not None and change.value["shape"] in self.shapes
        (self.members.add if here else self.members.discard)(change.key)
        return known or here

    def _apply(self, changes: Iterable[RegistryChange], through: int) -> None:
        version = self.evaluator.version
        if through <= version:
            return
        self.evaluator.apply(
            [_end_if_moved(each, self.shapes) for each in changes if version < each.position <= through], through
        )
        self.evaluator.forget(through - BATCH_EVENTS)


def _end_if_moved(change: RegistryChange, shapes: set[str]) -> RegistryChange:
    """A subscription whose new version is of a shape that is not in this lane has ended here."""
    left = change.kind == SUBSCRIPTION and change.value is not None and change.value["shape"] not in shapes
    return RegistryChange(change.position, change.kind, change.key, None) if left else change
