"""Plans: they end, never cut a single point, and make loads even."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.lake.layouts import QUADS, STEPS, Step, after
from tests.storage.lake.terms import Quad, place
from triplewire.storage.lake.balance import STRATEGIES, BalanceSettings, LoadCriterion, ZoneLoad, parse_criteria
from triplewire.storage.lake.keys import QuadPoint
from triplewire.storage.lake.rebalancing import MergeZones, RebalancePlan, SplitZone, plan_rebalance
from triplewire.storage.lake.splits import DIMENSION_CHOICES, RULES
from triplewire.storage.lake.zones import ZoneLayout

EVEN: list[QuadPoint] = [(f"<g{n:03}>", f"<s{n % 40:02}>", f"<p{n % 8}>", f"<o{n * 7 % 97:02}>") for n in range(800)]


def spread(zones: ZoneLayout, points: list[QuadPoint]) -> dict[str, list[QuadPoint]]:
    found: dict[str, list[QuadPoint]] = defaultdict(list)
    for each in points:
        found[zones.locate(zones.placed(each))].append(zones.placed(each))
    return found


def planned(zones: ZoneLayout, points: list[QuadPoint], balance: BalanceSettings) -> RebalancePlan:
    samples = spread(zones, points)
    return plan_rebalance(zones, {name: ZoneLoad(len(each)) for name, each in samples.items()}, samples, balance)


def deviation(zones: ZoneLayout, points: list[QuadPoint]) -> float:
    sizes = spread(zones, points)
    loads = [len(sizes[zone.id]) for zone in zones.zones]
    return stdev(loads) / mean(loads)


BALANCES = st.builds(
    lambda strategy, zones, bounds, cut, dimensions: BalanceSettings(
        strategy,
        zones,
        (LoadCriterion("quads", *bounds),),
        (4.0,) if strategy == "absolute" else (),
        cut,
        dimensions,
        smallest=1,
    ),
    st.sampled_from([*STRATEGIES]),
    st.sampled_from([1, 2, 5, 9]),
    st.sampled_from([(1.0, 0.0), (1.1, 0.9), (1.5, 0.5), (1.0, 1.0)]),
    st.sampled_from([*RULES]),
    st.sampled_from([*DIMENSION_CHOICES]),
)


@given(STEPS, QUADS, BALANCES)
@settings(max_examples=150, deadline=None)
def test_a_plan_is_its_steps_and_its_moves(steps: list[Step], quads: list[Quad], balance: BalanceSettings) -> None:
    before = after(steps)
    found = planned(before, [place(quad) for quad in quads], balance)
    zones = before
    for step in found.steps:
        zones = step(zones)
    assert zones == found.after
    assert zones.locate(place(quads[0])) in {zone.id for zone in zones.zones}
    assert len(zones.zones) <= max(balance.zones, len(before.zones))
    gone = [zone for move in found.moves for zone in move.gone]
    made = [zone for move in found.moves for zone in move.made]
    assert {*before.zones} - {*gone} | {*made} == {*zones.zones}
    assert len({*gone}) == len(gone)
    assert len({*made}) == len(made)
    for move in found.moves:
        for quad in quads:
            assert any(place(quad) in zone.box for zone in move.gone) == any(
                place(quad) in zone.box for zone in move.made
            )


@given(BALANCES, st.sampled_from([0, 1, 50]))
@settings(max_examples=60, deadline=None)
def test_a_single_point_is_never_cut(balance: BalanceSettings, count: int) -> None:
    assert planned(ZoneLayout(), EVEN[:1] * count, balance).steps == ()
    assert plan_rebalance(ZoneLayout(), {"z0": ZoneLoad(1_000)}, {}, balance).steps == ()


@pytest.mark.parametrize("order", ["none", "prefix", "reversed"])
@pytest.mark.parametrize("count", [2, 7, 8])
def test_static_zones_are_even(count: int, order: str) -> None:
    balance = BalanceSettings("static", count, parse_criteria("quads:1:0"), smallest=1)
    found = planned(ZoneLayout(order=order), EVEN, balance).after
    assert len(found.zones) == count
    assert deviation(found, EVEN) < 0.05


def test_absolute_zones_hold_less_than_the_estimate() -> None:
    found = planned(
        ZoneLayout(), EVEN, BalanceSettings("absolute", 64, (LoadCriterion("quads", 1, 0),), (100,), smallest=1)
    ).after
    assert max(map(len, spread(found, EVEN).values())) < 100
    again = planned(found, EVEN, BalanceSettings("absolute", 64, (LoadCriterion("quads", 1, 0),), (100,), smallest=1))
    assert again.steps == ()


def test_relative_zones_follow_what_comes() -> None:
    balance = BalanceSettings(zones=8, criteria=parse_criteria("quads:1.2:0.8"), smallest=1)
    zones = ZoneLayout()
    for end in range(50, 801, 50):
        zones = planned(zones, EVEN[:end], balance).after
    assert len(zones.zones) == 8
    assert deviation(zones, EVEN) < 0.2
    assert planned(zones, EVEN, balance).steps == (), "what is normal stays as it is"


def test_zones_that_became_small_are_merged() -> None:
    balance = BalanceSettings(zones=8, criteria=parse_criteria("quads:1.5:0.5"), smallest=1)
    zones = planned(ZoneLayout(), EVEN, balance).after
    rest = [each for each in EVEN if each[2] == "<p0>"]
    found = planned(zones, rest, BalanceSettings(zones=8, criteria=parse_criteria("quads:1.5:0.5"), smallest=50))
    assert len(found.after.zones) < len(zones.zones)
    assert any(isinstance(step, MergeZones) for step in found.steps)


def test_without_k2_nothing_is_merged() -> None:
    balance = BalanceSettings(zones=4, criteria=parse_criteria("quads:1.1:0"), smallest=1)
    zones = planned(ZoneLayout(), EVEN[:100], balance).after
    for end in (200, 400, 800):
        found = planned(zones, EVEN[:end], balance)
        assert all(isinstance(step, SplitZone) for step in found.steps)
        zones = found.after


def test_what_is_read_most_is_split_first() -> None:
    balance = BalanceSettings(zones=3, criteria=parse_criteria("reads:1.5:0 quads:1.5:0"), smallest=1)
    zones = ZoneLayout().split("z0", "predicate", "<p4>")
    samples = spread(zones, EVEN)
    found = plan_rebalance(zones, {"z1": ZoneLoad(400, 0, 90), "z2": ZoneLoad(400, 0, 1)}, samples, balance)
    assert [step.zone for step in found.steps if isinstance(step, SplitZone)] == ["z1"]


def test_small_zones_are_left_alone() -> None:
    assert planned(ZoneLayout(), EVEN, BalanceSettings()).steps == ()
