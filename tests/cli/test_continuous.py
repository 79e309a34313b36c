"""`triplewire query --continuous` and `triplewire queries` against an edge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from tests.client.test_continuous_queries import answer
from tests.http.harness import House, run
from tests.http.resources.test_continuous_queries import PLAIN, WINDOWED
from tests.http.resources.test_query_routes import controlled
from triplewire.cli.app import app
from triplewire.cli.common import format_message
from triplewire.model import format_position
from triplewire.model.errors import InvalidField, NotFound
from triplewire.model.events import OpaquePayload
from triplewire.rdf import to_nquads

TEXT = PLAIN.format("a", 1)


async def told(at: House, *command: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, [*command, "--url", at.url])


def test_it_is_registered_and_left_alone_then_listed_shown_and_ended() -> None:
    async def scene() -> None:
        async with controlled(lambda id: {"position": "7"}) as at:
            given = ["--parameter", "streams=home", "--parameter", "within=60", "--parameter", "from=earliest"]
            result = await told(at, "query", "--continuous", "--detach", TEXT, *given)
            assert result.exit_code == 0, result
            (query,) = at.twin.registry.list("query")
            assert result.stdout.startswith(f"query {query.key}, from position")
            assert query.value is not None
            assert (query.value["streams"], query.value["within"], query.value["begins"]) == (["home"], 60.0, 0)
            listed, as_json = await told(at, "queries", "list"), await told(at, "queries", "list", "--json")
            assert query.key in listed.stdout
            assert orjson.loads(as_json.stdout)[0]["id"] == query.key
            shown = await told(at, "queries", "show", query.key)
            assert shown.stdout == TEXT + "\n"
            assert "state  on" in shown.stderr
            assert orjson.loads((await told(at, "queries", "show", query.key, "--json")).stdout)["figures"]
            assert (await told(at, "queries", "end", query.key)).exit_code == 0
            assert "no continuous query" in (await told(at, "queries", "list")).stdout
            assert isinstance((await told(at, "queries", "end", query.key)).exception, NotFound)

    run(scene())


async def answering(at: House, done: Callable[[], bool]) -> None:
    """Publishes, as long as somebody waits, what completes an answer of the first query there is."""
    while not done():
        for query in at.twin.registry.list("query", limit=1):
            (position,) = at.append(1, stream="home")
            answer(at, {"id": query.key}, position)
        await asyncio.sleep(0)


@pytest.mark.parametrize("keep", [False, True])
def test_what_is_found_is_printed_as_it_comes_and_the_query_goes_unless_it_is_kept(keep: bool) -> None:
    async def scene() -> None:
        async with controlled() as at:
            command = ["query", "--continuous", TEXT, "-n", "2", "--json", *(["--keep"] if keep else [])]
            printing = asyncio.create_task(told(at, *command))
            await answering(at, printing.done)
            result = await printing
            made, *found = [orjson.loads(each) for each in result.stdout.splitlines()]
            assert (result.exit_code, len(found)) == (0, 2)
            assert {each["query"] for each in found} == {made["id"]}
            assert len(at.twin.registry.list("query")) == keep

    run(scene())


def test_one_that_is_there_is_followed() -> None:
    async def scene() -> None:
        async with controlled() as at:
            await told(at, "query", "--continuous", "--detach", TEXT)
            (query,) = at.twin.registry.list("query")
            (first,) = at.append(1, stream="home")
            answer(at, {"id": query.key}, first)
            (second,) = at.append(2, stream="home")
            answer(at, {"id": query.key}, second)
            result = await told(at, "queries", "answers", query.key, "-n", "2")
            assert result.stdout.count("?car = urn:c") == 2
            after = await told(
                at, "queries", "answers", query.key, "-n", "1", "--after", format_position(first), "--json"
            )
            assert orjson.loads(after.stdout)["position"] == format_position(second)

    run(scene())


@pytest.mark.parametrize(
    ("parameters", "words"),
    [(["within"], "NAME=VALUE"), (["within=soon"], "within must be"), (["color=red"], "has no color")],
)
def test_what_does_not_fit_is_told(parameters: list[str], words: str) -> None:
    async def scene() -> None:
        async with controlled() as at:
            given = [part for each in parameters for part in ("--parameter", each)]
            result = await told(at, "query", "--continuous", "--detach", WINDOWED, *given)
            assert result.exit_code != 0
            assert words in (str(result.exception) if isinstance(result.exception, InvalidField) else result.stderr)

    run(scene())


def test_solutions_that_an_event_carries_are_printed_as_such() -> None:
    results = {"head": {"vars": ["s"]}, "results": {"bindings": [{"s": {"type": "literal", "value": 'a "b"'}}]}}
    cargo = OpaquePayload("application/sparql-results+json", orjson.dumps(results))
    told = format_message(event("urn:triplewire:answer:q:1", cargo.text("urn:triplewire:answer:q:1")))
    assert told.splitlines()[1:] == ['  ?s = a "b"']
    plain = format_message(event("urn:e", "<urn:s>\t<urn:p>\t<urn:o>"))
    assert plain.splitlines()[1:] == ["<urn:s> <urn:p> <urn:o> <urn:e> ."]


def test_yes_and_the_end_of_patience_are_told_in_words() -> None:
    head = {"position": "7", "time": "2026-11-16T08:00:00Z", "query": "q"}
    assert format_message({**head, "results": {"head": {}, "boolean": True}}).endswith("  yes")
    assert "is suspended" in format_message({**head, "limit": {"reached": "state", "most": 2_000_000}})


def event(id: str, text: str) -> dict[str, Any]:
    return {"position": "7", "time": "2026-11-16T08:00:00Z", "event": id, "body": to_nquads(id, text)}
