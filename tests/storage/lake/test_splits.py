"""Cuts: means in the radix of code points, shortest separators, and whole shares of a sample."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.storage.lake.keys import QuadPoint
from triplewire.storage.lake.splits import (
    DIMENSION_CHOICES,
    RADIX,
    RULES,
    SplitRequest,
    interval_middle,
    separator,
    weigh_samples,
    weighted_mean,
)
from triplewire.storage.lake.zones import ALL_KEYS, KeyInterval, ZoneLayout

TEXTS = st.text(st.sampled_from("\x01ab~\ud7ff\ue000\uffff\U0010fffe"), max_size=4)
WHOLE = ZoneLayout().zones[0]


def value(text: str) -> Fraction:
    return sum((Fraction(ord(each), RADIX**place) for place, each in enumerate(text, 1)), Fraction())


@pytest.mark.parametrize(
    ("least", "below", "found"),
    [("a", "c", "b"), ("", None, "\U00087fff"), ("aa", "ab", "aa\U00088000"), ("a", "d", "b\U00088000")],
)
def test_the_middle_is_a_mean_in_radix_1114112(least: str, below: str | None, found: str) -> None:
    assert (interval_middle(KeyInterval(least, below), ALL_KEYS) or "")[: len(found)] == found


def test_the_space_may_be_narrower_than_unicode() -> None:
    assert interval_middle(ALL_KEYS, KeyInterval(" ", "~")) == "O"
    assert interval_middle(KeyInterval("O"), KeyInterval(" ", "~")) == "f\U00088000"
    assert interval_middle(KeyInterval("あ"), KeyInterval(" ", "~")) is not None, (
        "what lies outside of it is cut all the same"
    )


@given(TEXTS, TEXTS)
@settings(max_examples=200, deadline=None)
def test_a_middle_is_inside_and_near_the_mean(one: str, other: str) -> None:
    least, below = sorted([one, other])
    found = interval_middle(KeyInterval(least, below), ALL_KEYS)
    if found is not None:
        assert least < found < below
        assert "\0" not in found
        assert not any(0xD800 <= ord(each) < 0xE000 for each in found)
        assert abs(value(found) - (value(least) + value(below)) / 2) <= Fraction(0x801, RADIX)


@given(st.lists(TEXTS, min_size=2, max_size=6))
@settings(max_examples=100, deadline=None)
def test_a_centroid_is_near_the_mean_of_keys(keys: list[str]) -> None:
    found = weighted_mean(keys, [1.0] * len(keys), ALL_KEYS)
    if found is not None:
        assert abs(value(found) - sum(map(value, keys), Fraction()) / len(keys)) <= Fraction(0x801, RADIX)


def test_weights_count_in_a_mean() -> None:
    assert weighted_mean(["a", "e"], [3.0, 1.0], ALL_KEYS) == "b"


@given(TEXTS, TEXTS)
@settings(max_examples=100, deadline=None)
def test_a_separator_is_the_shortest(one: str, other: str) -> None:
    under, over = sorted([one, other])
    if under < over:
        found = separator(under, over)
        assert under < found <= over
        assert not any(under < found[:length] for length in range(len(found)))


def points(*columns: str) -> list[QuadPoint]:
    """From the letters of each column, one for each point."""
    return [tuple(each) for each in zip(*columns, strict=True)]


def wish(sample: list[QuadPoint], parts: int = 2) -> SplitRequest:
    _, everything = weigh_samples({"z0": sample}, {"z0": len(sample)})
    return SplitRequest(WHOLE, everything, everything, parts)


def bounds(sample: list[QuadPoint], dimension: str, parts: int) -> set[str]:
    return {*RULES["quantile"](wish(sample, parts), dimension)}


def test_a_quantile_leaves_whole_zones_on_both_sides() -> None:
    sample = points("g" * 6, "abcdef", "aaaabc", "o" * 6)
    assert bounds(sample, "graph", 6) == set(), "what is all the same is not cut"
    assert "d" in bounds(sample, "subject", 2)
    assert bounds(sample, "predicate", 3) == {"b"}


@pytest.mark.parametrize(
    ("sample", "parts", "found"),
    [
        (points("abcdef", "abcdef", "aaabbb", "o" * 6), 2, ("predicate", "b")),
        (points("abcdef", "abcccc", "aaabbb", "o" * 6), 2, ("predicate", "b")),
        (points("abcdef", "abcdef", "aabbbb", "o" * 6), 2, ("subject", "d")),
        (points("abcdef", "o" * 6, "aabbbb", "o" * 6), 3, ("predicate", "b")),
        (points("g" * 6, "o" * 6, "abbbbb", "o" * 6), 2, ("predicate", "b")),
        (points("g" * 6, "o" * 6, "bbbbbb", "o" * 6), 2, None),
    ],
)
def test_the_best_cut_is_even_and_then_saves_reading(
    sample: list[QuadPoint], parts: int, found: tuple[str, str] | None
) -> None:
    best = DIMENSION_CHOICES["best"](wish(sample, parts), RULES["quantile"])
    assert (best and (best.dimension, best.bound)) == found


def test_in_turn_the_next_dimension_that_can_be_cut() -> None:
    zones = ZoneLayout().split("z0", "graph", "m")
    _, sample = weigh_samples({"z1": points("aaaa", "ssss", "abcd", "abcd")}, {"z1": 4})
    found = DIMENSION_CHOICES["turn"](SplitRequest(zones.zones[0], sample, sample), RULES["quantile"])
    assert found is not None
    assert (zones.zones[0].turn, found.dimension) == ("subject", "predicate")
