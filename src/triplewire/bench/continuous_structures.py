"""The workload `structures`: no two questions have the same structure.

Stars, chains, trees and cycles of two to five patterns over a vocabulary of predicates, half of them with a constant.
Entities are linked to others nearby, so that cycles come about; some are named more often than others, and those are
what questions name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from random import Random

import numpy as np

from triplewire.bench.continuous_conjunctions import (
    BASE,
    Constant,
    Node,
    Pattern,
    Question,
    Structure,
    Triples,
    Variable,
)

LINKS = 40
"""Predicates between entities."""
TRAITS = 10
"""Predicates that lead to literals."""
VALUES = 20
FAMOUS = 200
NEAR = 8
"""How far away the entities lie that one is linked to."""
PARTS = 2
_FAME = 0.1
"""Which part of triples is about those that are famous."""
_TRIPLES = 3
_PREDICATES = LINKS + TRAITS

Edge = tuple[int, int]
"""From one variable to another."""


@dataclass(frozen=True)
class Structures:
    """So many questions, over so many entities: with a tenth as many entities as triples, an entity has a fifth of a
    triple of each predicate."""

    count: int = 1_000
    entities: int = 10_000
    seed: int = 9

    @classmethod
    def of(cls, count: int, triples: int) -> Structures:
        return cls(count, max(FAMOUS, triples // 10))

    @cached_property
    def terms(self) -> Sequence[str]:
        predicates = [f"<{BASE}link/{number}>" for number in range(LINKS)]
        predicates += [f"<{BASE}trait/{number}>" for number in range(TRAITS)]
        return [
            *predicates,
            *(f'"{value}"' for value in range(VALUES)),
            *(f"<{BASE}n/{number}>" for number in range(PARTS * self.entities)),
        ]

    @property
    def structures(self) -> Sequence[Structure]:
        return [structure for structure, _ in self._made]

    @property
    def questions(self) -> Sequence[Question]:
        return [Question(number, constants) for number, (_, constants) in enumerate(self._made)]

    def triples(self, count: int, part: int = 0) -> Triples:
        """Parts have entities of their own."""
        random = np.random.default_rng((self.seed, _TRIPLES, part))
        everyone = random.integers(0, self.entities, count)
        famous = random.integers(0, FAMOUS, count) * (self.entities // FAMOUS)
        subjects = np.where(random.random(count) < _FAME, famous, everyone)
        predicates = random.integers(0, _PREDICATES, count)
        steps = random.integers(1, NEAR + 1, count) * random.choice([-1, 1], count)
        first = self._entity(part * self.entities)
        linked = first + (subjects + steps) % self.entities
        values = _PREDICATES + random.integers(0, VALUES, count)
        return Triples(first + subjects, predicates, np.where(predicates < LINKS, linked, values))

    def _entity(self, number: int) -> int:
        return _PREDICATES + VALUES + number

    @cached_property
    def _made(self) -> list[tuple[Structure, tuple[int, ...]]]:
        random, seen = Random(self.seed), set[str]()
        made: list[tuple[Structure, tuple[int, ...]]] = []
        while len(made) < self.count:
            number = len(made)
            edges = [*SHAPES.values()][number % 4](2 + number // 4 % 4, random)
            patterns = _named(edges, random)
            structure, constants = self._fixed(patterns, random) if number // 16 % 2 else (patterns, ())
            if (key := _key(structure)) not in seen:
                seen.add(key)
                made.append((Structure(structure, _variables(structure)), constants))
        return made

    def _fixed(self, patterns: Sequence[Pattern], random: Random) -> tuple[tuple[Pattern, ...], tuple[int, ...]]:
        """With a constant in the place of a literal, or of an entity."""
        literals = [pattern[2] for pattern in patterns if _is_trait(pattern)]
        subjects = [pattern[0] for pattern in patterns]
        # Were there no variable left, there would be nothing to tell.
        chosen = random.choice(literals or subjects)
        value = random.randrange(VALUES) + _PREDICATES
        famous = self._entity(random.randrange(FAMOUS) * (self.entities // FAMOUS))
        fixed = [_replaced(pattern, chosen, Constant(0)) for pattern in patterns]
        return tuple(fixed), (value if literals else famous,)


def star(size: int, random: Random) -> list[Edge]:
    return [(0, number) for number in range(1, size + 1)]


def chain(size: int, random: Random) -> list[Edge]:
    return [(number, number + 1) for number in range(size)]


def tree(size: int, random: Random) -> list[Edge]:
    """Edges to and from any that is there."""
    edges: list[Edge] = []
    for number in range(1, size + 1):
        other = random.randrange(number)
        edges.append((other, number) if random.random() < 0.7 else (number, other))
    return edges


def cycle(size: int, random: Random) -> list[Edge]:
    return [(number, (number + 1) % size) for number in range(size)]


SHAPES: Mapping[str, Callable[[int, Random], list[Edge]]] = {
    "star": star,
    "chain": chain,
    "tree": tree,
    "cycle": cycle,
}


def _named(edges: Sequence[Edge], random: Random) -> tuple[Pattern, ...]:
    """With predicates. One that leads to literals stands where nothing else hangs on its end."""
    ends = [end for edge in edges for end in edge]
    return tuple(
        (Variable(start), _predicate(random, leaf=ends.count(end) == 1), Variable(end)) for start, end in edges
    )


def _predicate(random: Random, *, leaf: bool) -> int:
    return LINKS + random.randrange(TRAITS) if leaf and random.random() < 0.4 else random.randrange(LINKS)


def _is_trait(pattern: Pattern) -> bool:
    return pattern[1] >= LINKS


def _replaced(pattern: Pattern, old: Node, new: Node) -> Pattern:
    subject, predicate, target = pattern
    return new if subject == old else subject, predicate, new if target == old else target


def _variables(patterns: Sequence[Pattern]) -> tuple[int, ...]:
    return tuple(sorted({node.number for pattern in patterns for node in pattern if isinstance(node, Variable)}))


def _key(patterns: Sequence[Pattern]) -> str:
    """The same for patterns that differ in their order and in the names of variables alone."""
    return min(_spelled(order) for order in permutations(patterns))


def _spelled(patterns: Sequence[Pattern]) -> str:
    names: dict[Node, str] = {}
    return ".".join(
        str(node) if isinstance(node, int) else names.setdefault(node, f"{type(node).__name__}{len(names)}")
        for pattern in patterns
        for node in pattern
    )
