"""Boxes: half open, cut and joined without loss."""

from __future__ import annotations

import pytest

from tests.lake.terms import typed
from triplewire.lake.boxes import SPACE, Box, Interval, numbers, terms, times
from triplewire.lake.keys import key, point


def test_an_interval_has_its_least_and_not_its_end() -> None:
    side = Interval("b", "d")
    assert [each in side for each in ("a", "b", "c", "d")] == [False, True, True, False]
    assert [side.meets(Interval(*each)) for each in (("a", "b"), ("d", None), ("c", "c\0"), ("", None))] == [
        False,
        False,
        True,
        True,
    ]


def test_both_parts_of_a_cut_have_something() -> None:
    for bound in ("b", "a", "d", ""):
        with pytest.raises(ValueError, match="is not inside"):
            Interval("b", "d").cut(bound)
    assert Interval("b", "d").cut("c") == (Interval("b", "c"), Interval("c", "d"))


def test_what_was_cut_can_be_joined_and_nothing_else() -> None:
    low, high = SPACE.cut("predicate", "<p>")
    assert (low.joined(high), high.joined(low)) == ((SPACE, "predicate"), (SPACE, "predicate"))
    left, right = low.cut("object", "<o>")
    assert left.joined(high) is None
    assert left.joined(left) is None
    assert right.cut("object", "<p>")[1].joined(left) is None


def test_a_region_is_met_where_each_of_its_sides_is() -> None:
    box = Box(predicate=Interval("<p>", "<q>"), object=Interval(key(typed("5", "integer")), key(typed("9", "integer"))))
    assert box.meets({})
    assert box.meets({"predicate": terms("<p>", "<x>"), "object": numbers(9, 12)})
    assert not box.meets({"predicate": terms("<x>")})
    assert not box.meets({"predicate": terms("<p>"), "object": numbers(9.5, 12)})
    assert not box.meets({"object": times(0, 10)})
    assert not box.meets({"object": terms("<p>", '"6"')})


@pytest.mark.parametrize("lexical", ["5", "5.0", "5e0", "05"])
def test_a_range_of_numbers_has_those_at_its_ends_however_written(lexical: str) -> None:
    found = point("<g>", "<s>", "<p>", typed(lexical, "double" if "e" in lexical else "decimal"))[3]
    assert [any(found in each for each in numbers(*ends)) for ends in ((5, 7), (3, 5), (5.1, 7), (3, 4.9))] == [
        True,
        True,
        False,
        False,
    ]
    assert key(typed("NaN", "double")) not in numbers()[0]
    assert key(typed("INF", "double")) in numbers()[0]
