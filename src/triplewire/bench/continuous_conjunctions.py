"""Conjunctions of `bench continuous`: triples and questions as numbers, and as the texts that are published.

A *structure* is what is left of a question when its constants are taken out; many questions have one structure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Codes: TypeAlias = npt.NDArray[np.int64]
"""Numbers of terms, or positions."""

BASE = "http://bench.example/"


@dataclass(frozen=True)
class Variable:
    number: int


@dataclass(frozen=True)
class Constant:
    """The one of that number among a question's own."""

    number: int


Node: TypeAlias = Variable | Constant | int
"""A variable, a constant that is the question's own, or the number of a term that all questions of a structure have."""
Pattern: TypeAlias = tuple[Node, int, Node]
"""Its predicate is the number of a term."""


@dataclass(frozen=True)
class Structure:
    """Patterns, and the variables that are told."""

    patterns: tuple[Pattern, ...]
    told: tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """The number of its structure, and its constants."""

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


class Workload(Protocol):
    """Everything follows from its seed."""

    @property
    def terms(self) -> Sequence[str]:
        """As N-Triples writes them, by number."""

    @property
    def structures(self) -> Sequence[Structure]:
        """By number."""

    @property
    def questions(self) -> Sequence[Question]:
        """What is registered, in order."""

    def triples(self, count: int, part: int = 0) -> Triples:
        """So many. What one part is made of has no answers together with what another is made of."""


def sparql(workload: Workload, question: Question) -> str:
    """What is registered for a question."""
    structure = workload.structures[question.structure]
    parts = (" ".join(written(workload, question, node) for node in pattern) for pattern in structure.patterns)
    told = " ".join(f"?v{number}" for number in structure.told)
    return f"SELECT {told} {{ {' . '.join(parts)} }}"


def written(workload: Workload, question: Question, node: Node) -> str:
    """A node of a question's pattern, in SPARQL."""
    if isinstance(node, Variable):
        return f"?v{node.number}"
    return workload.terms[question.constants[node.number] if isinstance(node, Constant) else node]


def lines(workload: Workload, triples: Triples) -> list[str]:
    """Triples as texts without their graph."""
    terms = workload.terms
    columns = (triples.subjects.tolist(), triples.predicates.tolist(), triples.targets.tolist())
    return [f"{terms[subject]} {terms[named]} {terms[target]}" for subject, named, target in zip(*columns, strict=True)]


def pieces(workload: Workload, question: Question, number: int) -> list[str]:
    """Triples that answer a question and have nothing in common with any other: one for each of its patterns."""
    structure = workload.structures[question.structure]

    def term(node: Node) -> str:
        if isinstance(node, Variable):
            return f"<{BASE}fresh/{number}/{node.number}>"
        return written(workload, question, node)

    return [" ".join(term(node) for node in pattern) for pattern in structure.patterns]


def bodies(texts: Sequence[str], first: int, size: int, together: int = 1) -> Iterator[bytes]:
    """N-Quads of events, `together` triples in each and about `size` triples in a body; events are numbered from
    `first` on, in order."""
    for start in range(0, len(texts), size - size % together):
        chosen = texts[start : start + size - size % together]
        named = ((text, first + (start + each) // together) for each, text in enumerate(chosen))
        yield "".join(f"{text} <{BASE}e/{number}> .\n" for text, number in named).encode()
