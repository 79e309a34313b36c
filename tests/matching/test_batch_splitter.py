"""What is too much for one subscription on one event: it is told so, and nobody else notices."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.matching.subscriptions import registered
from tests.matching.test_evaluator import entries
from triplewire.matching.evaluator import BudgetExhausted, CpuBudget, Evaluator
from triplewire.matching.plans import SOLUTIONS
from triplewire.model import Event, Kind, LimitReached

CROSS = "SELECT * { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }"
WHOLE = "SELECT * { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f OPTIONAL { ?a <urn:none> ?n } }"
NEVER = "ASK { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f FILTER(STR(?b) = CONCAT(STR(?d), STR(?f))) }"
SIMPLE = "SELECT ?o { <urn:s7> <urn:p> ?o }"

SMALL = Event("urn:small", "<urn:s7>\t<urn:p>\t<urn:o7>")
LARGE = Event("urn:large", "\n".join(f"<urn:s{number}>\t<urn:p>\t<urn:o{number}>" for number in range(5_000)))
SHORT = CpuBudget(batch=1.0, pair=0.2)


def matched(asked: dict[int, tuple[str, Kind]], events: dict[int, Event]) -> list[dict[str, object]]:
    evaluator = Evaluator(_budget=SHORT)
    changes = [change for at, (sparql, kind) in asked.items() for change in registered(at, sparql, kind)]
    evaluator.apply(changes, 1_000_000)
    found: pa.Table = evaluator.match(entries(events))
    columns = ("position", "subscription", "limit", "solutions")
    return [{name: row[name] for name in columns} for row in found.to_pylist()]


def limited(rows: list[dict[str, object]]) -> dict[tuple[object, object], object]:
    return {(row["position"], row["subscription"]): row["limit"] for row in rows}


@pytest.mark.parametrize(
    ("sparql", "reached"),
    # The solutions of a whole query are told apart before they can be counted.
    [(CROSS, LimitReached.SOLUTIONS), (WHOLE, LimitReached.WORK)],
    ids=["conjunction", "whole"],
)
def test_a_cross_product_within_a_large_event_ends_in_a_match_that_says_so(sparql: str, reached: LimitReached) -> None:
    rows = matched({1: (sparql, Kind.BINDINGS)}, {5: SMALL, 6: LARGE, 7: SMALL})
    assert limited(rows) == {(5, 1): None, (6, 1): reached, (7, 1): None}
    assert [row["solutions"] for row in rows if row["limit"]] == [None]


def test_others_are_answered_as_if_it_were_not_there() -> None:
    events = {at: LARGE if at == 9 else SMALL for at in range(5, 14)}
    simple = {2: (SIMPLE, Kind.BINDINGS), 3: (SIMPLE, Kind.SIGNAL)}
    alone = matched(simple, events)
    together = matched({1: (CROSS, Kind.BINDINGS), 4: (NEVER, Kind.SIGNAL), **simple}, events)
    assert [row for row in together if row["subscription"] in simple] == alone
    assert len(alone) == 2 * len(events)


def test_a_signal_is_decided_by_the_first_solution() -> None:
    assert limited(matched({1: (CROSS, Kind.SIGNAL), 2: (WHOLE, Kind.EVENT)}, {6: LARGE})) == {
        (6, 1): None,
        (6, 2): None,
    }


def test_what_is_not_decided_in_time_says_so() -> None:
    assert limited(matched({1: (NEVER, Kind.SIGNAL)}, {6: LARGE, 7: SMALL})) == {(6, 1): LimitReached.WORK}


def test_of_one_shape_only_those_who_ask_too_much_are_told() -> None:
    narrow = "SELECT * { <urn:s1> ?p ?b . ?c ?q <urn:o1> . <urn:s1> <urn:p> ?f }"
    asked = "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d FILTER(?b = %s) }"
    rows = matched(
        {1: (asked % "<urn:o1>", Kind.BINDINGS), 2: (asked % "<urn:o2>", Kind.BINDINGS), 3: (narrow, Kind.BINDINGS)},
        {6: LARGE},
    )
    assert limited(rows) == {(6, 1): None, (6, 2): None, (6, 3): None}
    assert [len(row["solutions"]) for row in rows] == [10_000, 10_000, 3]  # type: ignore[arg-type]


def test_as_many_solutions_as_are_allowed_are_told() -> None:
    quads = [f"<urn:s{number}>\t<urn:p>\t<urn:o>" for number in range(SOLUTIONS + 1)]
    most, more = (Event("urn:e", "\n".join(quads[:count])) for count in (SOLUTIONS, SOLUTIONS + 1))
    rows = matched({1: ("SELECT * { ?s <urn:p> ?o }", Kind.BINDINGS)}, {5: most, 6: more})
    assert limited(rows) == {(5, 1): None, (6, 1): LimitReached.SOLUTIONS}


def test_subscriptions_that_ask_the_same_are_all_told() -> None:
    asked = dict.fromkeys(range(1, 5), (CROSS, Kind.BINDINGS))
    assert limited(matched(asked, {6: LARGE})) == {(6, number): LimitReached.SOLUTIONS for number in asked}


def test_an_event_is_weighed_by_parts_that_the_query_leaves_out() -> None:
    """Nothing is shared, so that nothing is taken away and no predicate is read; but the patterns are there."""
    product = " . ".join(f"?s{number} <urn:p> ?o{number}" for number in range(3))
    asked = f"SELECT (1 AS ?one) {{ MINUS {{ {product} }} }}"
    assert limited(matched({1: (asked, Kind.BINDINGS)}, {5: SMALL, 6: LARGE})) == {(5, 1): None, (6, 1): None}


def test_a_shape_that_takes_too_much_in_all_is_given_up_where_that_is_bounded() -> None:
    large = Event("urn:large", "\n".join(f"<urn:s{number}>\t<urn:p>\t<urn:o{number}>" for number in range(120)))
    evaluator = Evaluator(_budget=CpuBudget(batch=0.05, pair=0.05, total=0.05))
    changes = [change for at, asked in ((1, NEVER), (2, SIMPLE)) for change in registered(at, asked, Kind.SIGNAL)]
    evaluator.apply(changes, 1_000_000)
    with pytest.raises(BudgetExhausted) as caught:
        evaluator.match(entries(dict.fromkeys(range(5, 45), large)))
    assert caught.value.shape == changes[0].key
    assert evaluator.match(entries({5: SMALL}), [changes[2].key]).num_rows == 1
