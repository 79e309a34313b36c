"""Regular expressions: those that are known mean the same to DuckDB, and none takes long."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest

from triplewire.matching.interpreter.functions import compile_regex
from triplewire.matching.interpreter.values import Undecided
from triplewire.sparql.dialects.regexes import translate_regex

KNOWN = (
    "",
    "a",
    "^a",
    "b$",
    "^$",
    "^a.b$",
    "a.*b",
    "^.*3[0-9]?-unit$",
    "[^a-z]",
    "[A-Z]{2}",
    "a{1,2}b",
    "a{2,}",
    "x|^b|c$",
    "(a|b)c",
    "(?:a|b)",
    "a\\.b",
    "\\$",
    "a+?b",
    "a$|b",
    "[Z-a]",
    "[.:/]",
)
TEXTS = (
    "",
    "a",
    "A",
    "b",
    "ab",
    "aab",
    "a.b",
    "a$",
    "AB",
    "acb",
    "000013-unit",
    "x^b",
    "bc",
    "http://a/b",
    "Z_",
    "k",
    "b a",
)


@pytest.mark.parametrize(("pattern", "flags"), [*product(KNOWN, ("", "i"))])
def test_known_patterns_match_what_they_match_for_the_evaluator(pattern: str, flags: str) -> None:
    search = compile_regex(pattern, flags)
    assert search is not None
    sql = "SELECT list_transform($1::VARCHAR[], lambda each: regexp_matches(each, $2))"
    with duckdb.connect() as duck:
        ((expected,),) = duck.execute(sql, [list(TEXTS), translate_regex(pattern, flags, "re2").text]).fetchall()
    assert [search(text) for text in TEXTS] == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|b)*c",
        "(ab){2}",
        "(a)?",
        "(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)b",
        "a?a?a?a?a?a?a?b",
        "\\d",
        "\\w+",
        "\\p{L}",
        "[a-z-[b]]",
        "é",
        "a**",
        "a++",
        "(?=a)",
        "(?i)a",
        "(a)\\1",
        "[a",
        "a{3,1}",
    ],
)
def test_others_are_left_alone(pattern: str) -> None:
    assert compile_regex(pattern, "") is None


@pytest.mark.parametrize("flags", ["s", "m", "x", "q", "im", "z"])
def test_so_are_other_flags(flags: str) -> None:
    assert compile_regex("a", flags) is None


@pytest.mark.parametrize("text", ["é", "a\nb", "a" * 200])
def test_text_of_other_letters_or_lines_or_of_much_is_undecided(text: str) -> None:
    search = compile_regex("a*a*b", "")
    assert search is not None
    with pytest.raises(Undecided):
        search(text)
