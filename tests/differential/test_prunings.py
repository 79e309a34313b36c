"""Generated queries are answered as pyoxigraph answers them where each scan reads only what it has to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.cases import load
from tests.differential.data import ANCHOR, Data, data
from tests.differential.grammar import Question, questions
from tests.differential.pairs import examples, hold, seed_of, verdict
from tests.differential.parts import OnParts
from tests.differential.trees import Tree, Within
from tests.differential.vocabulary import EX
from triplewire.model.terms import XSD

CASES = load()


@pytest.fixture(scope="module")
def engine() -> Iterator[OnParts]:
    started = OnParts()
    yield started
    started.close()


@seed_of(7)
@examples(80)
@given(data, questions)
def test_what_is_not_read_is_not_missed(engine: OnParts, given: Data, question: Question) -> None:
    engine.take(given)
    hold(given, question, engine.ask)


_P, _Q, _V = (f"<{EX}{name}>" for name in "pqv")
NARROW: tuple[Tree, ...] = (
    f"?a {_P} <{EX}b> .",
    f"<{EX}a> {_Q} ?a .",
    f"?a {_V} 1 .",
    f"?a {_V} ?n FILTER(?n >= 2)",
    f"{{ SELECT DISTINCT ?a {{ ?a {_P} <{EX}c> }} }}",
    f"{{ SELECT ?a (MAX(?w) AS ?m) {{ ?a {_V} ?w }} GROUP BY ?a HAVING(?m > 0) }}",
    Within("?g", f"?a {_Q} <{EX}a>"),
)
JOINED: tuple[Tree, ...] = (
    "?a ?l ?o .",
    f"?x {_P} ?a .",
    f"?a {_P} ?y . ?y {_Q} ?z .",
    f"OPTIONAL {{ ?a {_Q} ?q }}",
    f"OPTIONAL {{ ?a {_P} ?r . ?r {_V} ?s }}",
    f"OPTIONAL {{ ?r {_Q} ?t OPTIONAL {{ ?t {_V} ?u }} }}",
    f"{{ ?a {_Q} ?b }} UNION {{ ?b {_P} ?a }} UNION {{ ?b {_V} ?c }}",
    f"FILTER NOT EXISTS {{ ?a {_Q} ?e }}",
    f"FILTER EXISTS {{ ?e {_P} ?a . ?a {_Q} ?f }}",
    f"MINUS {{ ?a {_P} ?y }}",
    f"{{ SELECT ?a {{ ?a {_P} ?h }} ORDER BY ?a LIMIT 1 }}",
    f"{{ SELECT ?a (COUNT(?h) AS ?k) {{ ?a {_P} ?h }} GROUP BY ?a }}",
    Within("?g", f"?a {_P} ?i"),
    (Within("?j", f"?a {_Q} ?i"), Within("?j", f"?i2 {_V} ?i3")),
)
"""Forms that are joined with what is narrow, and read what it leaves to them."""

stars = st.tuples(st.sampled_from(NARROW), st.lists(st.sampled_from(JOINED), min_size=1, max_size=3, unique=True))


@seed_of(8)
@examples(60)
@given(data, stars)
def test_what_is_joined_with_little_is_not_missed(engine: OnParts, given: Data, star: tuple[Tree, list[Tree]]) -> None:
    engine.take(given)
    hold(given, Question("select", "SELECT *", (star[0], *star[1])), engine.ask)


def test_kept_pairs_are_answered_by_reading_less(engine: OnParts) -> None:
    for case in CASES.values():
        engine.take(case.data)
        assert verdict(case, engine.ask) is None, case.note


def _typed(name: str, *lexicals: str) -> tuple[str, ...]:
    return tuple(f'"{lexical}"^^<{XSD}{name}>' for lexical in lexicals)


HOSTILE = (
    *_typed("integer", "0", "-0", "9", "25", "100", "-9", "9007199254740993", "9" * 30),
    *_typed("decimal", "0.1", "-0.0", "0.10000000149011612", "25.0", "0." + "0" * 20 + "1", "9007199254740992.5"),
    *_typed("float", "0.1", "NaN", "INF", "-INF", "-0", "25", "1e-45", "3.4028236e38"),
    *_typed("double", "0.1", "NaN", "INF", "-INF", "-0.0", "25", "1e308", "5e-324"),
    *_typed("dateTime", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00", "2019-12-31T20:00:00-05:00"),
    *_typed("dateTime", "2020-01-01T13:59:59.999999", "0001-01-01T00:00:00", "9999-12-31T23:59:59Z"),
    *_typed("date", "2020-01-01", "2020-01-01Z", "2020-01-01+14:00", "9999-12-31+14:00"),
    *_typed("boolean", "true", "false"),
    *_typed("integer", "x"),
    *('"a"', '"a"@en', '"9"', '""', '"\\u0001"', '"😀"', f"<{EX}a>"),
)
"""What is compared by value in ways of its own."""


@pytest.fixture(scope="module")
def hostile() -> Iterator[OnParts]:
    started = OnParts()
    started.take(Data(((ANCHOR, *(f"<{EX}a> <{EX}v> {each}" for each in HOSTILE)),)))
    yield started
    started.close()


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_values_are_compared_as_if_everything_was_read(hostile: OnParts, op: str) -> None:
    conditions = [f"?v {op} {constant}" for constant in HOSTILE]
    conditions += [f"!(?v {op} {constant}) || {constant} {op} ?v || ?v {op} 7" for constant in HOSTILE[::8]]
    for condition in conditions:
        text = f"SELECT ?v {{ ?s <{EX}v> ?v FILTER({condition}) }}"
        assert hostile.ask(text) == hostile.ask_all(text), text


TEXTS = (
    *(f"SELECT ?v {{ ?s ?p ?v FILTER(STRSTARTS(STR(?v), '{start}')) }}" for start in ("a", "9", "", "😀", "\\u0001")),
    f'SELECT ?v {{ ?s ?p ?v FILTER(STRSTARTS(STR(?p), "{EX}v")) }}',
    f'SELECT ?v {{ ?s ?p ?v FILTER(STRSTARTS(STR(?v), "{EX}") || ?v = 25) }}',
    f"SELECT ?v {{ VALUES ?v {{ 25 UNDEF <{EX}a> 'a'@en }} ?s <{EX}v> ?v }}",
    "SELECT ?v { VALUES (?v ?w) { (25 1) ('a' 2) (UNDEF 3) } ?s ?p ?v }",
    "SELECT ?v { ?s ?p ?v FILTER(?v IN (25, 'a', 0.1, '9'@fr)) }",
    "SELECT ?v { ?s ?p ?v FILTER(IF(ISNUMERIC(?v), ?v > 25, STR(?v) = 'a')) }",
    "SELECT ?v { ?s ?p ?v FILTER(COALESCE(?v > 25, STR(?v) = 'a')) }",
)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_and_lists_are_found_as_if_everything_was_read(hostile: OnParts, text: str) -> None:
    assert hostile.ask(text) == hostile.ask_all(text)
