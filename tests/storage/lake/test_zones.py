"""Zones: whatever is split and merged, they tile, every quad lies in one, and no answer is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.storage.lake.layouts import ORDERS, QUADS, STEPS, Step, after, mergeable, taken
from tests.storage.lake.terms import Quad, place, typed
from triplewire.model.errors import InputError
from triplewire.storage.lake.keys import term_key
from triplewire.storage.lake.zones import LAYOUT_SCHEMA, SPACE, KeyBox, KeyInterval, TreeCut, Zone, ZoneLayout


@given(STEPS, QUADS, ORDERS)
@settings(max_examples=150, deadline=None)
def test_every_quad_lies_in_one_zone_and_is_found_there(steps: list[Step], quads: list[Quad], order: str) -> None:
    found = after(steps, order)
    for quad in quads:
        placed = found.placed(place(quad))
        assert [zone.id for zone in found.zones if placed in zone.box] == [found.locate(placed)]


@given(STEPS, ORDERS)
@settings(max_examples=80, deadline=None)
def test_a_map_comes_back_from_its_table(steps: list[Step], order: str) -> None:
    found = after(steps, order)
    table = found.to_table()
    assert table.schema == LAYOUT_SCHEMA
    back = ZoneLayout.from_table(table.take([*reversed(range(table.num_rows))]))
    assert set(back.zones) == set(found.zones)
    assert back.order == order


@given(STEPS)
@settings(max_examples=80, deadline=None)
def test_no_id_is_given_twice(steps: list[Step]) -> None:
    found, seen = ZoneLayout(), {"z0"}
    for step in steps:
        following = taken(ZoneLayout.from_table(found.to_table()), step)
        made = {zone.id for zone in following.zones} - {zone.id for zone in found.zones}
        assert not made & seen
        seen |= made
        found = following


def test_zones_are_merged_only_to_a_box() -> None:
    found = ZoneLayout().split("z0", "predicate", "<p>").split("z2", "object", "<o>")
    assert mergeable(found) == [("z3", "z4")]
    with pytest.raises(ValueError, match="z1 and z3 do not make a box"):
        found.merge("z1", "z3")
    assert found.merge("z4", "z3")["z5"].turn == "object"
    assert [zone.turn for zone in found.zones] == ["object", "graph", "graph"]


def box(subject: tuple[str, str | None], predicate: tuple[str, str | None]) -> KeyBox:
    return KeyBox(subject=KeyInterval(*subject), predicate=KeyInterval(*predicate))


WHEEL = (
    box(("", "b"), ("", "c")),
    box(("b", None), ("", "b")),
    box(("c", None), ("b", None)),
    box(("", "c"), ("c", None)),
    box(("b", "c"), ("b", "c")),
)
"""No cut parts these without going through one of them."""


def test_a_wheel_of_zones_is_a_map_too() -> None:
    found = ZoneLayout(tuple(Zone(f"z{number}", each) for number, each in enumerate(WHEEL)))
    assert isinstance(found.tree, TreeCut)
    for subject in "abcd":
        for predicate in "abcd":
            at = found.locate(("g", subject, predicate, "o"))
            assert ("g", subject, predicate, "o") in found[at].box


@pytest.mark.parametrize(
    "boxes", [WHEEL[:4], (*WHEEL, WHEEL[4]), WHEEL[1:], (SPACE, WHEEL[0]), (box(("", "b"), ("", None)),), ()]
)
def test_zones_that_do_not_tile_are_no_map(boxes: tuple[KeyBox, ...]) -> None:
    found = ZoneLayout(tuple(Zone(f"z{number}", each) for number, each in enumerate(boxes)))
    with pytest.raises(ValueError, match="does not tile"):
        found.locate(("", "", "", ""))
    with pytest.raises(ValueError, match="does not tile" if boxes else "not enough values"):
        ZoneLayout.from_table(found.to_table())


def test_a_transformation_says_what_it_costs() -> None:
    assert "touches every zone" in ZoneLayout(order="prefix").transformation.costs
    with pytest.raises(InputError, match="no transformation 'rot13'; there are none, prefix, reversed"):
        ZoneLayout(order="rot13")


def test_a_transformation_places_terms_by_what_it_leaves_of_them() -> None:
    halves = ZoneLayout(order="prefix").split("z0", "predicate", "<m")
    title = place(("<g>", "<s>", "<http://a.org/x#title>", "<o>"))
    assert halves.locate(halves.placed(title)) == "z2"
    aged = ZoneLayout(order="reversed").split("z0", "object", term_key(typed("5", "integer")))
    assert aged.locate(aged.placed(place(("<g>", "<s>", "<p>", typed("10", "integer"))))) == "z2"
