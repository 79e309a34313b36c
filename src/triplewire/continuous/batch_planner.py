"""The batch planner: what is decided for a batch of continuous queries before it runs.

It decides which queries are active, in which order their patterns are joined, which join keys are spread over all
partitions, and which queries get a backfill. A backfill is the part of the history that some queries are given in a
batch: because they asked for it, because their join order was decided anew, or because their state is rebuilt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from triplewire.continuous.join_network.join_order import ArrivalRates
from triplewire.continuous.planner import NetworkPlanner
from triplewire.continuous.state import BatchContext
from triplewire.continuous.structures import STRUCTURE
from triplewire.model import MATCHES
from triplewire.model.subscriptions import ContinuousQuery, QueryState
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, newest_renewal, query_to_value

logger = logging.getLogger(__name__)

REORDER_BATCHES: Final = 32
"""Batches from one check of the join orders to the next."""

REORDER_TIMES: Final = 8
"""How many times as frequent the first pattern of a chain must be as that of the best order, before the chain is
reordered: that costs a backfill."""

REORDER_COUNTED: Final = 10_000
"""Triples that must have been counted before an order is decided again."""

REORDER_POSITIONS: Final = 500_000
"""Positions of the history that are backfilled at most when a chain is reordered: some ten seconds."""


@dataclass(frozen=True)
class ReorderRules:
    """When a join order is decided anew."""

    batches: int = REORDER_BATCHES
    times: float = REORDER_TIMES
    counted: int = REORDER_COUNTED
    positions: int = REORDER_POSITIONS


@dataclass
class Decisions:
    """The decisions that a replayed batch must repeat. They are written before anything is done by them."""

    partitions: int
    """The number of state partitions, for both stages."""
    spread: bool
    """Whether rows are spread by their values, or stay with their pattern."""
    rates: ArrivalRates
    rebuilt_at: int = 0
    """The position at which all state was rebuilt; 0 if it never was."""

    @classmethod
    def from_value(cls, value: Mapping[str, Any], partitions: int, spread: bool) -> Decisions:
        """Read decisions. The first start fixes how state is partitioned, since rows are found in no other way: later
        settings are ignored with a warning."""
        decisions = cls(
            value.get("partitions", partitions),
            value.get("spread", spread),
            ArrivalRates.from_value(value),
            value.get("rebuilt_at", 0),
        )
        if (decisions.partitions, decisions.spread) != (partitions, spread):
            strategy = "csbv" if decisions.spread else "cqc"
            logger.warning(
                "continuous queries keep the %s state partitions and the strategy %s with which they began",
                decisions.partitions,
                strategy,
            )
        return decisions

    def to_value(self) -> dict[str, Any]:
        own = {"partitions": self.partitions, "spread": self.spread, "rebuilt_at": self.rebuilt_at}
        return self.rates.to_value() | own


@dataclass(frozen=True)
class Backfill:
    """History for some queries: from the position `begins` on, to the scopes of one `origin`. Answers are `reported`
    only to queries that asked for it."""

    origin: int
    begins: int
    queries: Sequence[ContinuousQuery]
    reported: bool


class BatchPlanner:
    """The planner of one run. Not safe for threads."""

    def __init__(self, registry: Registry, decisions: Decisions, rules: ReorderRules | None = None) -> None:
        self.decisions = decisions
        self.network = NetworkPlanner(decisions.rates)
        self._registry = registry
        self._rules = rules or ReorderRules()

    def read_registry(self, position: int) -> bool:
        """Apply the registrations up to a position. Return whether a rebuild of all state was requested, which is a
        decision to be written."""
        registry, network = self._registry, self.network
        if network.version == 0:
            known = [*registry.list(STRUCTURE), *registry.list(QUERY)]
            network.apply_changes([each for each in known if each.position <= position], position)
        elif position > network.version:
            changes = registry.changes(network.version, position)
            network.apply_changes([each for each in changes if each.kind in (QUERY, STRUCTURE)], position)
        request = newest_renewal(registry)
        if request is None or not self.decisions.rebuilt_at < request.position <= position:
            return False
        self.decisions.rebuilt_at = request.position
        return True

    def rebuilds_after(self, after: int) -> bool:
        """Whether the batch that begins after a position rebuilds all state."""
        return after < self.decisions.rebuilt_at

    def reorder(self, context: BatchContext, after: int) -> None:
        """Decide anew about the structure whose join order fits the arrival rates least, if it is much worse than the
        best order and the backfill that it costs is not too long."""
        network, rates, rules = self.network, self.decisions.rates, self._rules
        if context.batch % rules.batches or rates.counts.total() < rules.counted:
            return
        if any(each.since == context.position for each in network.backfilled.values()):
            # That query has the scope with this origin for itself.
            return
        regrets = {
            key: rates.regret(key, network.structures[key].patterns)
            for key, since in network.first_registered.items()
            if after - since <= rules.positions and rates.origin(key) <= after
        }
        worst = max(regrets, key=regrets.__getitem__, default="")
        if worst and regrets[worst] > rules.times:
            rates.decide(worst, context.position)
            network.rebuild()

    def plan_backfills(self, context: BatchContext, after: int) -> Iterator[Backfill]:
        """Yield the backfills of a batch that begins after a position."""
        network, rates = self.network, self.decisions.rates
        if self.rebuilds_after(after):
            yield from self._plan_rebuild(after)
        for query in network.backfilled.values():
            if query.begins is not None and after < query.since <= context.position:
                yield Backfill(query.since, query.begins, [query], reported=True)
        for structure, origin in rates.origins.items():
            if after < origin <= context.position and structure in network.first_registered:
                queries = network.queries.values()
                affected = [each for each in queries if each.structure == structure and each.begins is None]
                yield Backfill(origin, network.first_registered[structure] + 1, affected, reported=False)

    def _plan_rebuild(self, after: int) -> Iterator[Backfill]:
        """Yield a backfill for each query that began before its registration, and one for all others of one origin:
        from the first of them on, or as far back as their answers reach."""
        rates, origins = self.decisions.rates, dict[int, list[ContinuousQuery]]()
        for query in self.network.queries.values():
            if query.structure is None or query.since > after:
                continue
            if query.begins is not None:
                yield Backfill(query.since, query.begins, [query], reported=False)
            elif rates.origin(query.structure) <= after:
                origins.setdefault(rates.origin(query.structure), []).append(query)
        for origin, queries in origins.items():
            begins = 1 + min(each.since for each in queries)
            spans = [each.span for each in queries]
            reach = None if None in spans else max(each or 0 for each in spans)
            yield Backfill(origin, begins if reach is None else max(begins, after - reach), queries, reported=False)

    def date_matches(self, matches: pa.Table, context: BatchContext, after: int) -> pa.Table:
        """Date no match of a backfilled query before its registration. Returns matches in order of position."""
        positions, groups = matches["position"].to_numpy().copy(), matches["group"].to_numpy()
        for query in self.network.backfilled.values():
            if after < query.since <= context.position:
                positions[groups == query.group] = np.maximum(positions[groups == query.group], query.since)
        return matches.set_column(0, MATCHES.field("position"), pa.array(positions)).sort_by("position")

    def find_overfull(self, groups: Iterable[int], nodes: Set[int]) -> list[ContinuousQuery]:
        """Return the queries with set semantics of some groups, and those whose chains pass some nodes."""
        distinct = self.network.distinct
        queries = [distinct[each] for each in groups if each in distinct]
        return queries + (self.network.queries_through(nodes) if nodes else [])

    def suspend(self, queries: Sequence[ContinuousQuery], position: int) -> None:
        """Suspend queries that exceed a limit, in the registry and here."""
        if not queries:
            return
        logger.warning("suspended, because a limit is exceeded: %s", [each.id for each in queries])
        suspended = [replace(each, state=QueryState.SUSPENDED) for each in queries]
        self._registry.put([(QUERY, each.id, registration_value(each)) for each in suspended])
        ended = [RegistryChange(position, QUERY, each.id, None) for each in queries]
        self.network.apply_changes(ended, self.network.version)


def registration_value(query: ContinuousQuery) -> dict[str, Any]:
    """Return a query as a registry value that keeps the position of its first registration."""
    return {**query_to_value(query), "first": query.since}
