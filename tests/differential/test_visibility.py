"""Any query under any policy, over any data: the answer is that of pyoxigraph over the data which the policy lets
through, worked out by the book.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.conformance.results import Answer, Triples, answer
from tests.differential.data import Data, data
from tests.differential.grammar import Question, questions
from tests.differential.pairs import Asking, examples, hold, seed_of
from tests.differential.vocabulary import EX, LINKS, RESOURCES, VALUE
from tests.history.policed import GRANTS, PEOPLE, STREAMS, Occurrence, World, policies
from tests.history.test_visibility import asked, history
from triplewire.history.executor import QueryCompiler
from triplewire.model.errors import BadRequest
from triplewire.model.terms import RDF_TYPE
from triplewire.security import Verb, parse_policy, visibility_of
from triplewire.security.visibility import ALL_VISIBLE

CLASSES = tuple(f"{EX}{name}" for name in "CD")
PATTERNS = {
    "streams": ("home", "city-*", "*"),
    "graphs": (f"{EX}e1", f"{EX}e*", "*"),
    "classes": (*CLASSES, f"{EX}*", "*"),
    "predicates": (*(each[1:-1] for each in (*LINKS, VALUE, RDF_TYPE)), f"{EX}*", "*"),
}
QUERIES = 3
"""For each policy: to write the data into files takes longer than to ask."""


@dataclass(frozen=True)
class Left(Data):
    """Data of which some events are not there."""

    names: tuple[str, ...] = ()

    @property
    def graphs(self) -> tuple[str, ...]:
        return self.names


_typed = st.tuples(st.sampled_from(RESOURCES), st.sampled_from(CLASSES)).map(
    lambda each: f"{each[0]} {RDF_TYPE} <{each[1]}>"
)
_worlds = st.tuples(
    data,
    st.lists(st.tuples(st.sampled_from(STREAMS), st.lists(_typed, max_size=2)), min_size=3, max_size=3),
    policies(PATTERNS),
    st.sampled_from(sorted(PEOPLE)),
    st.sampled_from(GRANTS),
).map(lambda made: World(_occurrences(made[0], made[1]), *made[2], *made[3:]))


def _occurrences(given: Data, more: list[tuple[str, list[str]]]) -> tuple[Occurrence, ...]:
    return tuple(
        Occurrence(stream, graph[1:-1], tuple(line.replace(" ", "\t", 2) for line in dict.fromkeys((*lines, *added))))
        for graph, lines, (stream, added) in zip(given.graphs, given.events, more, strict=False)
    )


def left(world: World) -> Left:
    seen = world.seen()
    lines = tuple(tuple(line.replace("\t", " ") for line in each.lines) for each in seen)
    return Left(lines, tuple(f"<{each.id}>" for each in seen))


@contextmanager
def asking(world: World) -> Iterator[Asking]:
    """What somebody is answered who is held to the policy."""
    try:
        visibility = visibility_of(world.principal, Verb.QUERY, parse_policy(world.policy())) or ALL_VISIBLE
    except BadRequest:
        assume(False)
        raise
    with TemporaryDirectory() as folder:
        at = history(folder, world.occurrences, QueryCompiler("duckdb"), parted=True, copies=False)

        def ask(text: str) -> Answer:
            found = asked(at, text, visibility)
            if any(word in text for word in ("CONSTRUCT", "DESCRIBE")):
                return Triples(frozenset(each.triple for each in ox.parse(found, format=ox.RdfFormat.N_TRIPLES)))
            return answer(ox.parse_query_results(found, format=ox.QueryResultsFormat.JSON))

        yield ask
        at.close()


@pytest.mark.parametrize("part", range(2))
def test_any_query_under_any_policy(part: int) -> None:
    """In parts, which can run side by side."""

    @seed_of(part)
    @examples(25)
    @given(_worlds, st.lists(questions, min_size=QUERIES, max_size=QUERIES))
    def answers(world: World, texts: list[Question]) -> None:
        with asking(world) as ask:
            for each in texts:
                hold(left(world), each, ask)

    answers()
