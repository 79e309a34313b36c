"""Rules of planning: what each makes of a tree, case by case, and that answers stay the same by all of them.

A fixture file has the name of its rule. A case in it is a title, the query, the algebra before the rule and after
it;
`the same` where the rule must let it be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given

from tests.conformance.engines.answers import answer
from tests.conformance.results import Answer
from tests.differential.data import Data, data
from tests.differential.engines import OnDuckDB
from tests.differential.grammar import Question, questions
from tests.differential.pairs import examples
from tests.differential.verdicts import Leeway, problem
from triplewire.model.terms import TW, XSD
from triplewire.sparql import CompiledQuery, Query, Statistics, TripleCounts, parse_query, to_sql
from triplewire.sparql.algebra import Operator, Select
from triplewire.sparql.compiler.contexts import Context, QueryBuild, with_shared_relations
from triplewire.sparql.compiler.modifiers import compile_form
from triplewire.sparql.compiler.operators import compile_operator
from triplewire.sparql.optimizer import RULES, Rule, apply_rule
from triplewire.sparql.serialization import format_algebra
from triplewire.sparql.statistics import OptimizerContext

FOLDER = Path(__file__).parent / "rules"
PREFIXES = f"PREFIX : <urn:> PREFIX tw: <{TW}>\n"
STATISTICS = Statistics(
    {
        "<urn:rare>": TripleCounts(10, 10, 10, 2),
        "<urn:common>": TripleCounts(10_000, 10_000, 5_000, 100),
        "<urn:flag>": TripleCounts(20_000, 20_000, 20_000, 2),
    },
    total=TripleCounts(30_010, 30_010, 20_000, 104),
)
BY_NAME = {rule.__name__: rule for rule in RULES}


@dataclass(frozen=True)
class Case:
    title: str
    query: str
    before: str
    after: str


def cases(name: str) -> Iterator[Case]:
    """Yield the cases of one fixture file."""
    for text in (FOLDER / f"{name}.txt").read_text().split("\n\n\n"):
        title, query, before, after = text.strip("\n").split("\n\n")
        yield Case(title.removeprefix("# "), query, before, before if after == "the same" else after)


CASES = [pytest.param(BY_NAME[name], each, id=f"{name}: {each.title}") for name in BY_NAME for each in cases(name)]


def where(text: str) -> Operator:
    """Return the text in the braces."""
    found = parse_query(PREFIXES + text).where
    return found.inner if isinstance(found, Select) else found


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_a_rule_does_this_and_no_more(rule: Rule, case: Case) -> None:
    tree = where(case.query)
    assert shown(tree) == case.before
    assert shown(apply_rule(rule, tree, OptimizerContext(STATISTICS))) == case.after


def shown(tree: Operator) -> str:
    return format_algebra(tree).replace(f"<{XSD}", "<xsd:")


def test_each_rule_has_its_file() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {*BY_NAME}


def unplanned(query: Query) -> CompiledQuery:
    """Compile a query without any rule."""
    build = QueryBuild(compile_operator, Statistics())
    sql = to_sql(with_shared_relations(build, compile_form(query, Context(build, query.dataset))), "duckdb")
    return CompiledQuery(query.form, query.projection, sql)


class Unplanned(OnDuckDB):
    def ask(self, text: str) -> Answer:
        compiled = unplanned(parse_query(text))
        return answer(compiled, self._connection.sql(compiled.sql).to_arrow_table())


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[OnDuckDB, Unplanned]]:
    started = OnDuckDB(), Unplanned()
    yield started
    for each in started:
        each.close()


@examples(80)
@given(data, questions)
def test_answers_are_those_without_rules(engines: tuple[OnDuckDB, Unplanned], given: Data, question: Question) -> None:
    """Remove slices, because the rows that they take are undetermined."""
    for engine in engines:
        engine.take(given)
    text = question.defined(given.graphs)
    planned, plain = (engine.ask(text) for engine in engines)
    assert problem(Leeway(reduced=question.reduced), plain, planned) is None
