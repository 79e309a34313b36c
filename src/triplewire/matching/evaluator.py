"""The evaluator: the complete tier of matching.

Any subscription is SQL: one query for each shape, self-joins inside the event, and a join with the table of
constants of the shape's subscriptions. DuckDB runs it over a whole batch of events at once. A subscription is a row
with the positions between which it holds, so a batch is matched against the registry as it was at each event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from triplewire.matching.constants import Constants
from triplewire.matching.shapes import Shape
from triplewire.model import MATCHES
from triplewire.registry.ports import Change
from triplewire.registry.subscriptions import SHAPE, SUBSCRIPTION, from_change
from triplewire.sparql import explode, facets_used, to_sql


@dataclass
class Evaluator:
    """Subscriptions as tables, kept up by registry changes; matches batches of events against them.

    Not safe for threads: one evaluator belongs to one worker. `version` is the position up to which registry changes
    have been applied; matching a batch that ends later than that would miss subscriptions.
    """

    version: int = 0
    _duck: duckdb.DuckDBPyConnection = field(default_factory=lambda: _connection())
    _shapes: dict[str, Constants] = field(default_factory=dict)
    _members: dict[str, tuple[str, int]] = field(default_factory=dict)

    def apply(self, changes: Iterable[Change], upto: int) -> None:
        """Take in registry changes, in order; afterwards the evaluator speaks for positions up to `upto`."""
        for change in changes:
            if change.kind == SHAPE and change.value is not None and change.key not in self._shapes:
                self._shapes[change.key] = Constants(self._duck, Shape.from_value(change.value), change.key)
            elif change.kind == SUBSCRIPTION:
                self._change_member(change)
        self.version = upto

    def match(self, entries: pa.Table) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as a `MATCHES` table sorted by position and subscription."""
        live = [each for each in self._shapes.values() if each.prepare()]
        if not live or not entries.num_rows:
            return MATCHES.empty_table()
        self._load(entries, frozenset().union(*(facets_used(each.shape.query) for each in live)))
        found = pa.concat_tables([each.match() for each in live])
        return found.sort_by([("position", "ascending"), ("subscription", "ascending")])

    def forget(self, before: int) -> None:
        """Drop subscriptions that ended below a position; no later batch can concern them."""
        for each in self._shapes.values():
            each.forget(before)

    def _change_member(self, change: Change) -> None:
        if change.key in self._members:
            shape, since = self._members.pop(change.key)
            self._shapes[shape].end(since, change.position)
        if change.value is not None:
            subscription = from_change(change)
            self._shapes[subscription.shape].add(subscription)
            self._members[change.key] = (subscription.shape, subscription.since)

    def _load(self, entries: pa.Table, facets: frozenset[str]) -> None:
        self._duck.register("entries", entries)
        columns = ("position", "quad", "stream", "graph", "subject", "predicate", "object", *sorted(facets))
        exploded = to_sql(explode("entries", columns=columns), "duckdb")
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE quads AS {exploded}")
        self._duck.unregister("entries")


def _connection() -> duckdb.DuckDBPyConnection:
    """One thread, because Spark runs one task a core; nothing is loaded from outside."""
    return duckdb.connect(config={"threads": 1, "autoload_known_extensions": False, "memory_limit": "2GB"})
