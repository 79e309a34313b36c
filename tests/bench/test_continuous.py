"""`bench continuous`: workloads are what they say, and what is counted beside the engine is right, by two ways of
counting that have nothing in common with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyoxigraph as ox
import pytest

from bench.continuous_oracle import Answer, PublishedTriples, StructureAnswers, find_answers, query_oxigraph
from bench.continuous_workloads import (
    INSTANCES,
    LINKS,
    VALUES,
    Conjunction,
    Constant,
    ContinuousWorkload,
    PathWorkload,
    Structure,
    StructureWorkload,
    Triples,
    Variable,
    write_bodies,
    write_patterns,
    write_pieces,
    write_sparql,
    write_triples,
)
from tests.continuous import brute
from tests.continuous.oracle import Asked, Published, Triple

X, Y, Z = (Variable(number) for number in range(3))


@dataclass(frozen=True)
class Small:
    """Few terms, of which the first three are predicates."""

    structures: Sequence[Structure]
    questions: Sequence[Conjunction]
    seed: int = 7

    @property
    def terms(self) -> Sequence[str]:
        return [f"<urn:t:{number}>" for number in range(7)]

    def triples(self, count: int, part: int = 0) -> Triples:
        random = np.random.default_rng((self.seed, part))
        return Triples(random.integers(3, 6, count), random.integers(0, 3, count), random.integers(3, 7, count))


SMALL = Small(
    [
        Structure(((X, 0, Y), (Y, 1, Z)), (0, 2)),
        Structure(((X, 0, Y), (Y, 1, X)), (0, 1)),
        Structure(((X, 2, X),), (0,)),
        Structure(((X, 0, Constant(0)), (X, 1, Y), (Constant(1), 2, Y)), (0,)),
        Structure(((X, 0, 4), (Y, 1, 5)), (1,)),
    ],
    [
        Conjunction(0),
        Conjunction(1),
        Conjunction(2),
        Conjunction(3, (3, 4)),
        Conjunction(3, (5, 4)),
        Conjunction(3, (3, 4)),
        Conjunction(4),
    ],
)


def located(workload: ContinuousWorkload, count: int, span: int | None = None, together: int = 1) -> PublishedTriples:
    return PublishedTriples(workload.triples(count), 5 + np.arange(count) // together, span)


def brutally(
    workload: ContinuousWorkload, question: Conjunction, at: PublishedTriples
) -> Counter[tuple[int, tuple[str, ...]]]:
    """Position and what is told, by trying all combinations."""
    structure = workload.structures[question.structure]
    patterns = tuple(map(triple, write_patterns(workload, question)))
    told = tuple(f"v{number}" for number in structure.projected)
    quads: dict[int, list[Triple]] = {}
    for text, position in zip(write_triples(workload, at.triples), at.positions.tolist(), strict=True):
        quads.setdefault(position, []).append(triple(text))
    events = [Published(position, tuple(each)) for position, each in quads.items()]
    found = brute.expected([Asked(patterns, told=told, span=at.span)], events)
    return Counter(
        {(position, tuple(dict(row)[name] for name in told)): count for (_, position, row), count in found.items()}
    )


def joined(workload: ContinuousWorkload, question: Conjunction, at: PublishedTriples) -> Counter[Answer]:
    found = dict(find_answers(workload, at))[question.structure]
    rows = np.flatnonzero((found.constants == np.array(question.constants, np.int64)).all(axis=1))
    columns = found.newest[rows].tolist(), found.oldest[rows].tolist(), found.terms[rows].tolist()
    return Counter(
        (newest, oldest, tuple(workload.terms[code] for code in told))
        for newest, oldest, told in zip(*columns, strict=True)
    )


def per_question(workload: ContinuousWorkload, found: Mapping[int, StructureAnswers]) -> list[int]:
    """The number of answers to each question, in the order of questions."""
    counted: dict[Conjunction, int] = {}
    for number, each in found.items():
        rows, counts = np.unique(each.constants, axis=0, return_counts=True)
        pairs = zip(rows.tolist(), counts.tolist(), strict=True)
        counted |= {Conjunction(number, tuple(row)): count for row, count in pairs}
    return [counted.get(question, 0) for question in workload.questions]


def valid(text: str) -> bool:
    return isinstance(ox.Store().query(text), ox.QuerySolutions)


def triple(text: str) -> Triple:
    subject, predicate, target = text.split(" ")
    return subject, predicate, target


@pytest.mark.parametrize("span", [None, 1, 7])
@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("question", SMALL.questions, ids=str)
def test_three_ways_of_counting_agree(question: Conjunction, span: int | None, together: int) -> None:
    at = located(SMALL, 40, span, together)
    ours = joined(SMALL, question, at)
    assert ours == query_oxigraph(SMALL, question, at)
    without_oldest: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for (newest, _, told), count in ours.items():
        without_oldest[newest, told] += count
    assert without_oldest == brutally(SMALL, question, at)


def test_what_three_ways_agree_on_is_not_nothing() -> None:
    counts = per_question(SMALL, dict(find_answers(SMALL, located(SMALL, 40))))
    assert all(counts)
    assert counts[3] == counts[5]


def walked(workload: PathWorkload, triples: Triples) -> dict[tuple[int, int], int]:
    """How many paths from the root end in each literal of each property, with as many numbers as there are instances:
    those that lead to each, property after property."""
    ways: dict[int, Counter[int]] = {}
    for named in range(363):
        rows = np.flatnonzero(triples.predicates == named)
        before = None if named < 3 else ways[named // 3 - 1]
        ways[named] = Counter()
        for subject, target in zip(triples.subjects[rows].tolist(), triples.targets[rows].tolist(), strict=True):
            ways[named][target] += 1 if before is None else before[subject]
    return {
        (named - 120, literal): count for named in range(120, 363) for literal, count in ways[named].items() if count
    }


def test_paths_are_counted_as_by_walking_along_them() -> None:
    workload = PathWorkload.of(2_000)
    at = located(workload, 60_000)
    walks = walked(workload, at.triples)
    counted = per_question(workload, dict(find_answers(workload, at)))
    assert counted == [walks.get((each.structure, each.constants[0]), 0) for each in workload.questions]
    assert sum(counted) > 500


def test_a_path_of_the_paper_leads_from_the_root_to_a_literal() -> None:
    workload = PathWorkload.of(1_000)
    assert len(workload.structures) == 3**5
    assert len(workload.questions) == 1_000
    for structure in workload.structures:
        named = [pattern[1] for pattern in structure.patterns]
        assert len(named) == 5
        assert named[0] < 3
        # What a property leads to is the class that has the next.
        for one, two in pairwise(named):
            assert one + 1 == two // 3
    text = write_sparql(workload, workload.questions[0])
    assert text.endswith('" }')
    assert valid(text)


def test_triples_of_the_paper_are_spread_over_depths_classes_and_properties() -> None:
    workload = PathWorkload.of(100_000)
    triples = workload.triples(50_000)
    classes = triples.predicates // 3
    depths = np.searchsorted([1, 4, 13, 40], classes, side="right")
    assert np.abs(np.bincount(depths) / 50_000 - 0.2).max() < 0.01
    assert set(triples.predicates.tolist()) == set(range(363))
    assert len(np.unique(triples.subjects[classes == 0])) == INSTANCES
    literals = triples.targets[depths == 4]
    assert all(workload.terms[code].startswith('"') for code in literals.tolist())
    assert len(np.unique(literals)) == VALUES
    # What a triple leads to is an instance of the class that its property leads to.
    inner = depths < 4
    assert ((triples.targets[inner] - 363) // 1_000 == triples.predicates[inner] + 1).all()
    assert ((triples.subjects - 363) // 1_000 == classes).all()


def test_fewer_questions_have_as_many_answers() -> None:
    few, many = PathWorkload.of(1_000), PathWorkload.of(20_000)
    one = sum(per_question(few, dict(find_answers(few, located(few, 100_000)))))
    two = sum(per_question(many, dict(find_answers(many, located(many, 100_000)))))
    assert 0.85 < one / two < 1.15


@pytest.mark.parametrize(
    "workload", [PathWorkload.of(500), StructureWorkload.of(200, 5_000)], ids=["paths", "structures"]
)
class TestWorkloads:
    def test_everything_follows_from_the_seed(self, workload: PathWorkload | StructureWorkload) -> None:
        again = replace(workload)
        assert again.questions == workload.questions
        assert (again.triples(100).subjects == workload.triples(100).subjects).all()
        other = replace(workload, seed=10)
        assert other.questions != workload.questions
        assert (other.triples(100).subjects != workload.triples(100).subjects).any()

    def test_parts_have_no_answers_together(self, workload: PathWorkload | StructureWorkload) -> None:
        one, two = workload.triples(3_000), workload.triples(3_000, part=1)
        nodes = [
            {code for code in (*each.subjects.tolist(), *each.targets.tolist()) if workload.terms[code][0] == "<"}
            for each in (one, two)
        ]
        assert not nodes[0] & nodes[1]

    def test_pieces_answer_their_question_and_no_other(self, workload: PathWorkload | StructureWorkload) -> None:
        question = workload.questions[7]
        made = write_pieces(workload, question, 3)
        assert len(made) == len(workload.structures[question.structure].patterns)
        patterns = tuple(triple(each) for each in write_patterns(workload, question))
        found = brute.expected([Asked(patterns)], [Published(1, tuple(triple(each) for each in made))])
        assert found.total() == 1


def test_structures_are_all_different_and_many_are_answered() -> None:
    workload = StructureWorkload.of(1_000, 20_000)
    assert len(workload.structures) == len(workload.questions) == 1_000
    sizes = Counter(len(each.patterns) for each in workload.structures)
    assert min(sizes[size] for size in (2, 3, 4, 5)) > 200
    assert sum(bool(each.constants) for each in workload.questions) > 400
    assert sum(not each.constants for each in workload.questions) > 400
    counts = per_question(workload, dict(find_answers(workload, located(workload, 20_000))))
    assert sum(map(bool, counts)) > 400
    cycles = [number for number, each in enumerate(workload.structures) if number % 4 == 3]
    assert sum(counts[number] for number in cycles) > 50


def test_texts_of_structures_are_all_different() -> None:
    workload = StructureWorkload.of(300, 5_000)
    assert len({write_sparql(workload, each) for each in workload.questions}) == 300
    assert all(valid(write_sparql(workload, each)) for each in workload.questions)
    predicates = {p[1] for each in workload.structures for p in each.patterns}
    assert predicates >= set(range(LINKS))


def test_bodies_number_events_in_order() -> None:
    texts = [f"<urn:s> <urn:p> <urn:o:{number}>" for number in range(7)]
    one, two = write_bodies(texts, 10, 5)
    assert one.count(b"\n") == 5
    assert two.decode().splitlines()[-1] == "<urn:s> <urn:p> <urn:o:6> <http://bench.example/e/16> ."
    together = list(write_bodies(texts, 0, 5, together=2))
    assert [body.count(b"\n") for body in together] == [4, 3]
    assert together[1].decode().splitlines()[-1].endswith("/e/3> .")
