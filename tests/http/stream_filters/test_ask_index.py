"""Queries of sieves: held against an engine that we did not write, asked once however many ask them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import generated, oracle
from tests.http.stream_filters.entries import entries
from triplewire.http.stream_filters.evaluator import FILTER_CPU_SECONDS, FILTER_EVENT_SECONDS, AskIndex, AskMatcher
from triplewire.http.stream_filters.parameters import AskFilter, parse_stream_filter
from triplewire.matching.evaluator import BudgetExhausted
from triplewire.model import MATCHES, Event
from triplewire.storage.registry.ports import RegistryChange

pytestmark = pytest.mark.usefixtures("compiled")

CROSS = "ASK { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f FILTER(STR(?b) = CONCAT(STR(?d), STR(?f))) }"


@pytest.fixture(scope="module")
def index() -> Iterator[AskIndex]:
    """One for all tests: queries come and go."""
    made = AskIndex()
    yield made
    made.close()


def ask(text: str) -> AskFilter:
    sieve = parse_stream_filter([("ask", text)])
    assert sieve is not None
    return sieve.asks[0]


def texts(seed: int) -> list[str]:
    made = [generated.sparql(Random(f"{seed} {number}")) for number in range(8)]
    return ["ASK " + text[text.index("{") :] for text in made]


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_events_pass_where_the_query_has_a_solution(index: AskIndex, seed: int) -> None:
    events = [generated.event(Random(f"{seed} {number}"), number) for number in range(24)]
    asks = {text: ask(text) for text in texts(seed)}
    found = index.evaluate(entries(events), asks.values(), ()).passed
    for text, each in asks.items():
        wanted = [oracle.matches(event, "SELECT *" + text.removeprefix("ASK")) for event in events]
        assert found[each].tolist() == wanted, text


def test_the_past_may_be_asked_after_the_present(index: AskIndex) -> None:
    asked, events = ask(f"ASK {{ ?s <{generated.EX}value> ?v }}"), [_told(1), _told(None), _told(2)]
    for first in (1_000_000, 5, 70):
        found = index.evaluate(entries(events, first=first), [asked], ()).passed
        assert found[asked].tolist() == [True, False, True]


def _told(value: int | None) -> Event:
    return Event("urn:e", f'<urn:s>\t<{generated.EX}{"value" if value else "other"}>\t"{value}"')


class Counting:
    """A matcher that says how often it was asked, and of what; it finds nothing, or gives up a shape."""

    def __init__(self, changes: list[RegistryChange], costly: set[str]) -> None:
        self._changes = changes
        self._costly = costly
        self.asked: list[tuple[int, int]] = []
        """Events and subscriptions, each time."""

    def match(self, given: pa.Table) -> pa.Table:
        live: dict[str, str] = {}
        for change in self._changes:
            if change.kind == "subscription" and change.value is None:
                live.pop(change.key)
            elif change.kind == "subscription" and change.value is not None:
                live[change.key] = change.value["shape"]
        self.asked.append((given.num_rows, len(live)))
        for shape in self._costly & {*live.values()}:
            raise BudgetExhausted(shape)
        first = given["position"][0].as_py()
        assert first > max(change.position for change in self._changes)
        return MATCHES.empty_table()

    def spent(self) -> dict[str, float]:
        return {}


def counted(costly: set[str] | None = None, garbage: int = 1_000) -> tuple[AskIndex, list[Counting]]:
    made: list[Counting] = []

    def make(changes: list[RegistryChange]) -> AskMatcher:
        made.append(Counting(changes, costly or set()))
        return made[-1]

    return AskIndex(make, garbage), made


def test_equal_queries_are_one_and_all_are_asked_in_one_go() -> None:
    index, made = counted()
    asks = [ask("ASK { ?s <urn:p> 1 }"), ask("ASK { ?other <urn:p> 1 . }"), ask("ASK { ?s <urn:p> 2 }")]
    index.evaluate(entries([_told(1), _told(2)]), asks, asks)
    assert [each.asked for each in made] == [[(2, 2)]]


def test_queries_that_nobody_holds_are_forgotten() -> None:
    one, other = ask("ASK { ?s <urn:p> 1 }"), ask("ASK { ?s <urn:p> 2 }")
    index, made = counted()
    for known in ([one, other], [one], [other]):
        index.evaluate(entries([_told(1)]), known[:1], known)
    assert made[0].asked == [(1, 2), (1, 1), (1, 1)]


def test_an_index_full_of_what_is_gone_is_begun_anew() -> None:
    index, made = counted(garbage=20)
    kept = ask("ASK { ?s <urn:p> 'kept' }")
    for number in range(20):
        index.evaluate(entries([_told(1)]), [kept, ask(f"ASK {{ ?s <urn:p> {number} }}")], ())
    assert len(made) == 2
    assert made[-1].asked[-1] == (1, 2)
    assert kept in index.evaluate(entries([_told(1)]), [kept], ()).passed


def test_what_takes_too_much_time_is_given_up_and_others_are_answered() -> None:
    costly, cheap = ask("ASK { ?s <urn:costly> ?o }"), ask("ASK { ?s <urn:p> 1 }")
    index, made = counted({costly.shape})
    found = index.evaluate(entries([_told(1)]), [costly, cheap], ())
    assert (*found.passed,) == (cheap,)
    assert index.given_up == {costly}
    assert made[0].asked == [(1, 2), (1, 1)]
    index.evaluate(entries([_told(1)]), [costly, cheap], ())
    assert made[0].asked[2:] == [(1, 1)]


def test_a_query_that_is_too_much_on_one_event_does_not_pass_it(index: AskIndex) -> None:
    large = Event("urn:large", "\n".join(f"<urn:s{number}>\t<urn:p>\t<urn:o{number}>" for number in range(3_000)))
    asked = ask(CROSS)
    found = index.evaluate(entries([_told(1), large]), [asked], ())
    told = (found.passed[asked].tolist(), found.undecided[asked].tolist()) if asked in found.passed else None
    assert told in (None, ([False, False], [False, True]))


@pytest.mark.parametrize("events", [0, 1])
def test_masks_are_as_long_as_the_batch(index: AskIndex, events: int) -> None:
    found = index.evaluate(entries([_told(1)] * events), [asked := ask(f"ASK {{ ?s <{generated.EX}value> ?v }}")], ())
    assert found.passed[asked].tolist() == np.ones(events, bool).tolist()
    assert FILTER_EVENT_SECONDS < FILTER_CPU_SECONDS


def test_an_edge_starts_without_what_only_queries_need(run_python: Callable[[str], str]) -> None:
    said = run_python(
        """
        import sys
        import triplewire.service.edge

        names = "triplewire.http.stream_filters.evaluator", "triplewire.matching.index.kernel"
        print(*(name in sys.modules for name in names))
        """
    )
    assert said.split() == ["True", "False"]
