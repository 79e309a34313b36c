"""Continuous queries with the client, against a real edge."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pyarrow as pa
import pytest

from tests.http.harness import House, run
from tests.http.resources.test_continuous_queries import MADE, PLAIN, WINDOWED
from tests.http.resources.test_query_routes import controlled
from triplewire.client import AsyncClient, Client
from triplewire.model import MATCHES, format_position, parse_position
from triplewire.model.errors import InvalidField, NotFound, Unsupported
from triplewire.storage.outbox import OutboxLane

TEXT = PLAIN.format("a", 1)


def answer(at: House, made: dict[str, Any], position: int) -> None:
    """What the pipeline would write."""
    stored = at.twin.registry.get("query", made["id"])
    assert stored is not None
    assert stored.value is not None
    row = {"position": position, "group": stored.value["group"], "value": float(position), "terms": ["0", "<urn:c>"]}
    table = pa.Table.from_pylist([row], schema=MATCHES)
    at.outbox.write(at.batches, at.twin.log.head(), table, OutboxLane.CONTINUOUS)
    at.batches += 1


def test_a_query_is_registered_listed_heard_and_ended() -> None:
    async def scene() -> None:
        async with controlled(lambda id: {"rows": 1}) as at, AsyncClient(at.url, attempts=3) as client:
            made = await client.register(TEXT, streams=["home"], within="PT1M", start="earliest")
            assert (made["within"], made["from"]) == (60.0, "earliest")
            assert await client.queries() == [made]
            assert await client.find_query(made["id"]) == {**made, "figures": {"rows": 1}}
            (position,) = at.append(1, stream="home")
            answer(at, made, position)
            async with aclosing(client.answers(made["id"])) as answers:
                found = await anext(answers)
                assert (found["position"], found["query"]) == (format_position(position), made["id"])
                await client.end_query(made["id"])
                assert [each async for each in answers] == []
            with pytest.raises(NotFound):
                await client.find_query(made["id"])

    run(scene())


def test_several_are_heard_over_one_connection_until_all_have_ended() -> None:
    async def scene() -> None:
        async with controlled() as at, AsyncClient(at.url, attempts=3) as client:
            made = await client.register_all([{"query": PLAIN.format("a", 1)}, {"query": PLAIN.format("b", 1)}])
            for number, each in enumerate(made):
                (position,) = at.append(number, stream="home")
                answer(at, each, position)
            async with aclosing(client.answers([each["id"] for each in made])) as answers:
                found = [await anext(answers) for _ in made]
                assert [each["query"] for each in found] == [each["id"] for each in made]
                for each in made:
                    await client.end_query(each["id"])
                assert [each async for each in answers] == []

    run(scene())


def test_lines_are_registered_in_bulk_and_refusals_have_their_words() -> None:
    async def scene() -> None:
        async with controlled() as at, AsyncClient(at.url) as client:
            given: list[dict[str, Any] | bytes]
            given = [{"query": TEXT}, b'{"query": "SELECT"}', {"query": MADE, "streams": ["home"], "name": "met"}]
            told = [each async for each in client.register_bulk(given)]
            assert ["id" in each for each in told] == [True, False, True]
            with pytest.raises(Unsupported) as unsupported:
                await client.register(TEXT + " LIMIT 3")
            assert unsupported.value.place is not None
            with pytest.raises(InvalidField) as unfit:
                await client.register(WINDOWED.replace("<home>", "<nowhere>"))
            assert (unfit.value.field, str(unfit.value.place)) == ("query", "line 2, column 55")
            assert "^" in unfit.value.excerpt

    run(scene())


def test_programs_without_a_loop_have_the_same() -> None:
    def program(at: House) -> None:
        with Client(at.url) as client:
            made = client.register(WINDOWED, into="other", time="event")
            client.register_all([{"query": TEXT}])
            assert len([*client.register_bulk([{"query": TEXT}])]) == 1
            assert client.queries()[0]["id"] == made["id"]
            assert client.find_query(made["id"])["into"] == "other"
            (position,) = at.append(1, stream="home")
            plain = client.queries()[1]
            assert parse_position(plain["since"]) < position
            answer(at, plain, position)
            assert next(client.answers(plain["id"]))["position"] == format_position(position)
            client.end_query(made["id"])
            assert len(client.queries()) == 2

    async def scene() -> None:
        async with controlled() as at:
            await asyncio.to_thread(program, at)

    run(scene())
