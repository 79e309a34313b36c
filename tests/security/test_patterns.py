"""Sets of names by patterns: what is in them, and that one meaning has one form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.security.visibility import EVERYTHING, NOTHING, PatternSet

PATTERNS = st.sets(st.sampled_from(["*", "a*", "ab*", "abc*", "b*", "a", "ab", "abc", "b", "c"]), max_size=4)
NAMES = ("a", "ab", "abc", "abcd", "b", "ba", "c", "d")


def means(allowed: set[str], denied: set[str]) -> set[str]:
    """By the book: name by name, pattern by pattern."""

    def covers(pattern: str, name: str) -> bool:
        return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern

    return {
        name
        for name in NAMES
        if any(covers(each, name) for each in allowed) and not any(covers(each, name) for each in denied)
    }


@given(PATTERNS, PATTERNS)
@settings(max_examples=60)
def test_a_scope_holds_what_is_allowed_and_not_denied(allowed: set[str], denied: set[str]) -> None:
    scope = PatternSet.of(allowed, denied)
    assert {name for name in NAMES if name in scope} == means(allowed, denied)


@given(PATTERNS, PATTERNS, PATTERNS, PATTERNS)
@settings(max_examples=60)
def test_two_scopes_meet_in_what_both_hold(a: set[str], b: set[str], c: set[str], d: set[str]) -> None:
    met = PatternSet.of(a, b).met(PatternSet.of(c, d))
    assert {name for name in NAMES if name in met} == means(a, b) & means(c, d)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (PatternSet.of(["*", "a"]), EVERYTHING),
        (PatternSet.of(["a*", "ab", "ab*"]), PatternSet.of(["a*"])),
        (PatternSet.of(["*"], ["*"]), NOTHING),
        (PatternSet.of(["ab"], ["a*"]), NOTHING),
        (PatternSet.of(["a*"], ["b", "ab"]), PatternSet.of(["a*"], ["ab"])),
        (PatternSet.of(["b", "a"]), PatternSet.of(["a", "b"])),
    ],
)
def test_one_meaning_has_one_form(one: PatternSet, two: PatternSet) -> None:
    assert one == two
    assert hash(one) == hash(two)
