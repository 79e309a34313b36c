"""Runs: the network without Spark, batch by batch, as the pipeline drives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tests.continuous.oracle import Asked, Key, Published
from triplewire.continuous.join_network.builder import to_network_events
from triplewire.continuous.join_network.layout import ROWS
from triplewire.continuous.join_network.partition import (
    EventRouter,
    JoinPartition,
    PartitionBuckets,
    split_by_partition,
)
from triplewire.continuous.planner import NetworkPlanner, NetworkProgram
from triplewire.continuous.structures import STRUCTURE, group_query, lift_constants, query_structure
from triplewire.model import ENTRIES, MATCHES
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.sparql.rspql import parse_registration
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, query_to_value


def query_of(wish: Asked, id: str) -> tuple[ContinuousQuery, RegistryChange]:
    """As it is registered, with the change that brings its structure."""
    within = None if wish.within is None else wish.within / 1_000_000
    structure = query_structure(parse_registration(wish.sparql), distinct=wish.distinct)
    found = group_query(lift_constants(structure), within=within, span=wish.span)
    query = ContinuousQuery(
        id,
        wish.sparql,
        group=found.group,
        structure=found.structure.key,
        constants=found.constants,
        variables=found.variables,
        within=within,
        span=wish.span,
        since=wish.since,
    )
    return query, RegistryChange(0, STRUCTURE, found.structure.key, found.structure.to_value())


@dataclass
class Run:
    """Some queries, and the stations that answer them."""

    wishes: Sequence[Asked]
    stations: int = 1
    spread: bool = True
    learner: NetworkPlanner = field(default_factory=NetworkPlanner)
    kept: dict[int, list[pa.Table]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = [query_of(wish, str(number)) for number, wish in enumerate(self.wishes)]
        self.queries = [query for query, _ in made]
        self.learner.apply_changes([change for _, change in made], 0)
        values = [(each, {**query_to_value(each), "first": each.since}) for each in self.queries]
        self.learner.apply_changes([RegistryChange(each.since, QUERY, each.id, value) for each, value in values], 0)
        self.places = [
            JoinPartition(self.program.plan, PartitionBuckets(each, self.stations)) for each in range(self.stations)
        ]

    @property
    def program(self) -> NetworkProgram:
        return self.learner.build_program(spread=self.spread)

    def restart(self) -> None:
        """All stations are lost, and made again of what they kept."""
        self.places = [
            JoinPartition(self.program.plan, PartitionBuckets(each, self.stations)) for each in range(self.stations)
        ]
        for number, place in enumerate(self.places):
            for table in self.kept.get(number, []):
                place.restore(table)

    def weigh(self, keys: set[int]) -> None:
        """From now on these keys are heavy."""
        self.learner.spread_keys(keys)
        for place in self.places:
            place.adopt(self.program.plan)

    def expire(self, last: Published) -> None:
        """What can be no part of an answer after an event is forgotten."""
        for place in self.places:
            place.expire(last.position, last.time)

    def take(self, events: Sequence[Published]) -> pa.Table:
        """A batch; what it answers, as `MATCHES`."""
        program = self.program
        rows, answers = EventRouter(program.plan).route(to_network_events(entries(events), program.scopes))
        told, inbox, rounds = (
            [program.projections.to_matches(answers)],
            list(split_by_partition(rows, self.stations)),
            0,
        )
        while inbox:
            outbox: list[tuple[int, pa.Table]] = []
            for number, place in enumerate(self.places):
                here = [ROWS.empty_table(), *(table for station, table in inbox if station == number)]
                taken = place.process(pa.concat_tables(here))
                self.kept.setdefault(number, []).append(taken.stored)
                outbox += split_by_partition(taken.leaving, self.stations, number)
                told.append(program.projections.to_matches(taken.answers))
            inbox, rounds = outbox, rounds + 1
        assert rounds <= max(1, program.depth - 1)
        return pa.concat_tables([MATCHES.empty_table(), *told])

    def answers(self, matches: pa.Table) -> Counter[Key]:
        """How often each query is told each answer at each position."""
        found: Counter[Key] = Counter()
        for row in matches.to_pylist():
            for number, query in enumerate(self.queries):
                if query.group == row["group"] and row["value"] > query.since:
                    terms = zip(query.variables, row["terms"][1:], strict=True)
                    bindings = tuple(sorted((name, term) for name, term in terms if term is not None))
                    found[number, row["position"], bindings] += 1
        return found


def entries(events: Sequence[Published]) -> pa.Table:
    rows = [
        {"position": each.position, "stream": "s", "event": f"urn:e:{each.position}", "text": each.text}
        | {"time": each.time, "received": each.time, "syntax": "application/n-quads"}
        for each in events
    ]
    return pa.Table.from_pylist(rows, schema=ENTRIES)
