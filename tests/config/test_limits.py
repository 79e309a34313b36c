"""Limits are positive, each has its reason beside it, and no two have one name."""

from __future__ import annotations

from collections import Counter

from tests.limits import find_limits

LIMITS = find_limits()


def test_every_limit_has_a_reason() -> None:
    assert LIMITS
    assert [each.name for each in LIMITS if not each.reason] == []


def test_numbers_are_positive() -> None:
    assert [each.name for each in LIMITS if isinstance(each.value, int | float) and each.value <= 0] == []


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(each.name for each in LIMITS).items() if count > 1] == []
