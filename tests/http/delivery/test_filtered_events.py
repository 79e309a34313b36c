"""Listening to streams through sieves, over sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import quote, urlencode

import pyarrow as pa
import pytest

from tests.http.harness import Ear, House, data, house, run
from triplewire.client.feeds import SseParser
from triplewire.config.metrics import Metrics
from triplewire.http.delivery.connections import MemoryConnection
from triplewire.http.delivery.events import SourceContext
from triplewire.http.delivery.filtered_events import FilteredEventSource
from triplewire.http.formats.sse import SSE
from triplewire.http.stream_filters.evaluator import FilterEvaluator, FilterResult, PluginStates
from triplewire.http.stream_filters.parameters import StreamFilter, StreamView
from triplewire.http.stream_filters.plugins import ChangedFilter, PluginFilters
from triplewire.model import Event, EventHeaders, format_position
from triplewire.storage.log.ports import Publication
from triplewire.testing.samples import EXAMPLE, event

pytestmark = pytest.mark.usefixtures("compiled")

ABOVE = f"ASK {{ ?o <{EXAMPLE}result> ?v FILTER(?v > 5) }}"
ROOF = EventHeaders(source="roof", application="app")


class Every:
    """Every n-th of the events that it sees."""

    def __init__(self, n: str) -> None:
        self._n = int(n)
        self._seen = 0

    def passes(self, batch: pa.Table) -> list[bool]:
        first, self._seen = self._seen, self._seen + batch.num_rows
        return [number % self._n == 0 for number in range(first, self._seen)]


class Failing:
    """Raises when an event comes that has the number 13."""

    def passes(self, batch: pa.Table) -> pa.Array:
        if any(text.endswith("/13") for text in batch["event"].to_pylist()):
            raise RuntimeError("thirteen")
        return pa.array([True] * batch.num_rows)


FILTERS = PluginFilters({"every": Every, "failing": Failing, "changed": ChangedFilter})


@asynccontextmanager
async def filtering() -> AsyncIterator[House]:
    async with house(change=lambda parts: replace(parts, filters=FILTERS)) as at:
        yield at


def publish(at: House, *numbers: int, headers: EventHeaders = EventHeaders(), stream: str = "test") -> None:  # noqa: B008
    events = [Event(each.id, each.text, headers) for each in map(event, numbers)]
    at.twin.log.append([Publication(stream, events)])


async def heard(ear: Ear, count: int) -> list[int]:
    """The numbers of the next events."""
    return [int(data(message)["event"].rpartition("/")[2]) for message in await ear.take(count)]


@pytest.mark.parametrize(
    ("asked", "passed"),
    [
        ({"source": "roof"}, [3, 4, 7, 8]),
        ({"application": "app"}, [3, 4, 7, 8]),
        ({"vocabulary": EXAMPLE}, [1, 2, 3, 4]),
        ({"ask": ABOVE}, [6, 7, 8]),
        ({"ask": ABOVE, "source": "roof"}, [7, 8]),
        ({"filter": "every", "filter.n": "3"}, [1, 4, 7]),
        ({"filter": "every", "filter.n": "3", "source": "roof"}, [3, 8]),
        ({"filter": "changed", "filter.property": f"{EXAMPLE}result", "application": "app"}, [3, 4, 7, 8]),
    ],
    ids=lambda each: "+".join(each) if isinstance(each, dict) else "",
)
def test_only_what_passes_is_told_of_past_and_present_alike(asked: dict[str, str], passed: list[int]) -> None:
    async def scene() -> None:
        async with filtering() as at:
            path = f"/streams/test?{urlencode(asked)}"
            async with at.listen(path) as live:
                await live.position()
                for number in (0, 4):
                    publish(at, number + 1, number + 2)
                    publish(at, number + 3, number + 4, headers=ROOF)
                    publish(at, 6, 7, stream="other", headers=ROOF)
                assert await heard(live, len(passed)) == passed
            async with at.listen(f"{path}&after=earliest") as past:
                assert await heard(past, len(passed)) == passed

    run(scene())


def test_values_are_alternatives_and_who_asks_for_all_is_told_all() -> None:
    async def scene() -> None:
        async with filtering() as at:
            for number, source in enumerate("abcab"):
                publish(at, number, headers=EventHeaders(source=source))
            async with at.listen("/streams/test?after=earliest&source=a&source=c") as some:
                assert await heard(some, 3) == [0, 2, 3]
            async with at.listen("/streams/test?after=earliest") as all:
                assert await heard(all, 5) == [0, 1, 2, 3, 4]

    run(scene())


def test_equal_addresses_are_evaluated_once_for_all_who_listen() -> None:
    async def scene() -> None:
        async with filtering() as at:
            other = quote(ABOVE.replace("?o", "?x").replace("?v", "?y"))
            async with (
                at.listen(f"/streams/test?ask={quote(ABOVE)}") as one,
                at.listen(f"/streams/test?ask={other}") as same,
                at.listen(f"/streams/test?ask={other}&format=ndjson") as lines,
            ):
                await one.position()
                await same.position()
                await lines.response.content.readany()
                publish(at, 7)
                assert await heard(one, 1) == await heard(same, 1) == [7]
                assert b"/7" in await lines.response.content.readany()
                assert len(at.edge.evaluator) == 1
                told = at.edge.parts.metrics.registry.get_sample_value("triplewire_stream_filter_queries_total")
                assert told == 1

    run(scene())


def test_a_filter_that_fails_cuts_off_its_listeners_and_nobody_else() -> None:
    async def scene() -> None:
        async with filtering() as at:
            async with at.listen("/streams/test?filter=failing") as bad, at.listen("/streams/test?source=roof") as good:
                await bad.position()
                await good.position()
                publish(at, 12, headers=ROOF)
                assert await heard(bad, 1) == await heard(good, 1) == [12]
                publish(at, 13, headers=ROOF)
                (last,) = await bad.rest()
                assert (last.event, data(last)["position"]) == ("failed", format_position(1))
                assert data(last)["detail"] == "the filter failing failed: it raised RuntimeError"
                publish(at, 14, headers=ROOF)
                assert await heard(good, 2) == [13, 14]
            async with at.listen(f"/streams/test?filter=failing&after={format_position(1)}") as again:
                assert [message.event for message in await again.rest()] == ["failed"]
            async with at.listen(f"/streams/test?filter=failing&after={format_position(2)}") as beyond:
                assert await heard(beyond, 1) == [14]
            failures = at.edge.parts.metrics.registry.get_sample_value(
                "triplewire_stream_filters_failed_total", {"of": "filter"}
            )
            assert failures == 2

    run(scene())


def test_a_replay_through_a_rare_sieve_tells_how_far_it_is() -> None:
    async def scene() -> None:
        async with filtering() as at:
            publish(at, *range(3_500))
            publish(at, 1, headers=ROOF)
            while not at.edge.filtered.skip() or at.edge.filtered.topic.position < 3_501:
                await asyncio.sleep(0)
            async with at.listen("/streams/test?source=roof&after=earliest") as ear:
                ids = set()
                while format_position(3_501) not in ids:
                    ids |= {line for line in (await ear.response.content.readany()).decode().split() if len(line) == 16}
            assert {format_position(1_000), format_position(2_000), format_position(3_000)} <= ids

    run(scene())


def test_who_listens_through_a_rare_sieve_is_told_how_far_it_is_and_resumes_there() -> None:
    async def scene() -> None:
        async with filtering() as at, at.listen("/streams/test?source=roof") as ear:
            await ear.position()
            publish(at, 1, 2, 3)
            while at.edge.filtered.topic.settled < 3:
                await asyncio.sleep(0)
            at.edge.filtered.topic.keep_alive()
            assert f"id: {format_position(3)}\n".encode() in await ear.response.content.readany()
            publish(at, 4, headers=ROOF)
            assert await heard(ear, 1) == [4]

    run(scene())


def test_a_filter_that_remembers_goes_on_where_the_replay_of_its_first_listener_ended() -> None:
    async def scene() -> None:
        async with filtering() as at:
            publish(at, *range(7))
            while not at.edge.filtered.skip() or at.edge.filtered.topic.position < 7:
                await asyncio.sleep(0)
            async with at.listen("/streams/test?filter=every&filter.n=3&after=earliest") as first:
                assert await heard(first, 3) == [0, 3, 6]
                publish(at, 7, 8, 9)
                assert await heard(first, 1) == [9]
                async with at.listen(f"/streams/test?filter=every&filter.n=3&after={format_position(8)}") as second:
                    assert await heard(second, 1) == [8]
                    while len(at.edge.filtered.topic) < 2:
                        await asyncio.sleep(0)
                    publish(at, 10, 11, 12)
                    assert await heard(second, 1) == await heard(first, 1) == [12]
            while not at.edge.filtered.skip():
                await asyncio.sleep(0)
            async with at.listen("/streams/test?filter=every&filter.n=3") as later:
                await later.position()
                publish(at, 13)
                assert await heard(later, 1) == [13]

    run(scene())


class Doubtful(FilterEvaluator):
    """Lets even positions through, and does not know about those that end in 5."""

    def evaluate_now(self, entries: pa.Table, views: Collection[StreamView], plugins: PluginStates) -> FilterResult:
        positions = entries["position"].to_numpy()
        left, even = positions[positions % 10 == 5].tolist(), entries.filter(pa.array(positions % 2 == 0))
        return FilterResult(dict.fromkeys(views, even), {}, dict.fromkeys(views, left))


def test_in_the_place_of_an_event_that_is_not_decided_it_is_told_that_it_is_so() -> None:
    async def scene() -> None:
        async with house() as at:
            edge, metrics = at.edge, Metrics()
            context = SourceContext(edge.threads, metrics)
            evaluator = Doubtful(metrics)
            source = FilteredEventSource(edge.events, at.twin.log, evaluator, context)
            view, wire = StreamView("test", StreamFilter(("a",))), MemoryConnection()
            listener = source.topic.open(view, wire, 0, metrics)
            await source.topic.listen(view, listener, source.history(view, None))
            publish(at, *range(7))
            await source.step()
            frames, reached = await source.history(view, None).step(0, SSE)
            assert (frames.positions, reached) == ([2, 4, 5, 6, 7], 7)
            for written in (bytes(wire.data), frames.joined):
                told = [(each.event, data(each)["position"]) for each in SseParser().feed(written)]
                events = [("event", format_position(position)) for position in (2, 4, 6)]
                assert told == [*events[:2], ("undecided", format_position(5)), events[2]]
            evaluator.close()

    run(scene())


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("?sources=a", 400, "no parameter sources"),
        ("?ask=SELECT*{?s ?p ?o}", 400, "not SELECT"),
        ("?ask=ASK{?s ?p", 400, "the parameter ask"),
        ("?ask=ASK{SERVICE<http://x/>{?s ?p ?o}}", 422, "SERVICE"),
        ("?filter=evry", 400, "there is no filter 'evry' here; there are changed, every, failing"),
        ("?filter=every", 400, "it takes filter.n"),
        ("?filter=every&filter.n=x", 400, "invalid literal"),
        ("?filter=changed&filter.property=x", 400, "property must be an IRI"),
        ("?vocabulary=a", 400, "the prefix of an IRI"),
    ],
)
def test_what_is_wrong_is_told_as_a_problem(path: str, status: int, told: str) -> None:
    async def scene() -> None:
        async with filtering() as at:
            problem = await at.problem("GET", f"/streams/test{path}")
            assert (problem["status"], told in problem["detail"]) == (status, True), problem
            assert not len(at.edge.evaluator)

    run(scene())
