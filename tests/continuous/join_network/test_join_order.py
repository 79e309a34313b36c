"""Rates: the rare first, connected where that can be, and decided again when it is worth it."""

from __future__ import annotations

from triplewire.continuous.join_network.join_order import COUNTED_TRIPLES, ArrivalRates
from triplewire.sparql import Const, Param, Pattern, Var

SEEN = Pattern(Var("s"), Const("<urn:seen>"), Var("car"))
OWNED = Pattern(Var("car"), Const("<urn:owner>"), Var("who"))
NAMED = Pattern(Var("who"), Const("<urn:name>"), Param(0))


def test_a_constant_comes_first_as_long_as_nobody_has_counted() -> None:
    assert ArrivalRates().order("k", 0, (SEEN, OWNED, NAMED)) == [2, 1, 0]


def test_what_comes_rarely_is_first_and_the_others_are_connected_to_it() -> None:
    rates = ArrivalRates()
    rates.count({"<urn:seen>": 10_000, "<urn:owner>": 3, "<urn:name>": 50})

    assert rates.order("k", 0, (SEEN, OWNED)) == [1, 0]
    assert ArrivalRates().order("k", 0, (SEEN, NAMED, OWNED)) == [1, 2, 0]


def test_an_order_holds_until_it_is_decided_again() -> None:
    rates = ArrivalRates()
    rates.count({"<urn:seen>": 10, "<urn:owner>": 1_000})
    assert rates.order("k", rates.origin("k"), (SEEN, OWNED)) == [0, 1]
    rates.count({"<urn:seen>": 100_000})

    assert rates.order("k", rates.origin("k"), (SEEN, OWNED)) == [0, 1]
    assert rates.regret("k", (SEEN, OWNED)) > 50
    rates.decide("k", 77)
    assert rates.order("k", rates.origin("k"), (SEEN, OWNED)) == [1, 0]
    assert rates.regret("k", (SEEN, OWNED)) == 1


def test_what_was_counted_long_ago_counts_less() -> None:
    rates = ArrivalRates()
    rates.count({"<urn:seen>": COUNTED_TRIPLES})
    for _ in range(20):
        rates.count({"<urn:owner>": COUNTED_TRIPLES // 2})

    assert rates.rate(SEEN) < rates.rate(OWNED) / 100


def test_decisions_are_the_same_after_a_restart() -> None:
    rates = ArrivalRates()
    rates.count({"<urn:seen>": 3})
    rates.order("k", 0, (SEEN, OWNED))
    rates.decide("k", 9)
    rates.heavy.add(2**63 + 1)

    assert ArrivalRates.from_value(rates.to_value()) == rates
