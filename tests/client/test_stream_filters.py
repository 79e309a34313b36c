"""Listening through sieves, with the client and from the command line."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from tests.http.delivery.test_filtered_events import ABOVE, ROOF, filtering, publish
from tests.http.harness import House, run
from triplewire.cli.app import app
from triplewire.client import AsyncClient, Client
from triplewire.client.async_client import StreamFilterOptions, filter_parameters
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, SparqlSyntax, Unavailable

pytestmark = pytest.mark.usefixtures("compiled")


def test_what_is_given_becomes_parameters_of_the_address() -> None:
    through: StreamFilterOptions = {"source": ["a", "b"], "ask": "ASK {}", "filter": "some", "parameters": {"n": "1"}}
    assert [*filter_parameters(through)] == [
        ("source", "a"), ("source", "b"), ("ask", "ASK {}"), ("filter", "some"), ("filter.n", "1")
    ]  # fmt: skip
    assert [*filter_parameters({})] == []


def _numbers(at: House, **through: Any) -> list[str]:  # noqa: ANN401
    with Client(at.url) as client:
        # Let go of before the client is.
        return [
            each["position"] for _, each in zip(range(2), client.consume("test", "earliest", **through), strict=False)
        ]


def test_both_clients_hear_what_passes() -> None:
    async def scene() -> None:
        async with filtering() as at, AsyncClient(at.url) as client:
            publish(at, 1, 8, 2)
            publish(at, 3, 9, headers=ROOF)
            assert await asyncio.to_thread(_numbers, at, source=["roof", "attic"]) == [
                format_position(4),
                format_position(5),
            ]
            assert await asyncio.to_thread(_numbers, at, ask=ABOVE) == [format_position(2), format_position(5)]
            async with aclosing(client.consume("test", "earliest", filter="every", parameters={"n": "4"})) as events:
                assert [(await anext(events))["position"] for _ in range(2)] == [format_position(1), format_position(5)]

    run(scene())


def test_what_is_refused_or_fails_is_raised() -> None:
    async def scene() -> None:
        async with filtering() as at, AsyncClient(at.url, attempts=1) as client:
            publish(at, 12, 13)
            with pytest.raises(SparqlSyntax, match="the parameter ask"):
                await anext(client.consume("test", ask="ASK {"))
            with pytest.raises(BadRequest, match="there are changed, every, failing"):
                await anext(client.consume("test", filter="none"))
            with pytest.raises(Unavailable, match="the filter failing failed"):
                await anext(client.consume("test", "earliest", filter="failing"))

    run(scene())


def _consumed(at: House, *options: str) -> list[str]:
    told = CliRunner().invoke(app, ["consume", "test", "--after", "earliest", "--json", "--url", at.url, *options])
    assert told.exit_code == 0, told.output
    return [orjson.loads(line)["position"] for line in told.stdout.splitlines()]


def test_the_command_line_has_an_option_for_each() -> None:
    async def scene() -> None:
        async with filtering() as at:
            publish(at, 1, 8, 2)
            publish(at, 3, 9, headers=ROOF)
            asked = (
                "--source",
                "roof",
                "--source",
                "attic",
                "--application",
                "app",
                "--vocabulary",
                "http://example.org/",
            )
            assert await asyncio.to_thread(_consumed, at, *asked, "--ask", ABOVE, "-n", "1") == [format_position(5)]
            every = ("--filter", "every", "--parameter", "n=3", "-n", "2")
            assert await asyncio.to_thread(_consumed, at, *every) == [format_position(1), format_position(4)]

    run(scene())
