"""The evaluator: a batch of events against all subscriptions, with an independent engine as the judge."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import generated, oracle
from tests.matching.subscriptions import ended, registered
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.shapes import expand_bindings, lift
from triplewire.model import MATCHES, Event, Kind
from triplewire.sparql import parse_query
from triplewire.storage.log.appending import entries_table

EX = generated.EX
READING = Event(
    f"{EX}event/1",
    f'<{EX}o>\t<{EX}by>\t<{EX}a>\n<{EX}o>\t<{EX}value>\t"7.5"^^<http://www.w3.org/2001/XMLSchema#decimal>',
)
ABOVE = f"SELECT ?v {{ ?o <{EX}by> <{EX}a> ; <{EX}value> ?v FILTER(?v > 7) }}"


def entries(events: dict[int, Event], stream: str = "test") -> pa.Table:
    rows = [
        (at, stream, each.id, each.text, None, None, 0, 0, "application/n-quads", None) for at, each in events.items()
    ]
    return entries_table([rows])


NAMED = ["position", "subscription", "solutions", "terms"]


def evaluator(*changes: object, position: int = 1_000_000) -> Evaluator:
    made = Evaluator()
    made.apply(changes, position)  # type: ignore[arg-type]
    return made


def pairs(matches: pa.Table) -> list[tuple[int, int]]:
    return list(zip(matches["position"].to_pylist(), matches["subscription"].to_pylist(), strict=True))


def test_a_match_names_the_quads_that_gave_it() -> None:
    found = evaluator(*registered(1, ABOVE)).match(entries({5: READING}))
    assert found.schema == MATCHES
    assert found.select(NAMED).to_pylist() == [{"position": 5, "subscription": 1, "solutions": [0, 1], "terms": None}]


def test_who_asks_for_no_bindings_gets_no_solutions() -> None:
    found = evaluator(*registered(1, ABOVE, Kind.SIGNAL)).match(entries({5: READING}))
    assert found.select(NAMED).to_pylist() == [{"position": 5, "subscription": 1, "solutions": None, "terms": None}]


def test_a_subscription_sees_what_lies_between_its_making_and_its_end() -> None:
    matching = evaluator(*registered(4, ABOVE), ended(7, 4))
    assert pairs(matching.match(entries(dict.fromkeys((3, 4, 5, 6, 7, 8), READING)))) == [(5, 4), (6, 4)]


def test_a_registry_that_knows_more_gives_the_same_answer() -> None:
    batch = entries({2: READING, 3: READING})
    early = evaluator(*registered(1, ABOVE), position=3)
    late = evaluator(*registered(1, ABOVE), *registered(4, ABOVE), ended(5, 1), position=9)
    assert early.match(batch).equals(late.match(batch))


def test_changes_may_come_between_batches() -> None:
    matching = evaluator(*registered(1, ABOVE), position=2)
    assert pairs(matching.match(entries({2: READING}))) == [(2, 1)]
    matching.apply([*registered(3, ABOVE), ended(5, 1)], 6)
    assert pairs(matching.match(entries({4: READING, 6: READING}))) == [(4, 1), (4, 3), (6, 3)]


def test_what_ended_long_ago_is_forgotten_and_the_rest_stays() -> None:
    matching = evaluator(*registered(1, ABOVE), *registered(2, ABOVE), ended(3, 1))
    matching.forget(before=10)
    assert pairs(matching.match(entries({2: READING, 11: READING}))) == [(11, 2)]


def test_a_subscription_may_be_for_one_stream() -> None:
    matching = evaluator(*registered(1, ABOVE, stream="other"), *registered(2, ABOVE, stream="test"))
    assert pairs(matching.match(entries({5: READING}, stream="test"))) == [(5, 2)]


def test_events_do_not_complete_each_other() -> None:
    halves = {at: Event(f"{EX}event/{at}", line) for at, line in enumerate(READING.text.split("\n"), 5)}
    assert pairs(evaluator(*registered(1, ABOVE)).match(entries(halves))) == []


def test_nothing_comes_of_nothing() -> None:
    assert evaluator().match(entries({5: READING})).num_rows == 0
    assert evaluator(*registered(1, ABOVE)).match(entries({})).num_rows == 0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_it_agrees_with_the_oracle(seed: int) -> None:
    random = Random(seed)
    events = {at: generated.event(random, at) for at in range(100, 112)}
    asked = {position: (generated.sparql(random), random.choice(list(Kind))) for position in range(1, 9)}
    changes = [change for at, (text, kind) in asked.items() for change in registered(at, text, kind)]
    batch = entries(events)
    found = {
        (row["position"], row["subscription"]): row["solutions"] for row in evaluator(*changes).match(batch).to_pylist()
    }
    rows = {row["position"]: row for row in batch.to_pylist()}
    for at, event in events.items():
        for position, (text, kind) in asked.items():
            wanted = oracle.solutions([event], text)
            assert ((at, position) in found) == bool(wanted), (event.text, text)
            if wanted and kind is Kind.BINDINGS:
                lifted = lift(parse_query(text), solutions=True)
                told = expand_bindings(lifted.shape, rows[at], found[at, position])
                assert oracle.bag(told) == wanted, (event.text, text)
