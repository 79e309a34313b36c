"""The builder of the join network: nodes shared by chains that begin alike, groups of queries, and their plan.

Nodes and ports are identified by hashes of their definition, so that stored rows mean the same in another process and
under another plan. Events enter as arrays, with the scopes that each belongs to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.continuous.join_network import store
from triplewire.continuous.join_network.join_order import ChainStep, JoinChain, TermRole
from triplewire.continuous.join_network.kernels import LIFTED
from triplewire.continuous.join_network.layout import GROUP, NODE, PORT, SLOT, NetworkEvents, NetworkPlan
from triplewire.kernels.arrays import Bytes, Flags, Int64, UInt64
from triplewire.kernels.compiler import compiled
from triplewire.kernels.words import hash_bytes, hash_pair, hash_text
from triplewire.model.events import drop_opaque_payloads
from triplewire.model.subscriptions import ANSWER

UNBOUNDED = 2**62
"""The bound of positions or microseconds that is none."""

_TAB = np.uint8(9)


@dataclass(frozen=True)
class StreamScope:
    """The events whose triples count: those of some streams, or of all. A scope whose origin is a position, not 0,
    gets a backfill when it begins."""

    streams: tuple[str, ...] | None = None
    origin: int = 0


@dataclass(frozen=True)
class InputPort:
    """An input of the network: triples with one predicate, or any, of one scope."""

    predicate: str | None
    scope: StreamScope
    joins: int
    lifts: int
    first: bool

    @property
    def id(self) -> int:
        return _stable_id("port", self.predicate, astuple(self.scope), self.joins, self.lifts, self.first)


@dataclass
class JoinNode:
    """A step that chains share which begin alike."""

    id: int
    step: ChainStep
    port: InputPort
    width: int
    number: int
    children: list[int] = field(default_factory=list)
    lifts: tuple[int, ...] | None = None
    span: int = 0
    within: int = 0


@dataclass(frozen=True)
class JoinBounds:
    """How far apart the triples of an answer may be: in positions, and in microseconds."""

    span: int = UNBOUNDED
    within: int = UNBOUNDED


@dataclass(frozen=True)
class ChainLeaf:
    """The end of a chain, with the nodes that lead to it. `sought` has the ids of ports that ask for constants, each
    with pairs of a term's index in the triple and the number of its constant."""

    path: tuple[JoinNode, ...]
    sought: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


