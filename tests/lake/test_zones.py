"""Zones: whatever is split and merged, they tile, every quad lies in one, and no answer is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.maps import ORDERS, QUADS, STEPS, Step, after, mergeable, taken
from tests.lake.terms import OBJECTS, Quad, place, typed
from triplewire.errors import InputError
from triplewire.lake.boxes import SPACE, Box, Interval, Region, numbers, terms
from triplewire.lake.keys import DIMENSIONS, key
from triplewire.lake.tilings import Cut
from triplewire.lake.zones import ZONES, Zone, ZoneMap


@given(STEPS, QUADS, ORDERS)
@settings(max_examples=150, deadline=None)
def test_every_quad_lies_in_one_zone_and_is_found_there(steps: list[Step], quads: list[Quad], order: str) -> None:
    found = after(steps, order)
    for quad in quads:
        placed = found.placed(place(quad))
        assert [zone.id for zone in found.zones if placed in zone.box] == [found.locate(placed)]


REGIONS: st.SearchStrategy[Region] = st.dictionaries(
    st.sampled_from(DIMENSIONS),
    st.one_of(
        st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=2).map(lambda each: terms(*each)),
        st.sampled_from([numbers(-1, 9), numbers(100), numbers(), numbers(0, 0)]),
        st.tuples(st.sampled_from(OBJECTS), st.sampled_from(OBJECTS)).map(
            lambda ends: (Interval(*sorted(map(key, ends))),)
        ),
        st.sampled_from([(Interval("<http:", "<http;"),), (Interval(),), (Interval('"a', '"b'), Interval("<"))]),
    ),
    max_size=3,
)


@given(STEPS, QUADS, ORDERS, REGIONS)
@settings(max_examples=300, deadline=None)
def test_what_satisfies_a_region_lies_in_zones_that_it_touches(
    steps: list[Step], quads: list[Quad], order: str, region: Region
) -> None:
    found = after(steps, order)
    touched = {zone.id for zone in found.touched(region)}
    for quad in quads:
        keys = dict(zip(DIMENSIONS, place(quad), strict=True))
        if all(any(keys[name] in each for each in sought) for name, sought in region.items()):
            assert found.locate(found.placed(place(quad))) in touched


@given(STEPS, ORDERS)
@settings(max_examples=80, deadline=None)
def test_a_map_comes_back_from_its_table(steps: list[Step], order: str) -> None:
    found = after(steps, order)
    table = found.to_table()
    assert table.schema == ZONES
    back = ZoneMap.from_table(table.take([*reversed(range(table.num_rows))]))
    assert set(back.zones) == set(found.zones)
    assert back.order == order


@given(STEPS)
@settings(max_examples=80, deadline=None)
def test_no_id_is_given_twice(steps: list[Step]) -> None:
    found, seen = ZoneMap(), {"z0"}
    for step in steps:
        following = taken(ZoneMap.from_table(found.to_table()), step)
        made = {zone.id for zone in following.zones} - {zone.id for zone in found.zones}
        assert not made & seen
        seen |= made
        found = following


def test_zones_are_merged_only_to_a_box() -> None:
    found = ZoneMap().split("z0", "predicate", "<p>").split("z2", "object", "<o>")
    assert mergeable(found) == [("z3", "z4")]
    with pytest.raises(ValueError, match="z1 and z3 do not make a box"):
        found.merge("z1", "z3")
    assert found.merge("z4", "z3")["z5"].turn == "object"
    assert [zone.turn for zone in found.zones] == ["object", "graph", "graph"]


def box(subject: tuple[str, str | None], predicate: tuple[str, str | None]) -> Box:
    return Box(subject=Interval(*subject), predicate=Interval(*predicate))


WHEEL = (
    box(("", "b"), ("", "c")),
    box(("b", None), ("", "b")),
    box(("c", None), ("b", None)),
    box(("", "c"), ("c", None)),
    box(("b", "c"), ("b", "c")),
)
"""No cut parts these without going through one of them."""


def test_a_wheel_of_zones_is_a_map_too() -> None:
    found = ZoneMap(tuple(Zone(f"z{number}", each) for number, each in enumerate(WHEEL)))
    assert isinstance(found.tree, Cut)
    for subject in "abcd":
        for predicate in "abcd":
            at = found.locate(("g", subject, predicate, "o"))
            assert ("g", subject, predicate, "o") in found[at].box


@pytest.mark.parametrize(
    "boxes", [WHEEL[:4], (*WHEEL, WHEEL[4]), WHEEL[1:], (SPACE, WHEEL[0]), (box(("", "b"), ("", None)),), ()]
)
def test_zones_that_do_not_tile_are_no_map(boxes: tuple[Box, ...]) -> None:
    found = ZoneMap(tuple(Zone(f"z{number}", each) for number, each in enumerate(boxes)))
    with pytest.raises(ValueError, match="does not tile"):
        found.locate(("", "", "", ""))
    with pytest.raises(ValueError, match="does not tile" if boxes else "not enough values"):
        ZoneMap.from_table(found.to_table())


def test_a_transformation_says_what_it_costs() -> None:
    halves = {order: ZoneMap(order=order).split("z0", "predicate", "<m") for order in ("none", "prefix", "reversed")}
    prefix = {"predicate": (Interval("<http://a.org/", "<http://a.org0"),)}
    assert {order: len(each.touched(prefix)) for order, each in halves.items()} == {
        "none": 1,
        "prefix": 2,
        "reversed": 2,
    }
    title = {"predicate": terms("<http://a.org/x#title>")}
    assert [zone.id for zone in halves["prefix"].touched(title)] == ["z2"]
    aged = ZoneMap(order="reversed").split("z0", "object", key(typed("5", "integer")))
    assert [zone.id for zone in aged.touched({"object": numbers(6, 9)})] == ["z2"]
    assert "touches every zone" in halves["prefix"].transformation.costs
    with pytest.raises(InputError, match="no transformation 'rot13'; there are none, prefix, reversed"):
        ZoneMap(order="rot13")
