"""Constructs that the parser refuses, with name and position; nothing is ignored silently."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.model.errors import SparqlSyntax, TextPosition, Unsupported
from triplewire.sparql import parse_query
from triplewire.sparql.syntax.cursor import EXPRESSION_TERMS, QUERY_NESTING
from triplewire.sparql.syntax.terms import PATTERNS

FOLDER = Path(__file__).parent / "cases"


def cases(name: str) -> list[Any]:
    found = tomllib.loads((FOLDER / name).read_text())["case"]
    return [pytest.param(case, id=case["query"] or "nothing") for case in found]


@pytest.mark.parametrize("case", cases("unsupported.toml"))
def test_a_construct_outside_the_language_is_named_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(Unsupported) as refused:
        parse_query(case["query"])
    place = TextPosition(*case["place"]) if "place" in case else None
    assert (refused.value.construct, refused.value.place) == (case["construct"], place)


@pytest.mark.parametrize("case", cases("syntax.toml"))
def test_an_error_says_where_it_is_and_what_was_expected(case: dict[str, Any]) -> None:
    with pytest.raises(SparqlSyntax) as refused:
        parse_query(case["query"])
    assert case["expected"] in str(refused.value)
    assert refused.value.place == TextPosition(*case["place"])


def test_patterns_over_the_limit_are_refused_where_they_start() -> None:
    patterns = "\n".join("?s ?p ?o ." for _ in range(PATTERNS + 1))
    with pytest.raises(Unsupported) as refused:
        parse_query(f"SELECT * {{\n{patterns} }}")
    assert refused.value.place == TextPosition(PATTERNS + 2, 7)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"ASK {{ FILTER({' + '.join('1' for _ in range(QUERY_NESTING + 1))} = 1) }}", id="a sum"),
        pytest.param("ASK " + "{" * 20_000, id="groups"),
        pytest.param("ASK { ?s ?p " + "[ ?p " * 10_000, id="blank nodes"),
        pytest.param("ASK { ?s ?p " + "( " * 10_000, id="collections"),
        pytest.param("ASK { FILTER" + "(" * 20_000, id="brackets"),
    ],
)
def test_nesting_is_refused_before_it_fills_the_stack(text: str) -> None:
    with pytest.raises(Unsupported, match=f"nesting deeper than {QUERY_NESTING}"):
        parse_query(text)


def test_long_filters_are_refused() -> None:
    with pytest.raises(Unsupported, match=f"more than {EXPRESSION_TERMS} terms"):
        parse_query(f"ASK {{ FILTER(1 IN ({', '.join('1' for _ in range(EXPRESSION_TERMS + 1))})) }}")


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(SparqlSyntax) as refused:
        parse_query('ASK { ?s ?p "\ud800" }')
    assert refused.value.place == TextPosition(1, 14)
