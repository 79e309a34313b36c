"""The evaluator: the complete tier of matching.

Any subscription is SQL: one query for each shape, self-joins inside the event, and a join with the table of
constants of the shape's subscriptions. DuckDB runs it over a whole batch of events at once. What it finds is then
held
against the positions between which each subscription holds, so that a batch is matched against the registry as it
was
at each of its events.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.access.sights import Sight
from triplewire.config.limits import EVALUATOR_MEMORY
from triplewire.matching.ontologies import Closures
from triplewire.matching.portions import Patience, Portions, together
from triplewire.matching.shapes import Shape
from triplewire.matching.sights import redacted
from triplewire.matching.tables import Making, Table, plainly
from triplewire.model import MATCHES
from triplewire.model.events import drop_opaque_payloads
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_from_change


@dataclass
class Evaluator:
    """Subscriptions as tables, kept up by registry changes; matches batches of events against them.

    Not safe for threads: one evaluator belongs to one worker. `version` is the position up to which registry changes
    have been applied; matching a batch that ends later than that would miss subscriptions.
    """

    _duck: duckdb.DuckDBPyConnection = field(default_factory=lambda: connection())
    _closures: Closures | None = None
    """Of the connection, where it has several evaluators; they tell their tables apart by name."""
    _name: str = "constants"
    _patience: Patience = field(default_factory=Patience)
    _making: Making = plainly
    _clock: Callable[[], float] = time.thread_time
    version: int = 0
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The CPU seconds that shapes took, until somebody clears it."""
    _shapes: dict[str, Table] = field(default_factory=dict)
    _sights: dict[str, Sight | None] = field(default_factory=dict)
    _members: dict[str, tuple[str, int]] = field(default_factory=dict)
    _ended: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Where subscriptions were made → their shape, and where they ended; in the order in which they ended."""

    def __post_init__(self) -> None:
        self._ontologies = self._closures or Closures(self._duck)

    def apply(self, changes: Iterable[RegistryChange], upto: int) -> None:
        """Take in registry changes, in order; afterwards the evaluator speaks for positions up to `upto`."""
        for change in changes:
            if change.kind == SHAPE and change.value is not None and change.key not in self._shapes:
                shape, name = Shape.from_value(change.value), f"{self._name}_{change.key}"
                self._shapes[change.key] = self._making(self._duck, self._ontologies, shape, name)
                self._sights[change.key] = shape.sight
            elif change.kind == SUBSCRIPTION:
                self._change_member(change)
            else:
                self._ontologies.apply(change)
        self.version = upto

    def match(self, entries: pa.Table, shapes: Collection[str] | None = None) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as a `MATCHES` table sorted by position and subscription; of all
        shapes, or of some. What is no RDF matches nothing."""
        entries = drop_opaque_payloads(entries)
        asked = self._shapes if shapes is None else {key: self._shapes[key] for key in shapes}
        live = {key: each for key, each in asked.items() if each.prepare()}
        if not live or not entries.num_rows:
            return MATCHES.empty_table()
        self._ontologies.prepare()
        portions = Portions(self._duck, self._patience, self._clock, self.spent)
        found = [portions.match(redacted(entries, sight), part) for sight, part in self._by_sight(live)]
        return self.holding(found[0] if len(found) == 1 else together(found))

    def _by_sight(self, live: Mapping[str, Table]) -> Iterable[tuple[Sight | None, dict[str, Table]]]:
        parts = defaultdict[Sight | None, dict[str, Table]](dict)
        for key, each in live.items():
            parts[self._sights[key]][key] = each
        return parts.items()

    def forget(self, before: int) -> int:
        """Drop subscriptions that ended below a position; no later batch can concern them. Where the last of them
        ended, or 0."""
        gone = {since: shape for since, (shape, until) in self._ended.items() if until < before}
        for shape in set(gone.values()):
            self._shapes[shape].remove([since for since, its in gone.items() if its == shape])
        return max((self._ended.pop(since)[1] for since in gone), default=0)

    def _change_member(self, change: RegistryChange) -> None:
        if change.key in self._members:
            shape, since = self._members.pop(change.key)
            self._ended[since] = (shape, change.position)
        if change.value is not None:
            subscription = subscription_from_change(change)
            self._shapes[subscription.shape].add(subscription)
            self._members[change.key] = (subscription.shape, subscription.since)

    def holding(self, found: pa.Table) -> pa.Table:
        """Those matches whose subscription was made before the event and ended after it."""
        position, since = found["position"].to_numpy(), found["subscription"].to_numpy()
        holds = position > since
        if self._ended:
            made = np.array(sorted(self._ended), dtype=np.int64)
            until = np.array([self._ended[each][1] for each in made.tolist()], dtype=np.int64)
            place = np.minimum(np.searchsorted(made, since), len(made) - 1)
            holds &= (made[place] != since) | (position < until[place])
        return found if holds.all() else found.filter(pa.array(holds))


def connection() -> duckdb.DuckDBPyConnection:
    """One thread, because Spark runs one task a core; nothing is loaded from outside. Patterns come in the order in
    which they are best joined, which DuckDB, knowing nothing of selectivity, would only spoil."""
    ensure_recursion_limit()
    config: dict[str, Any] = {"threads": 1, "memory_limit": EVALUATOR_MEMORY, "temp_directory": ""}
    duck = duckdb.connect(config={**config, "autoload_known_extensions": False})
    register_functions(duck)
    return duck.execute("SET disabled_optimizers = 'join_order'")
