"""The workload `paths`: that of Liarou, Idreos and Koubarakis.

The schema is a tree of classes. A property of a class leads to one class of the next depth, that of a class of the last
depth to literals. A question is a path of properties from the root to one literal.

```
          C0                    classes are numbered by depth: those below class c are k·c + 1 to k·c + k
      p0  p1  p2                property number p belongs to class p // k and leads to class p + 1
     C1   C2   C3
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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

DEPTHS = 5
"""Classes are at depths 0 to 4, so that a path has five patterns."""
PROPERTIES = 3
INSTANCES = 1_000
VALUES = 1_000
"""Of a literal, where there are `QUERIES` questions."""
QUERIES = 100_000
PARTS = 2

_QUESTIONS, _TRIPLES = 1, 2


@dataclass(frozen=True)
class Paths:
    """So many questions. With fewer of them literals have fewer values, or there would be fewer answers as well."""

    count: int = QUERIES
    values: int = VALUES
    seed: int = 9

    @classmethod
    def of(cls, count: int) -> Paths:
        """With as many answers as there are to the questions of the paper."""
        return cls(count, max(1, round(VALUES * count / QUERIES)))

    @cached_property
    def terms(self) -> Sequence[str]:
        properties = [f"<{BASE}p/{number}>" for number in range(self._properties)]
        instances = [f"<{BASE}c/{each // INSTANCES}/{each % INSTANCES}>" for each in range(PARTS * self._instances)]
        return [*properties, *instances, *(f'"{value}"' for value in range(self.values))]

    @cached_property
    def structures(self) -> Sequence[Structure]:
        """One for each property of the last depth: only one path leads there."""
        return [Structure(_patterns(leaf), (0,)) for leaf in range(self._leaves, self._properties)]

    @cached_property
    def questions(self) -> Sequence[Question]:
        random = np.random.default_rng((self.seed, _QUESTIONS))
        leaves = random.integers(0, self._properties - self._leaves, self.count)
        values = self._literals + random.integers(0, self.values, self.count)
        return [Question(leaf, (value,)) for leaf, value in zip(leaves.tolist(), values.tolist(), strict=True)]

    def triples(self, count: int, part: int = 0) -> Triples:
        """Each of a random depth, class, instance, property and value. Parts have instances of their own."""
        random = np.random.default_rng((self.seed, _TRIPLES, part))
        depths = random.integers(0, DEPTHS, count)
        classes = _first(depths) + random.integers(0, PROPERTIES**depths)
        instance = self._properties + part * self._instances
        subjects = instance + classes * INSTANCES + random.integers(0, INSTANCES, count)
        properties = classes * PROPERTIES + random.integers(0, PROPERTIES, count)
        targets = instance + (properties + 1) * INSTANCES + random.integers(0, INSTANCES, count)
        values = self._literals + random.integers(0, self.values, count)
        return Triples(subjects, properties, np.where(depths == DEPTHS - 1, values, targets))

    @property
    def _properties(self) -> int:
        return PROPERTIES * self._classes

    @property
    def _leaves(self) -> int:
        """The first property that leads to literals."""
        return PROPERTIES * int(_first(np.array(DEPTHS - 1)))

    @property
    def _classes(self) -> int:
        return int(_first(np.array(DEPTHS)))

    @property
    def _instances(self) -> int:
        return self._classes * INSTANCES

    @property
    def _literals(self) -> int:
        """The number of the first literal."""
        return self._properties + PARTS * self._instances


def _first(depth: np.ndarray) -> np.ndarray:
    """The first class of a depth."""
    return (PROPERTIES**depth - 1) // (PROPERTIES - 1)


def _patterns(leaf: int) -> tuple[Pattern, ...]:
    """The path to a property, from the root."""
    path = [leaf]
    while path[0] >= PROPERTIES:
        # The class that has a property is where the one above it leads to.
        path.insert(0, path[0] // PROPERTIES - 1)
    ends: list[Node] = [*(Variable(number + 1) for number in range(len(path) - 1)), Constant(0)]
    return tuple((Variable(number), named, end) for number, (named, end) in enumerate(zip(path, ends, strict=True)))
