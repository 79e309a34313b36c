"""Sifting: what passes, once for all, and what fails, for nobody else."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from tests.http.harness import run
from tests.http.stream_filters.entries import entries, positions
from tests.http.stream_filters.test_ask_index import Counting, ask, counted
from triplewire.config.metrics import Metrics
from triplewire.http.stream_filters.evaluator import AskIndex, FilterEvaluator
from triplewire.http.stream_filters.parameters import PluginCall, StreamFilter, StreamView
from triplewire.http.stream_filters.plugins import ChangedFilter, PluginFilters
from triplewire.model import MATCHES, Event, EventHeaders
from triplewire.model.errors import BadRequest, Unavailable

pytestmark = pytest.mark.usefixtures("compiled")


class Failing:
    """Raises when it sees the second batch."""

    def __init__(self) -> None:
        self._batches = 0

    def passes(self, batch: pa.Table) -> list[bool]:
        self._batches += 1
        if self._batches == 2:
            raise RuntimeError("as it was told to")
        return [True] * batch.num_rows


FILTERS = PluginFilters({"changed": ChangedFilter, "failing": Failing})
CHANGED = StreamFilter(source=("roof",), plugin=PluginCall("changed", (("property", "urn:p"),)))


def told(value: str, source: str) -> Event:
    return Event("urn:e", f"<urn:s>\t<urn:p>\t<urn:{value}>", EventHeaders(source=source))


EVENTS = [told("x", "roof"), told("y", "cellar"), told("x", "roof"), told("y", "roof")]


def sifting(costly: set[str] | None = None) -> tuple[FilterEvaluator, Metrics]:
    metrics = Metrics()
    return FilterEvaluator(metrics, FILTERS, counted(costly)[0], limit=2), metrics


def count(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, labels) or 0.0


def test_a_filter_sees_what_the_rest_of_the_address_lets_through() -> None:
    sieves, _ = sifting()
    tap, memory = StreamView("test", CHANGED), sieves.make_plugin(CHANGED)
    assert memory is not None
    passed = [sieves.evaluate_now(entries(EVENTS), [tap], {tap: memory}).passed[tap] for _ in range(2)]
    assert [positions(each) for each in passed] == [[1, 4], [1, 4]]
    sieves.close()


def test_streams_of_one_table_are_told_apart() -> None:
    sieves, _ = sifting()
    table = pa.concat_tables([entries(EVENTS, "one"), entries(EVENTS, "two", first=5)])
    roof = StreamFilter(source=("roof",))
    taps = [StreamView("one", roof), StreamView("two", roof), StreamView("two"), StreamView("three", roof)]
    found = sieves.evaluate_now(table, taps, {}).passed
    assert [positions(found[tap]) for tap in taps] == [[1, 3, 4], [5, 7, 8], [5, 6, 7, 8], []]
    sieves.close()


def test_taps_that_let_the_same_through_share_it() -> None:
    sieves, _ = sifting()
    taps = [StreamView("test", StreamFilter(source=(name,))) for name in ("roof", "cellar")]
    taps += [StreamView("test", StreamFilter(source=("roof",), vocabulary=("urn:",))), StreamView("test", CHANGED)]
    found = sieves.evaluate_now(entries(EVENTS), taps, {taps[3]: ChangedFilter("urn:p")}).passed
    assert found[taps[0]] is found[taps[2]]
    assert [positions(found[tap]) for tap in taps] == [[1, 3, 4], [2], [1, 3, 4], [1, 4]]
    sieves.close()


def test_equal_queries_of_different_sieves_are_asked_once() -> None:
    sieves, metrics = sifting()
    one, same = ask("ASK { ?s <urn:p> 1 }"), ask("ASK { ?v <urn:p> 1 }")
    taps = [
        StreamView("test", StreamFilter(asks=(one,))),
        StreamView("test", StreamFilter(source=("roof",), asks=(same,))),
    ]
    sieves.evaluate_now(entries(EVENTS), taps, {})
    assert count(metrics, "triplewire_stream_filter_queries_total") == 1
    sieves.close()


def test_a_filter_that_fails_fails_for_its_listeners_alone() -> None:
    sieves, metrics = sifting()
    failing = StreamFilter(plugin=PluginCall("failing"))
    broken, whole = StreamView("test", failing), StreamView("test", StreamFilter(source=("roof",)))
    memory = sieves.make_plugin(failing)
    assert memory is not None
    for number in range(2):
        found = sieves.evaluate_now(entries(EVENTS), [broken, whole], {broken: memory})
        assert positions(found.passed[whole]) == [1, 3, 4]
        assert [*found.failed] == [broken] * number
    assert found.failed[broken] == "the filter failing failed: it raised RuntimeError"
    assert count(metrics, "triplewire_stream_filters_failed_total", of="filter") == 1
    sieves.close()


def test_a_query_that_takes_too_long_fails_for_its_listeners_alone() -> None:
    costly, cheap = ask("ASK { ?s <urn:costly> ?o }"), ask("ASK { ?s <urn:p> 1 }")
    sieves, metrics = sifting({costly.shape})
    taps = [StreamView("test", StreamFilter(asks=(costly,))), StreamView("test", StreamFilter(asks=(cheap,)))]
    found = sieves.evaluate_now(entries(EVENTS), taps, {})
    assert ([*found.failed], [*found.passed]) == (taps[:1], taps[1:])
    assert "CPU time" in found.failed[taps[0]]
    assert count(metrics, "triplewire_stream_filters_failed_total", of="query") == 1
    sieves.close()


class Doubting(Counting):
    """Says of no event but the second whether it passes: it does not."""

    def match(self, given: pa.Table) -> pa.Table:
        made = [change.position for change in self._changes if change.kind == "subscription"]
        positions = [each for place, each in enumerate(given["position"].to_pylist()) if place != 1]
        rows = [{"position": at, "subscription": since, "limit": "work"} for at in positions for since in made]
        return pa.Table.from_pylist(rows, schema=MATCHES)


def test_what_a_query_does_not_decide_is_told_with_its_position() -> None:
    metrics = Metrics()
    sieves = FilterEvaluator(metrics, FILTERS, AskIndex(lambda changes: Doubting(changes, set())))
    asked = (ask("ASK { ?s <urn:p> 1 }"),)
    taps = [
        StreamView("test", StreamFilter(asks=asked)),
        StreamView("test", StreamFilter(asks=asked, source=("cellar",))),
    ]
    found = sieves.evaluate_now(entries(EVENTS, first=11), taps, {})
    assert [positions(found.passed[tap]) for tap in taps] == [[], []]
    assert found.undecided == {taps[0]: [11, 13, 14]}
    assert count(metrics, "triplewire_stream_filter_undecided_total") == 3
    sieves.close()


def test_equal_sieves_are_one_while_somebody_holds_them_and_there_are_not_too_many() -> None:
    async def scene() -> None:
        sieves, _ = sifting()
        held = [(await sieves.admit(StreamFilter(source=(name,))))[0] for name in ("a", "a", "b")]
        assert held[0] is held[1]
        with pytest.raises(Unavailable, match="2 different stream filters"):
            await sieves.admit(StreamFilter(source=("c",)))
        held.pop()
        await sieves.admit(StreamFilter(source=("c",)))
        assert len(sieves) == 1
        sieves.close()

    run(scene())


def test_who_names_a_filter_wrongly_is_told_before_anything_else() -> None:
    async def scene() -> None:
        sieves, _ = sifting()
        with pytest.raises(BadRequest, match="there are changed, failing"):
            await sieves.admit(StreamFilter(plugin=PluginCall("change")))
        sieves.close()

    run(scene())


def test_the_index_is_made_ready_in_a_thread_while_others_go_on() -> None:
    async def scene() -> None:
        sieves, _ = sifting()
        asked = sieves.admit(StreamFilter(asks=(ask("ASK { ?s <urn:p> 1 }"),)))
        waiting = asyncio.create_task(asked)
        found = await sieves.evaluate(entries(EVENTS), [StreamView("test", StreamFilter(source=("roof",)))], {})
        assert [positions(each) for each in found.passed.values()] == [[1, 3, 4]]
        assert (await waiting)[0].asks
        sieves.close()

    run(scene())