class JoinNetwork:
    """The network of all groups of queries. Groups are numbered from 0 on."""

    def __init__(self, version: int = 0) -> None:
        self.nodes: list[JoinNode] = []
        self._by_id: dict[int, JoinNode] = {}
        self._roots: dict[InputPort, list[int]] = {}
        self._ports: dict[InputPort, None] = {}
        self._groups = _GroupColumns()
        self._wanted: set[int] = set()
        self.version = version

    def leaf(self, chain: JoinChain, scope: StreamScope) -> ChainLeaf:
        """Return the leaf at which queries with this chain end; many of them share it."""
        path = self._path(chain, scope)
        path[-1].lifts = chain.lifts
        constants = {slot: number for number, slot in enumerate(chain.lifts)}
        sought = [_lifted_constants(each, constants) for each in path if each.port.lifts]
        return ChainLeaf(tuple(path), tuple(sought))

    def add(self, leaf: ChainLeaf, constants: Sequence[str], terms: JoinBounds) -> int:
        """Add a group that asks for the chain of a leaf with these constants; return its number."""
        for node in leaf.path:
            node.span, node.within = max(node.span, terms.span), max(node.within, terms.within)
        hashes = [hash_text(each) for each in constants] if leaf.sought else []
        for port, places in leaf.sought:
            key = port
            for place, number in places:
                key = _pair_hashes(key, hashes[number], place)
            self._wanted.add(key or 1)
        self.version += 1
        return self._groups.add(leaf.path[-1], constants, terms)

    def remove(self, group: int) -> None:
        """Remove a group: it gets no more answers."""
        self._groups.alive[group] = 0
        self.version += 1

    def _path(self, chain: JoinChain, scope: StreamScope) -> list[JoinNode]:
        found, before, width = list[JoinNode](), 0, 0
        for depth, step in enumerate(chain.steps):
            id = _stable_id("node", before, astuple(step), astuple(scope))
            node = self._by_id.get(id)
            if node is None:
                node = self._add_node(id, step, scope, width, found[-1] if depth else None)
            found.append(node)
            before = id
            width += sum(role in (TermRole.NEW, TermRole.LIFT) for role in step.roles)
        return found

    def _add_node(self, id: int, step: ChainStep, scope: StreamScope, width: int, parent: JoinNode | None) -> JoinNode:
        port = InputPort(
            step.predicate, scope, _role_bits(step, TermRole.JOIN), _role_bits(step, TermRole.LIFT), parent is None
        )
        node = JoinNode(id, step, port, width, len(self.nodes))
        self.nodes.append(node)
        self._by_id[id] = node
        self._ports.setdefault(port)
        if parent is None:
            self._roots.setdefault(port, []).append(node.number)
        else:
            parent.children.append(node.number)
        return node

    def scopes(self) -> list[StreamScope]:
        """Return the scopes in the order of their numbers."""
        return list(dict.fromkeys(port.scope for port in self._ports))

    def plan(self, *, spread: bool = True, heavy: Collection[int] = ()) -> NetworkPlan:
        """Return the plan of the network as it is now. `heavy` are the join keys to spread over all partitions."""
        pool = _TextPool()
        ports = sorted(self._ports, key=lambda each: (each.predicate is None, each.predicate or ""))
        numbers = {scope: number for number, scope in enumerate(self.scopes())}
        nodes, children, lifts = self._node_records(pool)
        records, roots = self._port_records(ports, numbers, pool)
        named = [each for each in ports if each.predicate is not None]
        groups, by_constants, text = self._groups.records(self.nodes, pool.size)
        return NetworkPlan(
            nodes=nodes,
            roles=np.array([role for each in self.nodes for role in each.step.roles], np.int8),
            references=np.array([each for node in self.nodes for each in node.step.references], np.int32),
            children=np.array(children, np.int32),
            lifts=np.array(lifts, np.int32),
            ports=records,
            roots=np.array(roots, np.int32),
            by_predicate=_predicate_index(named),
            anywhere=np.array([len(named), len(ports) - len(named)], np.int64),
            wanted=_key_set(self._wanted),
            groups=groups,
            by_constants=by_constants,
            pool=np.concatenate([pool.bytes(), text]),
            spread=np.array([spread], np.int8),
            heavy=_key_set(heavy),
        )

    def _port_bounds(self) -> dict[InputPort, tuple[int, int]]:
        """Return the widest bounds of the nodes behind each port."""
        found = dict.fromkeys(self._ports, (0, 0))
        for node in self.nodes:
            span, within = found[node.port]
            found[node.port] = max(span, node.span), max(within, node.within)
        return found

    def _node_records(self, pool: _TextPool) -> tuple[np.ndarray, list[int], list[int]]:
        nodes, records = self.nodes, np.zeros(len(self.nodes), NODE)
        predicates = [pool.place(each.step.predicate) for each in nodes]
        records["predicate_start"], records["predicate_length"] = _columns(predicates)
        records["id"] = [each.id for each in nodes]
        records["salt"] = [each.port.id for each in nodes]
        records["width"] = [each.width for each in nodes]
        records["span"] = [each.span for each in nodes]
        records["within"] = [each.within for each in nodes]
        records["children"] = [len(each.children) for each in nodes]
        records["lifts"] = [-1 if each.lifts is None else len(each.lifts) for each in nodes]
        records["first_child"] = _firsts(len(each.children) for each in nodes)
        records["first_lift"] = _firsts(len(each.lifts or ()) for each in nodes)
        children = [number for each in nodes for number in each.children]
        return records, children, [slot for each in nodes for slot in each.lifts or ()]

    def _port_records(
        self, ports: Sequence[InputPort], scopes: Mapping[StreamScope, int], pool: _TextPool
    ) -> tuple[np.ndarray, list[int]]:
        records = np.zeros(len(ports), PORT)
        roots = [self._roots.get(each, []) for each in ports]
        records["predicate_start"], records["predicate_length"] = _columns([pool.place(e.predicate) for e in ports])
        records["id"] = [each.id for each in ports]
        behind = self._port_bounds()
        records["span"], records["within"] = _columns([behind[each] for each in ports])
        records["scope"] = [scopes[each.scope] for each in ports]
        records["joins"] = [each.joins for each in ports]
        records["lifts"] = [each.lifts for each in ports]
        records["roots"] = [len(found) if each.first else -1 for each, found in zip(ports, roots, strict=True)]
        records["first_root"] = _firsts(len(found) for found in roots)
        return records, [number for found in roots for number in found]


def _lifted_constants(node: JoinNode, constants: Mapping[int, int]) -> tuple[int, tuple[tuple[int, int], ...]]:
    lifted = [place for place, role in enumerate(node.step.roles) if role is TermRole.LIFT]
    return node.port.id, tuple((place, constants[node.step.references[place]]) for place in lifted)


def _key_set(keys: Collection[int]) -> UInt64:
    found = np.zeros(store.table_size(len(keys)), np.uint64)
    store.add_keys(found, np.fromiter(keys, np.uint64, len(keys)))
    return found


def _columns(pairs: Sequence[tuple[int, int]]) -> Int64:
    found: Int64 = np.array(pairs, np.int64).reshape(-1, 2).T
    return found


def _firsts(counts: Iterable[int]) -> list[int]:
    """Return the index at which each of some runs of these lengths begins."""
    return list(accumulate(counts, initial=0))[:-1]


