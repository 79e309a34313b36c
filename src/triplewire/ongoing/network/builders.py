"""Builders: queries as they come and go, and the plan that follows from those that are there.

Nodes and ports are named by hashes of what they are, so that rows that were kept mean the same in another process,
and
under another plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from triplewire.kernels.compiler import Bytes, Int64, UInt64, compiled
from triplewire.kernels.words import hash_bytes, hash_pair, hash_text
from triplewire.ongoing.network.arrays import GROUP, NODE, PORT, SLOT, Plan
from triplewire.ongoing.network.chains import Chain, Role, Step
from triplewire.ongoing.network.emitting import LIFTED
from triplewire.ongoing.network.tables import added, index_for, linked, roomy, slot_of, some

FOREVER = 2**62
"""Of positions and of microseconds: no limit."""

_TAB = np.uint8(9)


@dataclass(frozen=True)
class Scope:
    """Of which events triples count: of these streams, or of all. Scopes of an origin other than 0, which is a
    position, are given some of the past when they begin."""

    streams: tuple[str, ...] | None = None
    origin: int = 0


@dataclass(frozen=True)
class Port:
    """Where triples come in."""

    predicate: str | None
    scope: Scope
    joins: int
    lifts: int
    first: bool

    @property
    def id(self) -> int:
        return _named("port", self.predicate, self.scope, self.joins, self.lifts, self.first)


@dataclass
class Node:
    """A step of chains that begin alike."""

    id: int
    step: Step
    port: Port
    width: int
    number: int
    children: list[int] = field(default_factory=list)
    lifts: tuple[int, ...] | None = None
    span: int = 0
    within: int = 0


@dataclass(frozen=True)
class Terms:
    """How far apart the pieces of an answer may be: in positions, and in microseconds."""

    span: int = FOREVER
    within: int = FOREVER


@dataclass(frozen=True)
class Leaf:
    """The end of a chain, with the nodes that lead to it; and of ports that ask for constants the id, and for each
    place which constant it is."""

    path: tuple[Node, ...]
    sought: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


class Network:
    """All groups of queries. Groups are known by numbers that they are given here, from 0 on."""

    def __init__(self, version: int = 0) -> None:
        self.nodes: list[Node] = []
        self._by_id: dict[int, Node] = {}
        self._roots: dict[Port, list[int]] = {}
        self._ports: dict[Port, None] = {}
        self._groups = _Groups()
        self._wanted: set[int] = set()
        self.version = version

    def leaf(self, chain: Chain, scope: Scope) -> Leaf:
        """Where queries with this chain end. Made once for many of them."""
        path = self._path(chain, scope)
        path[-1].lifts = chain.lifts
        constants = {slot: number for number, slot in enumerate(chain.lifts)}
        sought = [_sought(each, constants) for each in path if each.port.lifts]
        return Leaf(tuple(path), tuple(sought))

    def add(self, leaf: Leaf, constants: Sequence[str], terms: Terms) -> int:
        """The number of a new group, which asks for the chain of a leaf with these constants, in their order."""
        for node in leaf.path:
            node.span, node.within = max(node.span, terms.span), max(node.within, terms.within)
        hashes = [hash_text(each) for each in constants] if leaf.sought else []
        for port, places in leaf.sought:
            key = port
            for place, number in places:
                key = _paired(key, hashes[number], place)
            self._wanted.add(key or 1)
        self.version += 1
        return self._groups.add(leaf.path[-1], constants, terms)

    def remove(self, group: int) -> None:
        """Nothing is told to it any more."""
        self._groups.alive[group] = 0
        self.version += 1

    def _path(self, chain: Chain, scope: Scope) -> list[Node]:
        found, before, width = list[Node](), 0, 0
        for depth, step in enumerate(chain.steps):
            id = _named("node", before, step, scope)
            node = self._by_id.get(id)
            if node is None:
                node = self._made(id, step, scope, width, found[-1] if depth else None)
            found.append(node)
            before = id
            width += sum(role in (Role.NEW, Role.LIFT) for role in step.roles)
        return found

    def _made(self, id: int, step: Step, scope: Scope, width: int, parent: Node | None) -> Node:
        port = Port(step.predicate, scope, _bits(step, Role.JOIN), _bits(step, Role.LIFT), parent is None)
        node = Node(id, step, port, width, len(self.nodes))
        self.nodes.append(node)
        self._by_id[id] = node
        self._ports.setdefault(port)
        if parent is None:
            self._roots.setdefault(port, []).append(node.number)
        else:
            parent.children.append(node.number)
        return node

    def scopes(self) -> list[Scope]:
        """In the order of the numbers that ports have."""
        return list(dict.fromkeys(port.scope for port in self._ports))

    def plan(self, *, spread: bool = True, heavy: Collection[int] = ()) -> Plan:
        """As it is now. `heavy` are the keys under which too much lies for one station."""
        pool = _Pool()
        ports = sorted(self._ports, key=lambda each: (each.predicate is None, each.predicate or ""))
        numbers = {scope: number for number, scope in enumerate(self.scopes())}
        nodes, children, lifts = self._node_records(pool)
        records, roots = self._port_records(ports, numbers, pool)
        named = [each for each in ports if each.predicate is not None]
        groups, by_constants, text = self._groups.records(self.nodes, pool.size)
        return Plan(
            nodes=nodes,
            roles=np.array([role for each in self.nodes for role in each.step.roles], np.int8),
            references=np.array([each for node in self.nodes for each in node.step.references], np.int32),
            children=np.array(children, np.int32),
            lifts=np.array(lifts, np.int32),
            ports=records,
            roots=np.array(roots, np.int32),
            by_predicate=_by_predicate(named),
            anywhere=np.array([len(named), len(ports) - len(named)], np.int64),
            wanted=_set_of(self._wanted),
            groups=groups,
            by_constants=by_constants,
            pool=np.concatenate([pool.bytes(), text]),
            spread=np.array([spread], np.int8),
            heavy=_set_of(heavy),
        )

    def _patience(self) -> dict[Port, tuple[int, int]]:
        """How far apart the pieces may be of what any node behind a port waits for."""
        found = dict.fromkeys(self._ports, (0, 0))
        for node in self.nodes:
            span, within = found[node.port]
            found[node.port] = max(span, node.span), max(within, node.within)
        return found

    def _node_records(self, pool: _Pool) -> tuple[np.ndarray, list[int], list[int]]:
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
        self, ports: Sequence[Port], scopes: Mapping[Scope, int], pool: _Pool
    ) -> tuple[np.ndarray, list[int]]:
        records = np.zeros(len(ports), PORT)
        roots = [self._roots.get(each, []) for each in ports]
        records["predicate_start"], records["predicate_length"] = _columns([pool.place(e.predicate) for e in ports])
        records["id"] = [each.id for each in ports]
        behind = self._patience()
        records["span"], records["within"] = _columns([behind[each] for each in ports])
        records["scope"] = [scopes[each.scope] for each in ports]
        records["joins"] = [each.joins for each in ports]
        records["lifts"] = [each.lifts for each in ports]
        records["roots"] = [len(found) if each.first else -1 for each, found in zip(ports, roots, strict=True)]
        records["first_root"] = _firsts(len(found) for found in roots)
        return records, [number for found in roots for number in found]


def _sought(node: Node, constants: Mapping[int, int]) -> tuple[int, tuple[tuple[int, int], ...]]:
    lifted = [place for place, role in enumerate(node.step.roles) if role is Role.LIFT]
    return node.port.id, tuple((place, constants[node.step.references[place]]) for place in lifted)


def _set_of(keys: Collection[int]) -> UInt64:
    found = np.zeros(roomy(len(keys)), np.uint64)
    added(found, np.fromiter(keys, np.uint64, len(keys)))
    return found


def _columns(pairs: Sequence[tuple[int, int]]) -> Int64:
    found: Int64 = np.array(pairs, np.int64).reshape(-1, 2).T
    return found


def _firsts(counts: Iterable[int]) -> list[int]:
    """Where each begins, of so many things after each other."""
    return list(accumulate(counts, initial=0))[:-1]


class _Pool:
    """Texts one after the other, each of them once."""

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


class _Groups:
    """Columns of groups, which only grow."""

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.alive: list[int] = []
        self._spans: list[tuple[int, int]] = []
        self._ends: list[int] = [0]
        self._text = bytearray()

    def add(self, leaf: Node, constants: Sequence[str], terms: Terms) -> int:
        self._text += "\t".join(constants).encode()
        self._ends.append(len(self._text))
        self.nodes.append(leaf.number)
        self.alive.append(1)
        self._spans.append((terms.span, terms.within))
        return len(self.nodes) - 1

    def records(self, nodes: Sequence[Node], offset: int) -> tuple[np.ndarray, np.ndarray, Bytes]:
        """With an index of them by node and constants; their texts will lie at an offset."""
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
        index, following = index_for(len(records)), np.zeros(len(records), np.int32)
        linked(index, following, keys, 0)
        records["following"] = following
        return records, index, text


@compiled
def _group_keys(keys: UInt64, ids: UInt64, lifts: Int64, text: Bytes, ends: Int64) -> None:
    """Of each group the hash of its node and its constants, which have tabs between them."""
    for each in range(len(keys)):
        key, start, stop = ids[each], ends[each], ends[each + 1]
        for _ in range(lifts[each]):
            place = start
            while place < stop and text[place] != _TAB:
                place += 1
            key = hash_pair(key, hash_bytes(text, start, place), LIFTED)
            start = place + 1
        keys[each] = key


def _by_predicate(ports: Sequence[Port]) -> np.ndarray:
    """The first port of each predicate, by its hash. Ports are in order of predicates."""
    counts: dict[str, list[int]] = {}
    for number, port in enumerate(ports):
        counts.setdefault(port.predicate or "", [number, 0])[1] += 1
    index = np.zeros(roomy(len(counts)), SLOT)
    for predicate, (first, count) in counts.items():
        _put(index, np.uint64(hash_text(predicate)), first, count)
    return index


@compiled
def _put(index: np.ndarray, key: np.uint64, head: int, count: int) -> None:
    slot = index[slot_of(index, some(key))]
    slot.key, slot.head, slot.count = some(key), head, count


@compiled
def _paired_into(found: UInt64, one: np.uint64, other: np.uint64, salt: np.uint64) -> None:
    found[0] = hash_pair(one, other, salt)


def _paired(one: int, other: int, salt: int) -> int:
    found = np.zeros(1, np.uint64)
    _paired_into(found, np.uint64(one), np.uint64(other), np.uint64(salt))
    return int(found[0])


def _bits(step: Step, wanted: Role) -> int:
    return sum(1 << place for place, role in enumerate(step.roles) if role is wanted)


def _named(*parts: object) -> int:
    """A number that names something in every process."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") or 1
