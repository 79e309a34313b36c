"""CQC and CSBV as Liarou, Idreos and Koubarakis describe them, step by step: nodes that hold queries, triples and
intermediate results, and send each other messages. An address is the text that they hash.

Triples and patterns are words without brackets, as the paper writes them; variables have a question mark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Protocol, TypeAlias

Triple: TypeAlias = tuple[str, str, str]
Valuation: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class Rest:
    """What is left of a query to be evaluated: all of it, or what an intermediate result leaves."""

    query: int
    patterns: tuple[Triple, ...]
    valuation: tuple[tuple[str, str], ...] = ()


@dataclass
class Node:
    """The tables of a node: QT, TT and IRT."""

    queries: list[tuple[int, int]] = field(default_factory=list)
    """The patterns that it is responsible for, as query and place in it."""
    triples: list[Triple] = field(default_factory=list)
    results: list[Rest] = field(default_factory=list)


@dataclass
class Step:
    """What one event leads to: to which addresses intermediate results are sent, and what is answered."""

    sent: list[str] = field(default_factory=list)
    answers: list[tuple[int, Valuation]] = field(default_factory=list)


class Strategy(Protocol):
    """Where things go."""

    def patterns(self, query: Sequence[Triple]) -> dict[int, str]:
        """The address of each pattern that a query is indexed by when it is submitted."""

    def triple(self, triple: Triple) -> set[str]:
        """The addresses at which a new triple arrives."""

    def following(self, asked: Sequence[Triple], rest: Rest) -> str:
        """The address that evaluates the first pattern of what is left of a query."""

    def keeps(self, matched: bool) -> bool:
        """Whether a node stores a triple that matched a pattern behind the first of its queries, or none."""


class Cqc:
    """A node for each pattern, from the beginning: that of its subject, else its object, else its predicate."""

    def patterns(self, query: Sequence[Triple]) -> dict[int, str]:
        return {number: self._address(pattern) for number, pattern in enumerate(query)}

    def triple(self, triple: Triple) -> set[str]:
        return set(triple)

    def following(self, asked: Sequence[Triple], rest: Rest) -> str:
        return self._address(asked[len(asked) - len(rest.patterns)])

    def keeps(self, matched: bool) -> bool:
        return matched

    def _address(self, pattern: Triple) -> str:
        subject, predicate, target = pattern
        return next(part for part in (subject, target, predicate) if not part.startswith("?"))


class Csbv:
    """A node for the first pattern, and then one by the values that an intermediate result has put into the next."""

    def patterns(self, query: Sequence[Triple]) -> dict[int, str]:
        return {0: self._address(query[0])}

    def triple(self, triple: Triple) -> set[str]:
        return {"+".join(parts) for count in (1, 2, 3) for parts in combinations(triple, count)}

    def following(self, asked: Sequence[Triple], rest: Rest) -> str:
        return self._address(rest.patterns[0])

    def keeps(self, matched: bool) -> bool:
        return True

    def _address(self, pattern: Triple) -> str:
        return "+".join(part for part in pattern if not part.startswith("?"))


class Network:
    """All nodes, by address. `load` counts what each was sent to look at, as the paper's query processing load."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._asked: list[Sequence[Triple]] = []
        self.nodes: defaultdict[str, Node] = defaultdict(Node)
        self.load: defaultdict[str, int] = defaultdict(int)

    def submit(self, patterns: Sequence[Triple]) -> int:
        number = len(self._asked)
        self._asked.append(patterns)
        for place, address in self._strategy.patterns(patterns).items():
            self.nodes[address].queries.append((number, place))
        return number

    def publish(self, triple: Triple) -> Step:
        step = Step()
        for address in sorted(self._strategy.triple(triple)):
            self._receive(address, triple, step)
        return step

    def _receive(self, address: str, triple: Triple, step: Step) -> None:
        node = self.nodes[address]
        if node.queries or node.results:
            self.load[address] += 1
        for number, place in list(node.queries):
            if place == 0:
                self._advance(Rest(number, tuple(self._asked[number])), triple, step)
        behind = [self._asked[number][place] for number, place in node.queries if place]
        if self._strategy.keeps(any(_matched(pattern, triple) is not None for pattern in behind)):
            node.triples.append(triple)
        for rest in list(node.results):
            self._advance(rest, triple, step)

    def _advance(self, rest: Rest, triple: Triple, step: Step) -> None:
        """Let a triple answer the first pattern of what is left, and send on what is left then."""
        values = _matched(rest.patterns[0], triple)
        if values is None:
            return
        known = dict(rest.valuation) | values
        left = tuple(_applied(pattern, known) for pattern in rest.patterns[1:])
        made = Rest(rest.query, left, tuple(known.items()))
        if not left:
            step.answers.append((rest.query, known))
            return
        self._forward(made, step)

    def _forward(self, rest: Rest, step: Step) -> None:
        address = self._strategy.following(self._asked[rest.query], rest)
        step.sent.append(address)
        self.load[address] += 1
        node = self.nodes[address]
        node.results.append(rest)
        for triple in list(node.triples):
            self._advance(rest, triple, step)


def answers(strategy: Strategy, queries: Iterable[Sequence[Triple]], triples: Iterable[Triple]) -> list[Step]:
    """What follows from each triple, where the queries were there first."""
    network = Network(strategy)
    for query in queries:
        network.submit(query)
    return [network.publish(triple) for triple in triples]


def _matched(pattern: Triple, triple: Triple) -> Valuation | None:
    values: Valuation = {}
    for part, term in zip(pattern, triple, strict=True):
        if (values.setdefault(part, term) if part.startswith("?") else part) != term:
            return None
    return values


def _applied(pattern: Triple, values: Valuation) -> Triple:
    subject, predicate, target = (values.get(part, part) for part in pattern)
    return subject, predicate, target
