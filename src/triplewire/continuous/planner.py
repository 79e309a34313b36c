"""The network planner: turns registered continuous queries into the join network's program, and plans backfills.

A backfill is the part of the history that some queries are given in a batch: because they asked for it, because the
order of their patterns was decided anew, or because their state is rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np

from triplewire.continuous.join_network.builder import UNBOUNDED, ChainLeaf, JoinBounds, JoinNetwork, StreamScope
from triplewire.continuous.join_network.join_order import ArrivalRates, build_chain
from triplewire.continuous.join_network.layout import GROUP, NODE, PORT, SLOT, NetworkPlan
from triplewire.continuous.projection import GroupProjections, Projection, ProjectionTable
from triplewire.continuous.structures import STRUCTURE, QueryStructure
from triplewire.model.subscriptions import ContinuousQuery, QueryState
from triplewire.sparql.serialization import algebra_from_json, algebra_to_json
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, query_from_change

REBUILD_GROUPS = 1_000
"""Groups that may be gone before the network is made anew without them."""

_SECOND = 1_000_000


@dataclass(frozen=True)
class NetworkProgram:
    """What workers go by: a plan, what is told to groups, the scopes in the order of their numbers, and how many
    patterns the longest chain has."""

    version: int
    plan: NetworkPlan
    speech: ProjectionTable
    scopes: tuple[StreamScope, ...]
    depth: int

    def to_bytes(self) -> bytes:
        """The program as an uncompressed `.npz` archive: a JSON header, and arrays as raw bytes. Nothing is pickled."""
        speech = self.speech
        header = {
            "version": self.version,
            "depth": self.depth,
            "scopes": [[each.streams, each.origin] for each in self.scopes],
            "kinds": [[each.slots, algebra_to_json(each.steps), each.told] for each in speech.kinds],
        }
        arrays = {**self.plan._asdict(), "numbers": speech.numbers, "tails": speech.tails}
        raw = {name: np.ascontiguousarray(each).view(np.uint8) for name, each in arrays.items()}
        out = BytesIO()
        np.savez(out, allow_pickle=False, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **raw)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> NetworkProgram:
        """The program that `to_bytes` wrote. Raises ValueError or KeyError for other bytes."""
        with np.load(BytesIO(data), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            plan = NetworkPlan(**{name: file[name].view(dtype) for name, dtype in _PLAN.items()})
            numbers, tails = file["numbers"].view(np.int64), file["tails"].view(np.int32)
        kinds = [
            Projection(tuple((name, slot) for name, slot in slots), algebra_from_json(steps), tuple(told))
            for slots, steps, told in header["kinds"]
        ]
        scopes = [
            StreamScope(None if streams is None else tuple(streams), origin) for streams, origin in header["scopes"]
        ]
        return cls(header["version"], plan, ProjectionTable(numbers, tails, kinds), tuple(scopes), header["depth"])


_PLAN: Mapping[str, Any] = {
    "nodes": NODE,
    "roles": np.int8,
    "references": np.int32,
    "children": np.int32,
    "lifts": np.int32,
    "ports": PORT,
    "roots": np.int32,
    "by_predicate": SLOT,
    "anywhere": np.int64,
    "wanted": np.uint64,
    "groups": GROUP,
    "by_constants": SLOT,
    "pool": np.uint8,
    "spread": np.int8,
    "heavy": np.uint64,
}
"""The type of each array of a plan. A file holds their bytes alone, so that compiled code is given the very types that
it was compiled for."""


@dataclass
class _GroupEntry:
    """A group that is there, and how many queries it has."""

    index: int
    queries: int


@dataclass(frozen=True)
class _ChainEnd:
    """Of a structure in a scope: where its queries end, and what is told."""

    leaf: ChainLeaf
    tail: Projection


@dataclass
class NetworkPlanner:
    """Knows the queries up to a position. Not safe for threads."""

    rates: ArrivalRates = field(default_factory=ArrivalRates)
    version: int = 0
    queries: dict[str, ContinuousQuery] = field(default_factory=dict)
    """Those that hold, by id."""
    structures: dict[str, QueryStructure] = field(default_factory=dict)
    windows: dict[str, ContinuousQuery] = field(default_factory=dict)
    """Of the queries, those with windows."""
    backward: dict[str, ContinuousQuery] = field(default_factory=dict)
    """Those that look back."""
    once: dict[int, ContinuousQuery] = field(default_factory=dict)
    """Those whose answers are a set, by group; each has one of its own."""
    making: dict[int, tuple[ContinuousQuery, QueryStructure]] = field(default_factory=dict)
    """Those whose answers are made into triples, likewise."""
    oldest: dict[str, int] = field(default_factory=dict)
    """Of structures, where the first query was registered that has one."""
    _members: dict[int, _GroupEntry] = field(default_factory=dict)
    _network: JoinNetwork = field(default_factory=JoinNetwork)
    _groups: GroupProjections = field(default_factory=GroupProjections)
    _endings: dict[tuple[str, StreamScope], _ChainEnd] = field(default_factory=dict)
    _gone: int = 0
    _program: NetworkProgram | None = None

    def learn(self, changes: Iterable[RegistryChange], upto: int) -> None:
        """Take in what changed in the registry, in order, up to a position."""
        for change in changes:
            if change.kind == STRUCTURE and change.value is not None:
                self.structures[change.key] = QueryStructure.from_value(change.value)
            elif change.kind == QUERY:
                self._end(change.key)
                if change.value is not None:
                    self._begin(query_from_change(change))
        self.version = upto
        if self._gone > max(len(self._members), REBUILD_GROUPS):
            self.renew()

    def program(self, *, spread: bool) -> NetworkProgram:
        """What follows from those that hold now; the same one as long as nothing changed."""
        network = self._network
        if self._program is None or self._program.version != network.version:
            plan, speech = network.plan(spread=spread, heavy=self.rates.heavy), ProjectionTable.of(self._groups)
            depth = max((len(each.leaf.path) for each in self._endings.values()), default=0)
            self._program = NetworkProgram(network.version, plan, speech, tuple(network.scopes()), depth)
        return self._program

    def renew(self) -> None:
        """Leave out all that was for queries that are there no more, and go by orders and keys as they are now."""
        self._network, self._groups = JoinNetwork(self._network.version + 1), GroupProjections()
        self._members, self._endings, self._gone = {}, {}, 0
        for kept in (self.windows, self.backward, self.once, self.making, self.oldest):
            kept.clear()
        for query in self.queries.values():
            self._enter(query)

    def weigh(self, keys: Iterable[int]) -> None:
        """Spread what lies under these keys from now on."""
        fresh = set(keys) - self.rates.heavy
        if fresh:
            self.rates.heavy |= fresh
            self._network.version += 1

    def some(self, queries: Iterable[ContinuousQuery]) -> NetworkPlanner:
        """One that knows only these, and decides as this one did."""
        found = NetworkPlanner(self.rates, self.version, {each.id: each for each in queries}, self.structures)
        found.renew()
        return found

    def waiting_at(self, nodes: Set[int]) -> list[ContinuousQuery]:
        """The queries whose chains have one of these nodes, by id."""
        found = [
            (key, scope)
            for (key, scope), ending in self._endings.items()
            if not nodes.isdisjoint(each.id for each in ending.leaf.path)
        ]
        return [each for each in self.queries.values() if (each.structure, self._scope(each)) in found]

    @property
    def unbounded(self) -> bool:
        """Whether any query is."""
        return bool(self._members)

    def _begin(self, query: ContinuousQuery) -> None:
        if query.state is QueryState.ON:
            self.queries[query.id] = query
            self._enter(query)

    def _enter(self, query: ContinuousQuery) -> None:
        if query.group is None or query.structure is None:
            self.windows[query.id] = query
            return
        self._note(query, query.group, query.structure)
        member = self._members.get(query.group)
        if member is None:
            self._members[query.group] = _GroupEntry(self._added(query, query.group, query.structure), 1)
        else:
            member.queries += 1

    def _note(self, query: ContinuousQuery, group: int, key: str) -> None:
        structure = self.structures[key]
        if query.begins is not None:
            self.backward[query.id] = query
        else:
            self.oldest[key] = min(query.since, self.oldest.get(key, query.since))
        if structure.distinct:
            self.once[group] = query
        if structure.template:
            self.making[group] = query, structure

    def _added(self, query: ContinuousQuery, group: int, structure: str) -> int:
        ending = self._ending(structure, self._scope(query))
        span = UNBOUNDED if query.span is None else query.span
        within = UNBOUNDED if query.within is None else round(query.within * _SECOND)
        self._groups.add(group, ending.tail)
        return self._network.add(ending.leaf, query.constants, JoinBounds(span, within))

    def _scope(self, query: ContinuousQuery) -> StreamScope:
        origin = self.rates.origin(query.structure or "") if query.begins is None else query.since
        return StreamScope(query.streams, origin)

    def _ending(self, key: str, scope: StreamScope) -> _ChainEnd:
        found = self._endings.get((key, scope))
        if found is None:
            structure = self.structures[key]
            order = self.rates.order(key, scope.origin, structure.patterns)
            chained = build_chain([structure.patterns[each] for each in order])
            found = _ChainEnd(self._network.leaf(chained, scope), Projection.of(structure, chained.slots))
            self._endings[key, scope] = found
        return found

    def _end(self, id: str) -> None:
        gone = self.queries.pop(id, None)
        for kept in (self.windows, self.backward):
            kept.pop(id, None)
        member = None if gone is None or gone.group is None else self._members.get(gone.group)
        if gone is None or gone.group is None or member is None:
            return
        member.queries -= 1
        if not member.queries:
            del self._members[gone.group]
            self.once.pop(gone.group, None)
            self.making.pop(gone.group, None)
            self._network.remove(member.index)
            self._gone += 1


# Pasts: what queries are given in a batch of what was published before it.


@dataclass(frozen=True)
class Backfill:
    """What some queries are to be given of what was published before a batch: from a position on, to scopes of one
    origin. Only those that asked for it are told what it answers."""

    origin: int
    begins: int
    queries: Sequence[ContinuousQuery]
    told: bool


def plan_backfills(learner: NetworkPlanner, start: int, upto: int, *, anew: bool) -> Iterator[Backfill]:
    """Of a batch that begins after a position, and ends at another. `anew`: what those have who were there before it is
    made anew in it."""
    if anew:
        yield from _plan_rebuild(learner, start)
    for query in learner.backward.values():
        if query.begins is not None and start < query.since <= upto:
            yield Backfill(query.since, query.begins, [query], told=True)
    for structure, origin in learner.rates.origins.items():
        if start < origin <= upto and structure in learner.oldest:
            queries = learner.queries.values()
            found = [each for each in queries if each.structure == structure and each.begins is None]
            yield Backfill(origin, learner.oldest[structure] + 1, found, told=False)


def _plan_rebuild(learner: NetworkPlanner, start: int) -> Iterator[Backfill]:
    """Of all that were there before: those that look back each by itself, the others by where their order was decided,
    from the first of them on or as far back as their answers reach."""
    origins: dict[int, list[ContinuousQuery]] = {}
    for query in learner.queries.values():
        if query.structure is None or query.since > start:
            continue
        if query.begins is not None:
            yield Backfill(query.since, query.begins, [query], told=False)
        elif learner.rates.origin(query.structure) <= start:
            origins.setdefault(learner.rates.origin(query.structure), []).append(query)
    for origin, queries in origins.items():
        begins = 1 + min(each.since for each in queries)
        spans = [each.span for each in queries]
        reach = None if None in spans else max(each or 0 for each in spans)
        yield Backfill(origin, begins if reach is None else max(begins, start - reach), queries, told=False)
