"""Joins: all answers to all questions of `bench continuous`, found apart from the code that is measured.

Relations are columns of numpy, joined one pattern after the other by sorting. What is published twice is there twice,
and every answer knows the oldest and the newest position in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from triplewire.bench.continuous_conjunctions import (
    Codes,
    Constant,
    Node,
    Pattern,
    Question,
    Structure,
    Triples,
    Variable,
    Workload,
)

_NEVER = np.iinfo(np.int64)


@dataclass(frozen=True)
class Located:
    """Triples, and the position at which each was published. `span`: how many positions an answer may lie across."""

    triples: Triples
    positions: Codes
    span: int | None = None


@dataclass(frozen=True)
class Relation:
    """Columns by variable or constant, and of each row the oldest and the newest position in it."""

    columns: Mapping[Node, Codes]
    oldest: Codes
    newest: Codes

    def __len__(self) -> int:
        return len(self.oldest)

    def take(self, rows: Codes) -> Relation:
        return Relation({node: each[rows] for node, each in self.columns.items()}, self.oldest[rows], self.newest[rows])


@dataclass(frozen=True)
class Answers:
    """To questions of one structure: of each its constants, the oldest and the newest position, and what is told."""

    constants: Codes
    """A row for each answer."""
    oldest: Codes
    newest: Codes
    told: Codes

    def __len__(self) -> int:
        return len(self.oldest)


def answers(workload: Workload, located: Located) -> Iterator[tuple[int, Answers]]:
    """Those to the questions of each structure, by its number; equal questions have them once."""
    asked: dict[int, set[tuple[int, ...]]] = {}
    for question in workload.questions:
        asked.setdefault(question.structure, set()).add(question.constants)
    index = _Index(located, len(workload.terms))
    for number in sorted(asked):
        yield number, _answers(workload.structures[number], sorted(asked[number]), index)


class _Index:
    """The triples of each predicate, and the number of all terms. What was found and sorted once is kept: structures
    have patterns in common."""

    def __init__(self, located: Located, terms: int) -> None:
        self.span, self.terms = located.span, terms
        self._located = located
        self._order = np.argsort(located.triples.predicates, kind="stable")
        self._sorted = located.triples.predicates[self._order]
        self._found: dict[Pattern, Relation] = {}
        self._by_key: dict[tuple[Pattern, tuple[Node, ...]], tuple[Relation, Codes]] = {}

    def relation(self, pattern: Pattern) -> Relation:
        """What a pattern finds."""
        if pattern not in self._found:
            self._found[pattern] = self._find(pattern)
        return self._found[pattern]

    def by_key(self, pattern: Pattern, nodes: tuple[Node, ...]) -> tuple[Relation, Codes]:
        """The same in the order of keys, and the keys: what stands in the columns of these nodes."""
        if (pattern, nodes) not in self._by_key:
            found = self.relation(pattern)
            keys = self.keys(found, nodes)
            order = np.argsort(keys, kind="stable")
            self._by_key[pattern, nodes] = found.take(order), keys[order]
        return self._by_key[pattern, nodes]

    def keys(self, relation: Relation, nodes: Sequence[Node]) -> Codes:
        """One number for what stands in these columns: at most two of them, as a pattern has no more."""
        none = np.zeros(len(relation), np.int64)
        return reduce(lambda keys, node: keys * self.terms + relation.columns[node], nodes, none)

    def _find(self, pattern: Pattern) -> Relation:
        triples, named = self._located.triples, pattern[1]
        first, last = np.searchsorted(self._sorted, [named, named + 1])
        rows = self._order[first:last]
        columns: dict[Node, Codes] = {}
        fits = np.ones(len(rows), bool)
        for node, terms in ((pattern[0], triples.subjects[rows]), (pattern[2], triples.targets[rows])):
            if isinstance(node, Variable | Constant):
                fits &= columns.setdefault(node, terms) == terms
            else:
                fits &= terms == node
        positions = self._located.positions[rows]
        return Relation(columns, positions, positions).take(np.flatnonzero(fits))


def _answers(structure: Structure, asked: Sequence[tuple[int, ...]], index: _Index) -> Answers:
    constants = np.array(asked, np.int64).reshape(len(asked), -1)
    count = len(asked)
    known = Relation(
        {Constant(number): constants[:, number] for number in range(constants.shape[1])},
        np.full(count, _NEVER.max),
        np.full(count, _NEVER.min),
    )
    left = list(structure.patterns)
    while left:
        # What joins goes before what does not, and few before many.
        chosen = min(left, key=lambda each: (not _shared(known, index.relation(each)), len(index.relation(each))))
        left.remove(chosen)
        known = _joined(known, chosen, index)
    told = [known.columns[Variable(number)] for number in structure.told]
    own = [known.columns[Constant(number)] for number in range(constants.shape[1])]
    return Answers(_rows(own, len(known)), known.oldest, known.newest, _rows(told, len(known)))


def _joined(known: Relation, pattern: Pattern, index: _Index) -> Relation:
    shared = _shared(known, index.relation(pattern))
    found, theirs = index.by_key(pattern, shared)
    ours = index.keys(known, shared)
    first, last = np.searchsorted(theirs, ours, "left"), np.searchsorted(theirs, ours, "right")
    counts = last - first
    rows = np.repeat(np.arange(len(known)), counts)
    begins = np.repeat(first - (np.cumsum(counts) - counts), counts)
    one, two = known.take(rows), found.take(begins + np.arange(len(rows)))
    oldest, newest = np.minimum(one.oldest, two.oldest), np.maximum(one.newest, two.newest)
    made = Relation({**one.columns, **two.columns}, oldest, newest)
    return made if index.span is None else made.take(np.flatnonzero(newest - oldest < index.span))


def _shared(known: Relation, found: Relation) -> tuple[Node, ...]:
    return tuple(node for node in known.columns if node in found.columns)


def _rows(columns: Sequence[Codes], count: int) -> Codes:
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0), np.int64)


def per_question(workload: Workload, found: Mapping[int, Answers]) -> list[int]:
    """The number of answers to each question, in the order of questions."""
    counted: dict[Question, int] = {}
    for number, each in found.items():
        rows, counts = np.unique(each.constants, axis=0, return_counts=True)
        pairs = zip(rows.tolist(), counts.tolist(), strict=True)
        counted |= {Question(number, tuple(row)): count for row, count in pairs}
    return [counted.get(question, 0) for question in workload.questions]
