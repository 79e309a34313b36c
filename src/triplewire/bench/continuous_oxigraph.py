"""pyoxigraph beside `bench continuous`: the exact answers to some questions, by an engine that we did not write.

Every triple that was published lies in a graph of its own, which is named by the position: one that was published twice
counts twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyoxigraph as ox

from triplewire.bench.continuous_conjunctions import Question, Workload, lines, written
from triplewire.bench.continuous_joins import Located

VERSION = ox.__version__
Told: TypeAlias = tuple[int, int, tuple[str, ...]]
"""The newest and the oldest position in an answer, and what is told, as N-Triples writes it."""

_GRAPH = "urn:t:"


def solutions(workload: Workload, question: Question, located: Located) -> Counter[Told]:
    """How often each answer is told to a question, over all triples."""
    answer = _store(workload, question, located).query(_asked(workload, question))
    assert isinstance(answer, ox.QuerySolutions)
    structure = workload.structures[question.structure]
    found: Counter[Told] = Counter()
    for solution in answer:
        positions = [_position(solution[f"g{number}"]) for number in range(len(structure.patterns))]
        oldest, newest = min(positions), max(positions)
        if located.span is None or newest - oldest < located.span:
            found[newest, oldest, tuple(str(solution[f"v{number}"]) for number in structure.told)] += 1
    return found


def _asked(workload: Workload, question: Question) -> str:
    structure = workload.structures[question.structure]
    parts = (
        f"GRAPH ?g{number} {{ {' '.join(written(workload, question, node) for node in pattern)} }}"
        for number, pattern in enumerate(structure.patterns)
    )
    return f"SELECT * {{ {' '.join(parts)} }}"


def _store(workload: Workload, question: Question, located: Located) -> ox.Store:
    """Triples of those predicates that a question names: others cannot answer it."""
    named = [pattern[1] for pattern in workload.structures[question.structure].patterns]
    rows = np.flatnonzero(np.isin(located.triples.predicates, np.array(named, np.int64)))
    store = ox.Store()
    store.bulk_extend(_quads(lines(workload, located.triples.take(rows)), located.positions[rows].tolist()))
    return store


def _quads(texts: Sequence[str], positions: Sequence[int]) -> Iterable[ox.Quad]:
    # Several triples of one event have one position, and each counts by itself: they are numbered.
    named = (
        f"{text} <{_GRAPH}{at}:{number}> .\n" for number, (text, at) in enumerate(zip(texts, positions, strict=True))
    )
    return ox.parse("".join(named).encode(), format=ox.RdfFormat.N_QUADS)


def _position(graph: object) -> int:
    assert isinstance(graph, ox.NamedNode)
    return int(graph.value.removeprefix(_GRAPH).partition(":")[0])
