"""Boxes: half open, cut and joined without loss."""

from __future__ import annotations

import pytest

from triplewire.storage.lake.zones import SPACE, KeyInterval


def test_an_interval_has_its_least_and_not_its_end() -> None:
    side = KeyInterval("b", "d")
    assert [each in side for each in ("a", "b", "c", "d")] == [False, True, True, False]
    assert [side.meets(KeyInterval(*each)) for each in (("a", "b"), ("d", None), ("c", "c\0"), ("", None))] == [
        False,
        False,
        True,
        True,
    ]


def test_both_parts_of_a_cut_have_something() -> None:
    for bound in ("b", "a", "d", ""):
        with pytest.raises(ValueError, match="is not inside"):
            KeyInterval("b", "d").cut(bound)
    assert KeyInterval("b", "d").cut("c") == (KeyInterval("b", "c"), KeyInterval("c", "d"))


def test_what_was_cut_can_be_joined_and_nothing_else() -> None:
    low, high = SPACE.cut("predicate", "<p>")
    assert (low.joined(high), high.joined(low)) == ((SPACE, "predicate"), (SPACE, "predicate"))
    left, right = low.cut("object", "<o>")
    assert left.joined(high) is None
    assert left.joined(left) is None
    assert right.cut("object", "<p>")[1].joined(left) is None
