"""Balance: what is wrong with settings is named, and loads are judged as EventCloud judges them."""

from __future__ import annotations

from typing import Any

import pytest

from triplewire.model.errors import InputError
from triplewire.storage.lake.balance import (
    BalanceSettings,
    LoadCriterion,
    ZoneLoad,
    estimate_loads,
    judge_load,
    parse_criteria,
)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"strategy": "magic"}, "no strategy 'magic'; there are static, absolute, relative"),
        ({"cut": "median"}, "no cut rule 'median'; there are middle, centroid, quantile"),
        ({"dimensions": "all"}, "no choice of dimensions 'all'; there are turn, best"),
        ({"transformation": "rot13"}, "no transformation 'rot13'; there are none, prefix, reversed"),
        ({"zones": 0}, "zones=0: there must be at least 1"),
        ({"criteria": ()}, "at least one"),
        ({"criteria": (LoadCriterion(), LoadCriterion())}, "quads, quads: there must be at least one, and each once"),
        ({"strategy": "absolute"}, "absolute strategy needs one over 0 for each of quads"),
        ({"strategy": "absolute", "estimates": (0.0,)}, "needs one over 0"),
        ({"estimates": (5.0,)}, "the relative strategy takes none; absolute does"),
    ],
)
def test_settings_that_make_no_sense_are_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        BalanceSettings(**given)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("quads:0.5:1.5", "K1=0.5 is under K2=1.5 .quads.: .* K1 must be at least K2"),
        ("heat", "no criterion 'heat'; there are quads, bytes, reads"),
        ("quads:1.5", "'quads:1.5' is no criterion"),
        ("quads:much:little", "'quads:much:little' is no criterion"),
        ("quads:0:0", "K1=0.0 must be over 0"),
        ("quads:1:-1", "K2=-1.0 must not be under it"),
    ],
)
def test_criteria_that_make_no_sense_are_told(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        parse_criteria(text)


def test_criteria_as_they_are_written() -> None:
    assert parse_criteria("reads:4:0 quads") == (LoadCriterion("reads", 4, 0), LoadCriterion("quads"))


@pytest.mark.parametrize(
    ("quads", "reads", "state", "by"),
    [
        (125, 0, "overloaded", 0),
        (124, 10, "normal", 0),
        (50, 10, "normal", 0),
        (49, 99, "underloaded", 0),
        (100, 20, "overloaded", 1),
        (100, 0, "normal", 0),
        (200, 20, "overloaded", 0),
    ],
)
def test_loads_are_judged_in_the_order_of_criteria(quads: int, reads: int, state: str, by: int) -> None:
    found = judge_load(ZoneLoad(quads, 0, reads), (100, 10), parse_criteria("quads:1.25:0.5 reads:2:0"))
    assert (found.state, found.criterion) == (state, by)


def test_where_nothing_is_measured_nothing_is_judged() -> None:
    assert judge_load(ZoneLoad(), (0.0,), parse_criteria("reads:2:1")).state == "normal"


def test_estimates() -> None:
    loads, both = [ZoneLoad(300, 900, 9), ZoneLoad(100, 100, 1)], parse_criteria("quads bytes reads")
    assert estimate_loads(loads, BalanceSettings(zones=4, criteria=both, smallest=10)) == (100, 250, 2.5)
    assert estimate_loads(loads, BalanceSettings(zones=4, criteria=both, smallest=150)) == (150, 250, 2.5)
    assert estimate_loads(loads, BalanceSettings("static", 2, both)) == (200, 500, 5)
    assert estimate_loads(loads, BalanceSettings("absolute", 4, both, (7, 8, 9))) == (7, 8, 9)
