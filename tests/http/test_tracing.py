"""Traces of what an edge does, as a collector gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import orjson
import pytest

from tests.config.collectors import Collector, collecting
from tests.http.harness import House, data, house, run
from triplewire.config.tracing import Tracer
from triplewire.http.app import EdgeParts

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
TURTLE = {"Content-Type": "text/turtle"}
BODY = b"<urn:s> <urn:p> 1 ."


@contextmanager
def tracing(ratio: float = 0.0) -> Iterator[tuple[Collector, Callable[[EdgeParts], EdgeParts]]]:
    """A collector, and what makes an edge tell it. What was told is there when the block ends."""
    with collecting() as collector, closing(Tracer(collector.url, "edge", ratio)) as traces:
        yield collector, lambda parts: replace(parts, tracer=traces)


async def publish(home: House, **headers: str) -> None:
    async with home.session.post(f"{home.url}/streams/test", data=BODY, headers={**TURTLE, **headers}) as response:
        assert response.status == 201, await response.text()


async def heard(home: House) -> dict[str, str]:
    """The headers of the first event."""
    async with home.listen("/streams/test?after=earliest") as ear:
        found: dict[str, str] = data(await ear.next()).get("headers", {})
        return found


def test_a_publication_is_one_trace_from_the_door_to_the_listener() -> None:
    async def scene() -> None:
        async with house(change=change) as home, home.listen("/streams/test") as ear:
            await ear.position()
            await publish(home, traceparent=PARENT)
            told = data(await ear.next())["headers"]["traceparent"]
            assert told.startswith(f"00-{TRACE}-")
            kept.append(told.split("-")[2])

    kept: list[str] = []
    with tracing() as (collector, change):
        run(scene())
    spans = collector.trace(TRACE, {"publish", "log commit", "deliver"})
    assert spans["publish"].span.parent_span_id.hex() == SPAN
    assert spans["publish"].id == kept[0]
    assert {spans[name].span.parent_span_id.hex() for name in ("log commit", "deliver")} == {kept[0]}
    assert {each.service for each in spans.values()} == {"triplewire-edge"}
    assert all(each.span.start_time_unix_nano <= each.span.end_time_unix_nano for each in spans.values())


@pytest.mark.parametrize(("ratio", "traced"), [(1.0, True), (0.0, False)])
def test_what_begins_here_is_traced_as_the_setting_says(ratio: float, traced: bool) -> None:
    async def scene() -> None:
        async with house(change=change) as home:
            await publish(home)
            assert ("traceparent" in await heard(home)) is traced

    with tracing(ratio) as (collector, change):
        run(scene())
    assert any(each.span.name == "publish" for each in collector.spans) is traced


def test_who_says_that_a_trace_is_not_sampled_is_believed() -> None:
    async def scene() -> None:
        async with house(change=change) as home:
            await publish(home, traceparent=f"00-{TRACE}-{SPAN}-00")
            assert await heard(home) == {}

    with tracing(1.0) as (collector, change):
        run(scene())
    assert not [each for each in collector.spans if each.span.name == "publish"]


def test_an_event_that_says_its_own_trace_keeps_it() -> None:
    async def scene() -> None:
        line = {"headers": {"traceparent": PARENT}, "format": "text/turtle", "body": BODY.decode()}
        body, headers = orjson.dumps(line), {"Content-Type": "application/x-ndjson"}
        async with house(change=change) as home:
            async with home.session.post(f"{home.url}/streams/test", data=body, headers=headers) as response:
                assert response.status == 201
            assert await heard(home) == {"traceparent": PARENT}

    with tracing(1.0) as (collector, change):
        run(scene())
    assert collector.trace(TRACE, {"log commit"})["log commit"].span.parent_span_id.hex() == SPAN


def test_an_error_is_told_by_its_class_and_not_by_its_words() -> None:
    async def scene() -> None:
        async with house(change=change) as home:
            headers = {**TURTLE, "traceparent": PARENT}
            await home.problem("POST", "/streams/test", data=b"<urn:secret", headers=headers)

    with tracing() as (collector, change):
        run(scene())
    span = collector.trace(TRACE, {"publish"})["publish"].span
    told = {each.key: each.value.string_value for each in span.attributes}
    assert told["error.type"] == "MalformedRdf"
    assert "secret" not in str(span)


def test_nothing_is_kept_where_nobody_hears_of_it(run_python: Callable[[str], str]) -> None:
    async def scene() -> None:
        async with house() as home:
            await publish(home, traceparent=PARENT)
            assert await heard(home) == {}

    run(scene())
    program = (
        "import sys, triplewire.service.edge; print(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert run_python(program).strip() == "False"
