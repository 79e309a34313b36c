"""Generated look-ups over a copy of the lake, which its index answers, are answered as pyoxigraph answers them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.engines.answers import answer
from tests.conformance.results import Answer
from tests.differential import vocabulary
from tests.differential.data import ANCHOR, Data, data
from tests.differential.grammar import Question, questions
from tests.differential.pairs import examples, hold, seed_of
from tests.differential.trees import Tree, Within
from tests.storage.lake.test_delta import entries
from triplewire.history.duckdb import DuckDbEngine, IndexLimits
from triplewire.history.requests import QueryLimits
from triplewire.model import Event
from triplewire.sparql import compile_query, parse_query
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch


class OnIndex:
    """A lake with a commit for each event, each of which the index takes in by itself."""

    def __init__(self) -> None:
        self._directory = TemporaryDirectory()
        self._lakes = 0
        self._data: Data | None = None
        self._duck: DuckDbEngine | None = None
        self.indexed = 0
        """How many queries were for the index."""

    def take(self, data: Data) -> None:
        if data == self._data:
            return
        self.close_engine()
        path = Path(self._directory.name) / str(self._lakes)
        self._lakes += 1
        self._data, self._lake = data, DeltaLake(path)
        self._duck = DuckDbEngine(path, limits=IndexLimits(portion_quads=0))
        for number, (graph, lines) in enumerate(zip(data.graphs, data.events, strict=True), 1):
            event = Event(graph[1:-1], "\n".join("\t".join(line.split(" ", 2)) for line in lines))
            written = FileWriter(path).write(entries(event, first=number))
            self._lake.commit(CommitBatch("q", number, number), [written])
            self._duck.statistics(self._lake.files())

    def ask(self, text: str) -> Answer:
        assert self._duck is not None
        snapshot = self._lake.files()
        compiled = compile_query(parse_query(text), "duckdb", self._duck.statistics(snapshot))
        self.indexed += compiled.index_join is not None
        batches = list(self._duck.batches(compiled, snapshot, QueryLimits()))
        columns = ["answer"] if compiled.form == "ask" else [f"v{n}" for n in range(len(compiled.projection))]
        columns = columns if compiled.form in ("ask", "select") else ["subject", "predicate", "object"]
        empty = pa.table({name: pa.array([], pa.string()) for name in columns})
        return answer(compiled, pa.Table.from_batches(batches) if batches else empty)

    def close_engine(self) -> None:
        if self._duck is not None:
            self._duck.close()

    def close(self) -> None:
        self.close_engine()
        self._directory.cleanup()


@pytest.fixture(scope="module")
def engine() -> Iterator[OnIndex]:
    started = OnIndex()
    yield started
    started.close()


_NUMBER, _TIME = (f"<{vocabulary.EX}{name}>" for name in ("n", "t"))
_resources = st.sampled_from(vocabulary.RESOURCES)
_triples = st.one_of(
    st.tuples(_resources, st.sampled_from(vocabulary.LINKS), _resources),
    st.tuples(_resources, st.just(vocabulary.VALUE), st.sampled_from(vocabulary.LITERALS)),
    st.tuples(_resources, st.just(_NUMBER), st.sampled_from((*vocabulary.INTEGERS, *vocabulary.FLOATS[:3]))),
    st.tuples(_resources, st.just(_TIME), st.sampled_from(vocabulary.TIMES)),
).map(" ".join)


def _dealt(lines: list[str]) -> Data:
    """Deal triples to events: each is stored once, as the index needs it."""
    rest = [line for line in lines if line != ANCHOR]
    return Data(((ANCHOR, *rest[::3]), tuple(rest[1::3]), tuple(rest[2::3])))


unique_data = st.lists(_triples, min_size=6, max_size=24, unique=True).map(_dealt)

_nodes = st.sampled_from(("?a", "?b", "?c", *vocabulary.RESOURCES[:2], vocabulary.UNKNOWN))
_links = st.sampled_from((*vocabulary.LINKS, *vocabulary.LINKS, "?l"))
_patterns = st.one_of(
    st.tuples(_nodes, _links, _nodes),
    st.tuples(_nodes, st.just(vocabulary.VALUE), st.sampled_from(("?v", *vocabulary.COMMON))),
    st.tuples(_nodes, st.just(_NUMBER), st.sampled_from(("?n", vocabulary.INTEGERS[1]))),
    st.tuples(_nodes, st.just(_TIME), st.just("?t")),
).map(lambda parts: f"{' '.join(parts)} .")
_filters = st.sampled_from(
    (
        "",
        "",
        "FILTER(?n > 0)",
        "FILTER(?n >= 1 && ?n < 12)",
        "FILTER(?n = 1)",
        "FILTER(?n <= -7)",
        f"FILTER(?t >= {vocabulary.TIMES[0]})",
        f"FILTER(?t < {vocabulary.TIMES[0]})",
        f"FILTER(?a = {vocabulary.RESOURCES[0]})",
    )
)


def _asked(form: str, graph: str | None, patterns: list[str], condition: str) -> Question:
    body: Tree = " ".join([*patterns, condition])
    tree = body if graph is None else Within(graph, body)
    return Question(form, "ASK" if form == "ask" else "SELECT *", (tree,))


look_ups = st.builds(
    _asked,
    st.sampled_from(("select", "select", "select", "ask")),
    st.sampled_from((None, None, "?g", vocabulary.GRAPHS[1], vocabulary.UNKNOWN)),
    st.lists(_patterns, min_size=1, max_size=4),
    _filters,
)


@seed_of(21)
@examples(80)
@given(unique_data, st.lists(look_ups, min_size=3, max_size=6))
def test_look_ups_are_answered_as_pyoxigraph_does(engine: OnIndex, given: Data, asked: list[Question]) -> None:
    engine.take(given)
    for question in asked:
        hold(given, question, engine.ask)


def test_most_of_them_were_for_the_index(engine: OnIndex) -> None:
    assert engine.indexed > 100


@seed_of(22)
@examples(30)
@given(data, questions)
def test_any_query_over_a_copy_is_answered_as_pyoxigraph_does(engine: OnIndex, given: Data, question: Question) -> None:
    engine.take(given)
    hold(given, question, engine.ask)
