"""Workloads of `bench continuous`: triples and questions as numbers, and as the texts that are published.

A *structure* is a question without its constants; many questions have one structure. All follows from a seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from random import Random
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from bench.harness import BASE

Codes: TypeAlias = npt.NDArray[np.int64]
"""Numbers of terms, or positions."""
PARTS = 2
"""Parts of the triples that have no answers together."""


@dataclass(frozen=True)
class Variable:
    number: int


@dataclass(frozen=True)
class Constant:
    """The constant of that number among a question's own."""

    number: int


Node: TypeAlias = Variable | Constant | int
"""A variable, a constant of the question, or the number of a term that all questions of a structure have."""
Pattern: TypeAlias = tuple[Node, int, Node]
"""Its predicate is the number of a term."""


@dataclass(frozen=True)
class Structure:
    """Patterns, and the variables that are projected."""

    patterns: tuple[Pattern, ...]
    projected: tuple[int, ...]


@dataclass(frozen=True)
class Conjunction:
    """A question: the number of its structure, and its constants."""

    structure: int
    constants: tuple[int, ...] = ()


@dataclass(frozen=True)
class Triples:
    """Columns of equal length, in the order of publication."""

    subjects: Codes
    predicates: Codes
    targets: Codes

    def __len__(self) -> int:
        return len(self.subjects)

    def take(self, rows: Codes) -> Triples:
        return Triples(self.subjects[rows], self.predicates[rows], self.targets[rows])


class ContinuousWorkload(Protocol):
    @property
    def terms(self) -> Sequence[str]:
        """All terms in N-Triples, by number."""

    @property
    def structures(self) -> Sequence[Structure]:
        """All structures, by number."""

    @property
    def questions(self) -> Sequence[Conjunction]:
        """All questions, in the order in which they are registered."""

    def triples(self, count: int, part: int = 0) -> Triples:
        """Return so many triples of a part."""


def write_node(workload: ContinuousWorkload, question: Conjunction, node: Node) -> str:
    if isinstance(node, Variable):
        return f"?v{node.number}"
    return workload.terms[question.constants[node.number] if isinstance(node, Constant) else node]


def write_patterns(workload: ContinuousWorkload, question: Conjunction) -> list[str]:
    patterns = workload.structures[question.structure].patterns
    return [" ".join(write_node(workload, question, node) for node in pattern) for pattern in patterns]


def write_sparql(workload: ContinuousWorkload, question: Conjunction) -> str:
    projected = " ".join(f"?v{number}" for number in workload.structures[question.structure].projected)
    return f"SELECT {projected} {{ {' . '.join(write_patterns(workload, question))} }}"


def write_triples(workload: ContinuousWorkload, triples: Triples) -> list[str]:
    """Return texts without their graph."""
    terms = workload.terms
    columns = (triples.subjects.tolist(), triples.predicates.tolist(), triples.targets.tolist())
    return [f"{terms[subject]} {terms[named]} {terms[target]}" for subject, named, target in zip(*columns, strict=True)]


def write_pieces(workload: ContinuousWorkload, question: Conjunction, number: int) -> list[str]:
    """Return triples that answer a question and share nothing with any other: one for each of its patterns."""

    def write(node: Node) -> str:
        fresh = isinstance(node, Variable)
        return f"<{BASE}fresh/{number}/{node.number}>" if fresh else write_node(workload, question, node)  # type: ignore[union-attr]

    patterns = workload.structures[question.structure].patterns
    return [" ".join(write(node) for node in pattern) for pattern in patterns]


