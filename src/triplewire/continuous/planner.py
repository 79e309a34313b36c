"""The network planner: turns registered continuous queries into the join network's program, which workers run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
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
"""Groups that may have been removed before the network is rebuilt without them."""

_SECOND = 1_000_000


@dataclass(frozen=True)
class NetworkProgram:
    """A program that workers run: the plan of the network, the projections of its groups, the scopes in the order of
    their numbers, and the number of patterns of the longest chain."""

    version: int
    plan: NetworkPlan
    projections: ProjectionTable
    scopes: tuple[StreamScope, ...]
    depth: int

    def to_bytes(self) -> bytes:
        """Return the program as an uncompressed `.npz` archive: a JSON header and raw arrays, none pickled."""
        table = self.projections
        header = {
            "version": self.version,
            "depth": self.depth,
            "scopes": [[each.streams, each.origin] for each in self.scopes],
            "projections": [[each.slots, algebra_to_json(each.steps), each.variables] for each in table.projections],
        }
        arrays = {**self.plan._asdict(), "group_numbers": table.groups, "projection_indexes": table.indexes}
        raw = {name: np.ascontiguousarray(each).view(np.uint8) for name, each in arrays.items()}
        out = BytesIO()
        np.savez(out, allow_pickle=False, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **raw)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> NetworkProgram:
        """Read the program that `to_bytes` wrote. Raises ValueError or KeyError for other bytes."""
        with np.load(BytesIO(data), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            plan = NetworkPlan(**{name: file[name].view(dtype) for name, dtype in _PLAN.items()})
            groups, indexes = file["group_numbers"].view(np.int64), file["projection_indexes"].view(np.int32)
        projections = [
            Projection(tuple((name, slot) for name, slot in slots), algebra_from_json(steps), tuple(variables))
            for slots, steps, variables in header["projections"]
        ]
        scopes = [
            StreamScope(None if streams is None else tuple(streams), origin) for streams, origin in header["scopes"]
        ]
        table = ProjectionTable(groups, indexes, projections)
        return cls(header["version"], plan, table, tuple(scopes), header["depth"])


_PLAN: Mapping[str, Any] = {
    **{"nodes": NODE, "ports": PORT, "groups": GROUP, "by_predicate": SLOT, "by_constants": SLOT},
    **dict.fromkeys(("references", "children", "lifts", "roots"), np.int32),
    **dict.fromkeys(("wanted", "heavy"), np.uint64),
    **dict.fromkeys(("roles", "spread"), np.int8),
    **{"anywhere": np.int64, "pool": np.uint8},
}
"""The type of each array of a plan. A file holds only their bytes, so that compiled code gets the types that it was
compiled for."""


@dataclass
class _GroupEntry:
    """A group: its number in the network, and how many queries it has."""

    index: int
    queries: int


@dataclass(frozen=True)
class _ChainEnd:
    """The end of the chain of a structure in a scope."""

    leaf: ChainLeaf
    projection: Projection


@dataclass
class NetworkPlanner:
    """The registered queries up to a position, as a join network. Not safe for threads."""

    rates: ArrivalRates = field(default_factory=ArrivalRates)
    version: int = 0
    queries: dict[str, ContinuousQuery] = field(default_factory=dict)
    """The active queries, by id."""
    structures: dict[str, QueryStructure] = field(default_factory=dict)
    windows: dict[str, ContinuousQuery] = field(default_factory=dict)
    """The queries with windows, by id."""
    backfilled: dict[str, ContinuousQuery] = field(default_factory=dict)
    """The queries that begin before their registration, by id."""
    distinct: dict[int, ContinuousQuery] = field(default_factory=dict)
    """The queries with set semantics, by group; each has a group of its own."""
    constructing: dict[int, tuple[ContinuousQuery, QueryStructure]] = field(default_factory=dict)
    """The CONSTRUCT queries, by group; each has a group of its own."""
    first_registered: dict[str, int] = field(default_factory=dict)
    """The position of the first registration with a structure, by structure."""
    _entries: dict[int, _GroupEntry] = field(default_factory=dict)
    _network: JoinNetwork = field(default_factory=JoinNetwork)
    _groups: GroupProjections = field(default_factory=GroupProjections)
    _chain_ends: dict[tuple[str, StreamScope], _ChainEnd] = field(default_factory=dict)
    _removed: int = 0
    _program: NetworkProgram | None = None

    def apply_changes(self, changes: Iterable[RegistryChange], position: int) -> None:
        """Apply the changes of the registry up to a position, in order."""
        for change in changes:
            if change.kind == STRUCTURE and change.value is not None:
                self.structures[change.key] = QueryStructure.from_value(change.value)
            elif change.kind == QUERY:
                self._end(change.key)
                query = None if change.value is None else query_from_change(change)
                if query is not None and query.state is QueryState.ON:
                    self.queries[query.id] = query
                    self._enter(query)
        self.version = position
        if self._removed > max(len(self._entries), REBUILD_GROUPS):
            self.rebuild()

    def build_program(self, *, spread: bool) -> NetworkProgram:
        """Return the program for the active queries: the same object as long as nothing changed."""
        network = self._network
        if self._program is None or self._program.version != network.version:
            plan, projections = network.plan(spread=spread, heavy=self.rates.heavy), self._groups.to_table()
            depth = max((len(each.leaf.path) for each in self._chain_ends.values()), default=0)
            self._program = NetworkProgram(network.version, plan, projections, tuple(network.scopes()), depth)
        return self._program

    def rebuild(self) -> None:
        """Build the network anew for the active queries, by the join orders and heavy keys that hold now."""
        self._network, self._groups = JoinNetwork(self._network.version + 1), GroupProjections()
        self._entries, self._chain_ends, self._removed = {}, {}, 0
        for each in (self.windows, self.backfilled, self.distinct, self.constructing, self.first_registered):
            each.clear()
        for query in self.queries.values():
            self._enter(query)

    def spread_keys(self, keys: Iterable[int]) -> None:
        """Spread the rows of these join keys over all partitions from now on."""
        added = set(keys) - self.rates.heavy
        if added:
            self.rates.heavy |= added
            self._network.version += 1

    def restrict_to(self, queries: Iterable[ContinuousQuery]) -> NetworkPlanner:
        """Return a planner of some queries that shares the decisions of this one."""
        planner = NetworkPlanner(self.rates, self.version, {each.id: each for each in queries}, self.structures)
        planner.rebuild()
        return planner

    def queries_through(self, nodes: Set[int]) -> list[ContinuousQuery]:
        """Return the queries whose chains pass one of these nodes, given by id."""
        ends = {key for key, end in self._chain_ends.items() if not nodes.isdisjoint(each.id for each in end.leaf.path)}
        return [each for each in self.queries.values() if (each.structure, self._scope(each)) in ends]

    @property
    def has_unbounded(self) -> bool:
        """Whether any query has no windows."""
        return bool(self._entries)

    def _enter(self, query: ContinuousQuery) -> None:
        if query.group is None or query.structure is None:
            self.windows[query.id] = query
            return
        self._note(query, query.group, query.structure)
        entry = self._entries.get(query.group)
        if entry is None:
            self._entries[query.group] = _GroupEntry(self._add_group(query, query.group, query.structure), 1)
        else:
            entry.queries += 1

    def _note(self, query: ContinuousQuery, group: int, key: str) -> None:
        structure = self.structures[key]
        if query.begins is not None:
            self.backfilled[query.id] = query
        else:
            self.first_registered[key] = min(query.since, self.first_registered.get(key, query.since))
        if structure.distinct:
            self.distinct[group] = query
        if structure.template:
            self.constructing[group] = query, structure

    def _add_group(self, query: ContinuousQuery, group: int, structure: str) -> int:
        end = self._chain_end(structure, self._scope(query))
        span = UNBOUNDED if query.span is None else query.span
        within = UNBOUNDED if query.within is None else round(query.within * _SECOND)
        self._groups.add(group, end.projection)
        return self._network.add(end.leaf, query.constants, JoinBounds(span, within))

    def _scope(self, query: ContinuousQuery) -> StreamScope:
        origin = self.rates.origin(query.structure or "") if query.begins is None else query.since
        return StreamScope(query.streams, origin)

    def _chain_end(self, key: str, scope: StreamScope) -> _ChainEnd:
        end = self._chain_ends.get((key, scope))
        if end is None:
            structure = self.structures[key]
            order = self.rates.order(key, scope.origin, structure.patterns)
            chain = build_chain([structure.patterns[each] for each in order])
            end = _ChainEnd(self._network.leaf(chain, scope), Projection.for_structure(structure, chain.slots))
            self._chain_ends[key, scope] = end
        return end

    def _end(self, id: str) -> None:
        query = self.queries.pop(id, None)
        self.windows.pop(id, None)
        self.backfilled.pop(id, None)
        entry = None if query is None or query.group is None else self._entries.get(query.group)
        if query is None or query.group is None or entry is None:
            return
        entry.queries -= 1
        if not entry.queries:
            del self._entries[query.group]
            self.distinct.pop(query.group, None)
            self.constructing.pop(query.group, None)
            self._network.remove(entry.index)
            self._removed += 1
