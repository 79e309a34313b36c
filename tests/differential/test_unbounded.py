"""Generated conjunctions, taken apart: patterns that pyoxigraph joins and steps that we compute are the whole query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, reject

from tests.conformance.engines.answers import answer
from tests.conformance.engines.oxigraph import Oxigraph
from tests.conformance.results import Answer, Rows
from tests.differential import oracles, vocabulary
from tests.differential.data import Data, data
from tests.differential.engines import OnDuckDB
from tests.differential.grammar import Question, conjunctions
from tests.differential.pairs import examples, seed_of
from tests.differential.verdicts import problem
from triplewire.model.errors import Unsupported
from triplewire.sparql import (
    CompiledQuery,
    Const,
    Node,
    Pattern,
    UnboundedQuery,
    compile_rows,
    parse_registration,
    split_unbounded,
)


class OnRows(OnDuckDB):
    def answered(self, given: Data, split: UnboundedQuery) -> Answer:
        rows = _joined(given, split)
        columns = ", ".join(["row BIGINT", *(f"v{place} VARCHAR" for place in range(len(split.names)))])
        self._connection.execute(f"CREATE OR REPLACE TABLE rows ({columns})")
        marks = ", ".join("?" for _ in range(len(split.names) + 1))
        for number, row in enumerate(rows):
            self._connection.execute(f"INSERT INTO rows VALUES ({marks})", [number, *row])
        sql = compile_rows(split.names, split.steps, split.projection)
        compiled = CompiledQuery("select", split.projection, sql)
        found = answer(compiled, self._connection.sql(sql).to_arrow_table())
        assert isinstance(found, Rows)
        return Rows(found.names, tuple(dict.fromkeys(found.rows))) if split.distinct else found


def _joined(given: Data, split: UnboundedQuery) -> Iterator[tuple[str, ...]]:
    """The solutions of the patterns alone, once for each combination of triples."""
    numbers: dict[str, int] = {}

    def spelled(node: Node) -> str:
        if isinstance(node, Const):
            return node.term
        assert not hasattr(node, "index")
        return f"?h{numbers.setdefault(node.name, len(numbers))}"

    def triple(each: Pattern) -> str:
        return " ".join(map(spelled, (each.subject, each.predicate, each.object)))

    patterns = " . ".join(map(triple, split.patterns))
    oracle = Oxigraph()
    oracle.load(given.dataset(given.graphs, ()))
    found = oracle.run(f"SELECT * {{ {patterns} }}", vocabulary.EX)
    assert isinstance(found, Rows)
    places = [found.names.index(f"h{numbers[name]}") for name in split.names]
    return (tuple(str(row[place]) for place in places) for row in found.rows)


def _split(question: Question) -> UnboundedQuery | None:
    try:
        return split_unbounded(parse_registration(question.text))
    except Unsupported as refused:
        _check(refused)
        return None


def _check(refused: Unsupported) -> None:
    """What a conjunction may have that cannot be split, always with its place."""
    functions = ("function NOW", "function RAND", "function STRUUID", "function UUID", "function BNODE")
    assert refused.construct in ("VALUES", "a query without a triple pattern", *functions)
    assert refused.place is not None


@pytest.fixture(scope="module")
def engine() -> Iterator[OnRows]:
    started = OnRows()
    yield started
    started.close()


@pytest.mark.parametrize("part", range(2))
def test_what_is_split_is_answered_as_pyoxigraph_answers_the_whole(engine: OnRows, part: int) -> None:
    @seed_of(part)
    @examples(120)
    @given(data, conjunctions())
    def answers(given: Data, question: Question) -> None:
        split = _split(question)
        if split is None:
            reject()
        wrong = problem(question.leeway, oracles.on_history(given, question), engine.answered(given, split))
        assert wrong is None, f"{wrong}\n{question.text}\n{given}\n{split}"

    answers()