def write_bodies(texts: Sequence[str], first: int, size: int, together: int = 1) -> Iterator[bytes]:
    """Yield N-Quads of events, `together` triples in each and about `size` triples in a body; events are numbered from
    `first` on."""
    step = size - size % together
    for start in range(0, len(texts), step):
        named = ((text, first + (start + at) // together) for at, text in enumerate(texts[start : start + step]))
        yield "".join(f"{text} <{BASE}e/{number}> .\n" for text, number in named).encode()


DEPTHS = 5
"""Classes are at depths 0 to 4, so that a path has five patterns."""
PROPERTIES = 3
INSTANCES = 1_000
VALUES = 1_000
"""Values of a literal, where there are `QUERIES` questions."""
QUERIES = 100_000
_CLASSES = (PROPERTIES**DEPTHS - 1) // (PROPERTIES - 1)
_PROPERTIES = PROPERTIES * _CLASSES
_LEAVES = _PROPERTIES - PROPERTIES**DEPTHS
"""Properties of all classes; the last ones, from this number on, lead to literals."""
_INSTANCES = _CLASSES * INSTANCES
_VALUES = _PROPERTIES + PARTS * _INSTANCES
"""The number of the first literal."""


@dataclass(frozen=True)
class PathWorkload:
    """The workload `paths`, that of Liarou, Idreos and Koubarakis. The schema is a tree of classes; a property leads to
    one class of the next depth, that of a class of the last depth to literals. A question is a path of properties from
    the root to one literal.

    ```
              C0                    classes are numbered by depth: those below class c are k·c + 1 to k·c + k
          p0  p1  p2                property number p belongs to class p // k and leads to class p + 1
         C1   C2   C3
    ```
    """

    count: int = QUERIES
    values: int = VALUES
    seed: int = 9

    @classmethod
    def of(cls, count: int) -> PathWorkload:
        """Choose the values so that there are as many answers as to the questions of the paper."""
        return cls(count, max(1, round(VALUES * count / QUERIES)))

    @cached_property
    def terms(self) -> Sequence[str]:
        properties = [f"<{BASE}p/{number}>" for number in range(_PROPERTIES)]
        instances = [f"<{BASE}c/{each // INSTANCES}/{each % INSTANCES}>" for each in range(PARTS * _INSTANCES)]
        return [*properties, *instances, *(f'"{value}"' for value in range(self.values))]

    @cached_property
    def structures(self) -> Sequence[Structure]:
        """A structure for each property of the last depth: only one path leads there."""
        return [Structure(_make_path(leaf), (0,)) for leaf in range(_LEAVES, _PROPERTIES)]

    @cached_property
    def questions(self) -> Sequence[Conjunction]:
        random = np.random.default_rng((self.seed, 1))
        leaves = random.integers(0, _PROPERTIES - _LEAVES, self.count)
        values = _VALUES + random.integers(0, self.values, self.count)
        return [Conjunction(leaf, (value,)) for leaf, value in zip(leaves.tolist(), values.tolist(), strict=True)]

    def triples(self, count: int, part: int = 0) -> Triples:
        """Each has a random depth, class, instance, property and value. Parts have instances of their own."""
        random = np.random.default_rng((self.seed, 2, part))
        depths = random.integers(0, DEPTHS, count)
        classes = (PROPERTIES**depths - 1) // (PROPERTIES - 1) + random.integers(0, PROPERTIES**depths)
        instance = _PROPERTIES + part * _INSTANCES
        subjects = instance + classes * INSTANCES + random.integers(0, INSTANCES, count)
        properties = classes * PROPERTIES + random.integers(0, PROPERTIES, count)
        targets = instance + (properties + 1) * INSTANCES + random.integers(0, INSTANCES, count)
        values = _VALUES + random.integers(0, self.values, count)
        return Triples(subjects, properties, np.where(depths == DEPTHS - 1, values, targets))


def _make_path(leaf: int) -> tuple[Pattern, ...]:
    """Return the path to a property, from the root."""
    path = [leaf]
    while path[0] >= PROPERTIES:
        # The class that has a property is where the one above it leads to.
        path.insert(0, path[0] // PROPERTIES - 1)
    ends: list[Node] = [*(Variable(number + 1) for number in range(len(path) - 1)), Constant(0)]
    return tuple((Variable(number), named, end) for number, (named, end) in enumerate(zip(path, ends, strict=True)))


LINKS = 40
"""Predicates between entities."""
TRAITS = 10
"""Predicates that lead to literals."""
_PREDICATES = LINKS + TRAITS
_LITERALS = 20
_FAMOUS = 200
_FAME = 0.1
"""The share of triples that is about famous entities."""
_NEAR = 8
"""How far away the entities lie that one is linked to."""

Edges: TypeAlias = list[tuple[int, int]]
"""Each from one variable to another."""


@dataclass(frozen=True)
class StructureWorkload:
    """The workload `structures`: no two questions have the same structure. They are stars, chains, trees and cycles of
    two to five patterns, half of them with a constant. Entities are linked to others nearby, so that cycles come about;
    some are named more often than others, and questions name those. With a tenth as many entities as triples, an entity
    has a fifth of a triple of each predicate."""

    count: int = 1_000
    entities: int = 10_000
    seed: int = 9

    @classmethod
    def of(cls, count: int, triples: int) -> StructureWorkload:
        return cls(count, max(_FAMOUS, triples // 10))

    @cached_property
    def terms(self) -> Sequence[str]:
        predicates = [f"<{BASE}link/{number}>" for number in range(LINKS)]
        predicates += [f"<{BASE}trait/{number}>" for number in range(TRAITS)]
        values = [f'"{value}"' for value in range(_LITERALS)]
        return [*predicates, *values, *(f"<{BASE}n/{number}>" for number in range(PARTS * self.entities))]

    @property
    def structures(self) -> Sequence[Structure]:
        return [structure for structure, _ in self._made]

    @property
    def questions(self) -> Sequence[Conjunction]:
        return [Conjunction(number, constants) for number, (_, constants) in enumerate(self._made)]

    def triples(self, count: int, part: int = 0) -> Triples:
        """Parts have entities of their own."""
        random = np.random.default_rng((self.seed, 3, part))
        everyone = random.integers(0, self.entities, count)
        famous = random.integers(0, _FAMOUS, count) * (self.entities // _FAMOUS)
        subjects = np.where(random.random(count) < _FAME, famous, everyone)
        predicates = random.integers(0, _PREDICATES, count)
        steps = random.integers(1, _NEAR + 1, count) * random.choice([-1, 1], count)
        first = _PREDICATES + _LITERALS + part * self.entities
        linked = first + (subjects + steps) % self.entities
        values = _PREDICATES + random.integers(0, _LITERALS, count)
        return Triples(first + subjects, predicates, np.where(predicates < LINKS, linked, values))

    @cached_property
    def _made(self) -> list[tuple[Structure, tuple[int, ...]]]:
        random, seen = Random(self.seed), set[str]()
        made: list[tuple[Structure, tuple[int, ...]]] = []
        while len(made) < self.count:
            number = len(made)
            patterns = _name_edges(_make_edges(number % 4, 2 + number // 4 % 4, random), random)
            constants: tuple[int, ...] = ()
            if number // 16 % 2:
                patterns, constants = self._fix_constant(patterns, random)
            if (key := _canonical_key(patterns)) not in seen:
                seen.add(key)
                nodes = (node for pattern in patterns for node in pattern)
                projected = sorted({node.number for node in nodes if isinstance(node, Variable)})
                made.append((Structure(patterns, tuple(projected)), constants))
        return made

    def _fix_constant(
        self, patterns: tuple[Pattern, ...], random: Random
    ) -> tuple[tuple[Pattern, ...], tuple[int, ...]]:
        """Put a constant in place of a literal, or of an entity; a variable is always left."""
        literals = [pattern[2] for pattern in patterns if pattern[1] >= LINKS]
        chosen = random.choice(literals or [pattern[0] for pattern in patterns])
        value = random.randrange(_LITERALS) + _PREDICATES
        famous = _PREDICATES + _LITERALS + random.randrange(_FAMOUS) * (self.entities // _FAMOUS)
        put: Mapping[Node, Node] = {chosen: Constant(0)}
        fixed = ((put.get(subject, subject), named, put.get(end, end)) for subject, named, end in patterns)
        return tuple(fixed), (value if literals else famous,)


def _make_edges(kind: int, size: int, random: Random) -> Edges:
    """Return a star, a chain, a tree or a cycle."""
    if kind == 0:
        return [(0, number) for number in range(1, size + 1)]
    if kind == 1:
        return [(number, number + 1) for number in range(size)]
    if kind == 3:
        return [(number, (number + 1) % size) for number in range(size)]
    edges: Edges = []
    for number in range(1, size + 1):
        other = random.randrange(number)
        edges.append((other, number) if random.random() < 0.7 else (number, other))
    return edges


def _name_edges(edges: Edges, random: Random) -> tuple[Pattern, ...]:
    """Give predicates to edges. A predicate of literals stands where nothing else hangs on its end."""
    ends = [end for edge in edges for end in edge]

    def draw(leaf: bool) -> int:
        return LINKS + random.randrange(TRAITS) if leaf and random.random() < 0.4 else random.randrange(LINKS)

    return tuple((Variable(start), draw(ends.count(end) == 1), Variable(end)) for start, end in edges)


def _canonical_key(patterns: Sequence[Pattern]) -> str:
    """Return the same for patterns that differ in their order and in the names of variables alone."""

    def write(order: Sequence[Pattern]) -> str:
        names: dict[Node, str] = {}
        nodes = (node for pattern in order for node in pattern)
        return ".".join(
            str(node) if isinstance(node, int) else names.setdefault(node, f"{type(node).__name__}{len(names)}")
            for node in nodes
        )

    return min(map(write, permutations(patterns)))