class _TextPool:
    """Distinct texts in one buffer."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, int]] = {}
        self._data = bytearray()

    @property
    def size(self) -> int:
        return len(self._data)

    def place(self, text: str | None) -> tuple[int, int]:
        if text is None:
            return 0, -1
        if text not in self._places:
            data = text.encode()
            self._places[text] = len(self._data), len(data)
            self._data += data
        return self._places[text]

    def bytes(self) -> Bytes:
        return np.frombuffer(bytes(self._data), np.uint8)


class _GroupColumns:
    """The columns of all groups, append-only."""

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.alive: list[int] = []
        self._spans: list[tuple[int, int]] = []
        self._ends: list[int] = [0]
        self._text = bytearray()

    def add(self, leaf: JoinNode, constants: Sequence[str], terms: JoinBounds) -> int:
        self._text += "\t".join(constants).encode()
        self._ends.append(len(self._text))
        self.nodes.append(leaf.number)
        self.alive.append(1)
        self._spans.append((terms.span, terms.within))
        return len(self.nodes) - 1

    def records(self, nodes: Sequence[JoinNode], offset: int) -> tuple[np.ndarray, np.ndarray, Bytes]:
        """Return the records of groups, their index by node and constants, and their texts, which begin at `offset`."""
        records = np.zeros(len(self.nodes), GROUP)
        ends, text = np.array(self._ends, np.int64), np.frombuffer(bytes(self._text), np.uint8)
        if len(records):
            records["span"], records["within"] = np.array(self._spans, np.int64).T
        records["start"], records["length"] = ends[:-1] + offset, np.diff(ends)
        records["node"], records["alive"] = self.nodes, self.alive
        ids = np.array([each.id for each in nodes], np.uint64)
        lifted = np.array([len(each.lifts or ()) for each in nodes], np.int64)
        numbers = np.array(self.nodes, np.int64)
        keys = np.zeros(len(records), np.uint64)
        _group_keys(keys, ids[numbers], lifted[numbers], text, ends) if len(records) else None
        index, following = store.empty_index(len(records)), np.zeros(len(records), np.int32)
        store.link_rows(index, following, keys, 0)
        records["following"] = following
        return records, index, text


@compiled
def _group_keys(keys: UInt64, ids: UInt64, lifts: Int64, text: Bytes, ends: Int64) -> None:
    """Hash the node and the tab-separated constants of each group."""
    for each in range(len(keys)):
        key, start, stop = ids[each], ends[each], ends[each + 1]
        for _ in range(lifts[each]):
            place = start
            while place < stop and text[place] != _TAB:
                place += 1
            key = hash_pair(key, hash_bytes(text, start, place), LIFTED)
            start = place + 1
        keys[each] = key


def _predicate_index(ports: Sequence[InputPort]) -> np.ndarray:
    """Index the first port of each predicate by its hash. Ports are in order of predicates."""
    counts: dict[str, list[int]] = {}
    for number, port in enumerate(ports):
        counts.setdefault(port.predicate or "", [number, 0])[1] += 1
    index = np.zeros(store.table_size(len(counts)), SLOT)
    for predicate, (first, count) in counts.items():
        _put_slot(index, np.uint64(hash_text(predicate)), first, count)
    return index


@compiled
def _put_slot(index: np.ndarray, key: np.uint64, head: int, count: int) -> None:
    slot = index[store.find_slot(index, store.nonzero_key(key))]
    slot.key, slot.head, slot.count = store.nonzero_key(key), head, count


@compiled
def _pair_into(found: UInt64, one: np.uint64, other: np.uint64, salt: np.uint64) -> None:
    found[0] = hash_pair(one, other, salt)


def _pair_hashes(one: int, other: int, salt: int) -> int:
    found = np.zeros(1, np.uint64)
    _pair_into(found, np.uint64(one), np.uint64(other), np.uint64(salt))
    return int(found[0])


def _role_bits(step: ChainStep, wanted: TermRole) -> int:
    return sum(1 << place for place, role in enumerate(step.roles) if role is wanted)


def _stable_id(*parts: object) -> int:
    """Return an id that is the same in every process and version. Parts are tuples of texts and numbers: names of
    classes must not get into what is stored."""
    return int.from_bytes(hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).digest(), "big") or 1


def to_network_events(table: pa.Table, scopes: Sequence[StreamScope], origin: int | None = None) -> NetworkEvents:
    """Return the RDF events of an `ENTRIES` table: new ones, or those of a backfill for scopes of one `origin`."""
    table = drop_opaque_payloads(table)
    texts = table["text"].combine_chunks().cast(pa.large_string())
    texts = texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
    _, offsets, data = texts.buffers()
    start = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return NetworkEvents(
        text=np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8),
        start=start,
        position=table["position"].to_numpy(),
        time=table["received"].to_numpy(),
        scopes=np.stack([_scope_mask(table, each, origin) for each in scopes], axis=1),
    )


def _scope_mask(table: pa.Table, scope: StreamScope, origin: int | None) -> Flags:
    """Return the events of a scope. A scope of all streams leaves out the answers of queries."""
    if origin is not None and scope.origin != origin:
        return np.zeros(table.num_rows, np.bool_)
    if scope.streams is None:
        found = pc.invert(pc.starts_with(table["event"], ANSWER))
    else:
        found = pc.is_in(table["stream"], pa.array(scope.streams))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
