"""The oracle of `bench continuous`: all answers, found apart from the engine, and by pyoxigraph for some questions.

Relations are columns of numpy, joined one pattern after the other by sorting. A triple that is published twice
is there twice, and every answer knows the oldest and the newest position in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, reduce
from random import Random
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyoxigraph as ox

from bench.continuous_workloads import (
    Codes,
    Conjunction,
    Constant,
    ContinuousWorkload,
    Node,
    Pattern,
    Structure,
    Triples,
    Variable,
    write_patterns,
    write_triples,
)
from bench.harness import Disagreement
from triplewire.config import Settings
from triplewire.model import MATCHES
from triplewire.model.clock import SystemClock
from triplewire.storage.outbox import OutboxLane, SqliteOutbox
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.registry.subscriptions import QUERY, query_from_change

SAMPLE = 40
"""Questions that pyoxigraph answers."""
_NEVER = np.iinfo(np.int64)
_GRAPH = "urn:t:"

Answer: TypeAlias = tuple[int, int, tuple[str, ...]]
"""The newest and the oldest position in an answer, and its terms in N-Triples."""


@dataclass(frozen=True)
class PublishedTriples:
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

    def shared(self, other: Relation) -> tuple[Node, ...]:
        return tuple(node for node in self.columns if node in other.columns)


@dataclass(frozen=True)
class StructureAnswers:
    """Answers to questions of one structure, a row each: constants, oldest and newest position, and terms."""

    constants: Codes
    oldest: Codes
    newest: Codes
    terms: Codes


def find_answers(workload: ContinuousWorkload, published: PublishedTriples) -> Iterator[tuple[int, StructureAnswers]]:
    """Yield the answers to the questions of each structure, by its number; equal questions have them once."""
    asked: dict[int, set[tuple[int, ...]]] = {}
    for question in workload.questions:
        asked.setdefault(question.structure, set()).add(question.constants)
    joiner = Joiner(published, len(workload.terms))
    for number in sorted(asked):
        yield number, joiner.join(workload.structures[number], sorted(asked[number]))


class Joiner:
    """The triples of each predicate. Relations that were found and sorted once are kept: structures share patterns."""

    def __init__(self, published: PublishedTriples, terms: int) -> None:
        self._published, self._terms = published, terms
        self._order = np.argsort(published.triples.predicates, kind="stable")
        self._sorted = published.triples.predicates[self._order]
        self._found: dict[Pattern, Relation] = {}
        self._by_key: dict[tuple[Pattern, tuple[Node, ...]], tuple[Relation, Codes]] = {}

    def join(self, structure: Structure, asked: Sequence[tuple[int, ...]]) -> StructureAnswers:
        constants, count = np.array(asked, np.int64).reshape(len(asked), -1), len(asked)
        own = [Constant(number) for number in range(constants.shape[1])]
        columns: dict[Node, Codes] = {node: constants[:, node.number] for node in own}
        known = Relation(columns, np.full(count, _NEVER.max), np.full(count, _NEVER.min))
        left = list(structure.patterns)
        while left:
            # Patterns that join go before those that do not, and few rows before many.
            chosen = min(left, key=lambda each: (not known.shared(self._find(each)), len(self._find(each))))
            left.remove(chosen)
            known = self._join_pattern(known, chosen)

        def stack(nodes: Sequence[Node]) -> Codes:
            columns = [known.columns[node] for node in nodes]
            return np.stack(columns, axis=1) if columns else np.zeros((len(known), 0), np.int64)

        terms = stack([Variable(number) for number in structure.projected])
        return StructureAnswers(stack(own), known.oldest, known.newest, terms)

    def _join_pattern(self, known: Relation, pattern: Pattern) -> Relation:
        shared = known.shared(self._find(pattern))
        found, theirs = self._sort(pattern, shared)
        ours = self._make_keys(known, shared)
        first, last = np.searchsorted(theirs, ours, "left"), np.searchsorted(theirs, ours, "right")
        counts = last - first
        rows = np.repeat(np.arange(len(known)), counts)
        begins = np.repeat(first - (np.cumsum(counts) - counts), counts)
        one, two = known.take(rows), found.take(begins + np.arange(len(rows)))
        oldest, newest = np.minimum(one.oldest, two.oldest), np.maximum(one.newest, two.newest)
        made, span = Relation({**one.columns, **two.columns}, oldest, newest), self._published.span
        return made if span is None else made.take(np.flatnonzero(newest - oldest < span))

    def _sort(self, pattern: Pattern, nodes: tuple[Node, ...]) -> tuple[Relation, Codes]:
        """Return the relation of a pattern in the order of the keys in these columns, and the keys."""
        if (pattern, nodes) not in self._by_key:
            found = self._find(pattern)
            keys = self._make_keys(found, nodes)
            order = np.argsort(keys, kind="stable")
            self._by_key[pattern, nodes] = found.take(order), keys[order]
        return self._by_key[pattern, nodes]

    def _make_keys(self, relation: Relation, nodes: Sequence[Node]) -> Codes:
        """Return one number for the values of these columns: at most two of them, as a pattern has no more."""
        none = np.zeros(len(relation), np.int64)
        return reduce(lambda keys, node: keys * self._terms + relation.columns[node], nodes, none)

    def _find(self, pattern: Pattern) -> Relation:
        if pattern not in self._found:
            triples, named = self._published.triples, pattern[1]
            first, last = np.searchsorted(self._sorted, [named, named + 1])
            rows = self._order[first:last]
            columns: dict[Node, Codes] = {}
            fits = np.ones(len(rows), bool)
            for node, terms in ((pattern[0], triples.subjects[rows]), (pattern[2], triples.targets[rows])):
                if isinstance(node, Variable | Constant):
                    fits &= columns.setdefault(node, terms) == terms
                else:
                    fits &= terms == node
            positions = self._published.positions[rows]
            self._found[pattern] = Relation(columns, positions, positions).take(np.flatnonzero(fits))
        return self._found[pattern]


@dataclass(frozen=True)
class AnswerRows:
    """Answers in the outbox, or as they should be there: of each its group, its newest and its oldest position."""

    groups: Codes
    newest: Codes
    oldest: Codes

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def ordered(self) -> Codes:
        columns = np.stack([self.groups, self.newest, self.oldest], axis=1)
        ordered: Codes = columns[np.lexsort(columns.T[::-1])]
        return ordered


@dataclass(frozen=True)
class DeliveredAnswers:
    """The answers of continuous queries after a position."""

    table: pa.Table

    @classmethod
    def read(cls, outbox: SqliteOutbox, after: int) -> DeliveredAnswers:
        tables = [MATCHES.empty_table()]
        while chunks := outbox.read(after, 100, OutboxLane.CONTINUOUS):
            tables += [chunk.matches for chunk in chunks]
            after = chunks[-1].position
        return cls(pa.concat_tables(tables))

    @property
    def rows(self) -> AnswerRows:
        return AnswerRows(*(self.table[name].to_numpy().astype(np.int64) for name in ("group", "position", "value")))

    def count(self, groups: Iterable[int]) -> int:
        """Return how many go to members of these groups, one group for each member."""
        found = Counter(self.rows.groups.tolist())
        return sum(found[group] for group in groups)

    def of_group(self, group: int) -> Counter[Answer]:
        chosen = self.table.filter(pa.array(self.table["group"].to_numpy() == group)).to_pylist()
        return Counter((row["position"], int(row["value"]), tuple(row["terms"][1:])) for row in chosen)


def find_groups(settings: Settings, workload: ContinuousWorkload, ids: Sequence[str]) -> dict[Conjunction, int]:
    """Return the group of each question, as it was registered. Raises Disagreement where questions that differ share
    one."""
    with closing(SqliteRegistry(settings.log, SystemClock())) as registry:
        found = {change.key: query_from_change(change).group for change in registry.list(QUERY)}
    groups: dict[Conjunction, int] = {}
    for question, id in zip(workload.questions, ids, strict=True):
        group = found[id]
        if group is None or groups.setdefault(question, group) != group:
            raise Disagreement(f"{question} is of group {group} and of {groups.get(question)}")
    if len(set(groups.values())) != len(groups):
        raise Disagreement("questions that differ are of one group")
    return groups


def expect_rows(
    workload: ContinuousWorkload, published: PublishedTriples, groups: Mapping[Conjunction, int]
) -> AnswerRows:
    """Return all answers that are due, once for each group."""
    parts = []
    for number, each in find_answers(workload, published):
        distinct, inverse = np.unique(each.constants, axis=0, return_inverse=True)
        numbers = np.array([groups[Conjunction(number, tuple(row))] for row in distinct.tolist()], np.int64)
        found = numbers[inverse.reshape(-1)] if len(each.constants) else np.zeros(0, np.int64)
        parts.append((found, each.newest, each.oldest))
    return AnswerRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def check_rows(found: AnswerRows, right: AnswerRows) -> None:
    """Raises Disagreement unless both hold the same answers, each as often."""
    if len(found) != len(right):
        raise Disagreement(f"{len(found)} answers were delivered, and there are {len(right)}")
    if (found.ordered != right.ordered).any():
        at = int(np.flatnonzero((found.ordered != right.ordered).any(axis=1))[0])
        ours, theirs = (tuple(each.ordered[at].tolist()) for each in (found, right))
        raise Disagreement(f"(group, newest, oldest) {ours} was delivered where {theirs} is right")


def check_sample(
    workload: ContinuousWorkload,
    published: PublishedTriples,
    groups: Mapping[Conjunction, int],
    delivered: DeliveredAnswers,
) -> dict[str, int]:
    """Compare some questions, most of which have answers, with pyoxigraph, term by term. Raises Disagreement."""
    random, few, count = Random(9), SAMPLE // 4, 0
    answered = set(delivered.rows.groups.tolist())
    every = sorted(groups, key=lambda each: (each.structure, each.constants))
    answering, silent = ([each for each in every if (groups[each] in answered) is has] for has in (True, False))
    asked = random.sample(answering, min(len(answering), SAMPLE - few)) + random.sample(silent, min(len(silent), few))
    for question in asked:
        right, found = query_oxigraph(workload, question, published), delivered.of_group(groups[question])
        if right != found:
            raise Disagreement(f"{question}: delivered and wrong {found - right}, right and missing {right - found}")
        count += right.total()
    return {"questions": len(asked), "solutions": count}


def query_oxigraph(workload: ContinuousWorkload, question: Conjunction, published: PublishedTriples) -> Counter[Answer]:
    """Return how often each answer is due. Every triple lies in a graph of its own, named by its position and a number:
    one that was published twice counts twice. Triples of other predicates are left out."""
    structure = workload.structures[question.structure]
    named = np.array([pattern[1] for pattern in structure.patterns], np.int64)
    rows = np.flatnonzero(np.isin(published.triples.predicates, named))
    texts = write_triples(workload, published.triples.take(rows))
    pairs = enumerate(zip(texts, published.positions[rows].tolist(), strict=True))
    quads = "".join(f"{text} <{_GRAPH}{at}:{number}> .\n" for number, (text, at) in pairs)
    store = ox.Store()
    store.bulk_extend(ox.parse(quads.encode(), format=ox.RdfFormat.N_QUADS))
    patterns = enumerate(write_patterns(workload, question))
    graphs = " ".join(f"GRAPH ?g{number} {{ {pattern} }}" for number, pattern in patterns)
    solutions = store.query(f"SELECT * {{ {graphs} }}")
    assert isinstance(solutions, ox.QuerySolutions)
    found: Counter[Answer] = Counter()
    for solution in solutions:
        names = (str(solution[f"g{number}"]) for number in range(len(structure.patterns)))
        positions = [int(name[1 + len(_GRAPH) : -1].partition(":")[0]) for name in names]
        oldest, newest = min(positions), max(positions)
        if published.span is None or newest - oldest < published.span:
            found[newest, oldest, tuple(str(solution[f"v{number}"]) for number in structure.projected)] += 1
    return found
