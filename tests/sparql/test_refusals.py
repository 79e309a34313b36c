"""What the parser refuses, by name and place; nothing is dropped in silence."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.config import limits
from triplewire.errors import BodyTooLarge, Place, SparqlSyntax, Unsupported
from triplewire.sparql import parse

FOLDER = Path(__file__).parent / "cases"


def cases(name: str) -> list[Any]:
    found = tomllib.loads((FOLDER / name).read_text())["case"]
    return [pytest.param(case, id=case["query"] or "nothing") for case in found]


@pytest.mark.parametrize("case", cases("unsupported.toml"))
def test_a_construct_outside_the_language_is_named_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(Unsupported) as refused:
        parse(case["query"])
    assert (refused.value.construct, refused.value.place) == (case["construct"], Place(*case["place"]))


@pytest.mark.parametrize("case", cases("syntax.toml"))
def test_an_error_says_where_it_is_and_what_was_expected(case: dict[str, Any]) -> None:
    with pytest.raises(SparqlSyntax) as refused:
        parse(case["query"])
    assert case["expected"] in str(refused.value)
    assert refused.value.place == Place(*case["place"])


def test_a_text_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(BodyTooLarge):
        parse("SELECT * { } #" + "é" * (limits.QUERY_BYTES // 2))


def test_patterns_over_the_limit_are_refused_where_they_start() -> None:
    patterns = "\n".join("?s ?p ?o ." for _ in range(limits.PATTERNS + 1))
    with pytest.raises(Unsupported) as refused:
        parse(f"SELECT * {{\n{patterns} }}")
    assert refused.value.place == Place(limits.PATTERNS + 2, 7)


def test_a_long_sum_is_refused_like_a_deep_one() -> None:
    with pytest.raises(Unsupported, match="nested deeper"):
        parse(f"ASK {{ FILTER({' + '.join('1' for _ in range(limits.EXPRESSION_DEPTH + 2))} = 1) }}")
