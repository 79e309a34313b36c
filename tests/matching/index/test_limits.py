"""What is too much for the index: it hands it on, and both tiers together say what the evaluator says."""

from __future__ import annotations

import pytest

from tests.matching.index.test_matcher import expanded
from tests.matching.subscriptions import registered
from tests.matching.test_evaluator import entries
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.index.groups import compile_matching, warm_up
from triplewire.matching.index.kernel import match_events
from triplewire.matching.matcher import Matcher
from triplewire.matching.plans import SOLUTIONS
from triplewire.model import Event, Kind, LimitReached

CROSS = "SELECT * { ?a ?p ?b . ?c ?q ?d }"
JOINED = "SELECT * { ?a <urn:p> ?b . ?b <urn:p> ?c }"
EACH = "SELECT * { ?s <urn:p> ?o }"


def event(quads: int) -> Event:
    return Event("urn:e", "\n".join(f"<urn:{number}>\t<urn:p>\t<urn:{number + 1}>" for number in range(quads)))


@pytest.mark.parametrize("sparql", [CROSS, JOINED, EACH])
@pytest.mark.parametrize("quads", [3, 90, 2_000, SOLUTIONS, SOLUTIONS + 1])
def test_both_tiers_say_what_the_evaluator_says(sparql: str, quads: int) -> None:
    changes = [*registered(1, sparql), *registered(2, sparql, Kind.SIGNAL), *registered(3, sparql)]
    batch = entries({5: event(2), 6: event(quads), 7: event(2)})
    evaluator, matcher = Evaluator(), Matcher.from_changes(changes)
    evaluator.apply(changes, 10)
    slow, fast = evaluator.match(batch), matcher.match(batch)
    assert expanded(fast, batch, changes) == expanded(slow, batch, changes)
    reached = [
        {(row["position"], row["subscription"]) for row in each.to_pylist() if row["limit"]} for each in (slow, fast)
    ]
    many = {CROSS: quads**2, JOINED: quads - 1, EACH: quads}[sparql] > SOLUTIONS
    assert reached == [{(6, 1), (6, 3)} if many else set()] * 2
    assert {row["limit"] for row in fast.to_pylist()} <= {None, LimitReached.SOLUTIONS}


def test_a_join_within_a_very_large_event_is_left_to_who_is_better_at_it() -> None:
    """Tried quad by quad it would be looked at a billion times."""
    changes = registered(1, "ASK { ?a <urn:p> ?b . ?b <urn:p> ?c . ?c <urn:none> ?d }")
    matcher = Matcher.from_changes([*changes, *registered(2, JOINED, Kind.SIGNAL)])
    found = matcher.match(entries({6: event(30_000)}))
    assert [row["position"] for row in found.to_pylist()] == [6]


def test_code_that_is_compiled_ahead_is_the_code_that_matches() -> None:
    compile_matching()
    warm_up()
    assert len(match_events.signatures) == 1  # type: ignore[attr-defined]
