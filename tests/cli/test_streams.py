"""`triplewire subscribe` against an edge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
from typer.testing import CliRunner, Result

from tests.http.brokers import broker
from tests.http.harness import run
from tests.http.resources.test_routes import controlled
from triplewire.cli.app import app
from triplewire.cli.common import format_message
from triplewire.model import format_position
from triplewire.model.errors import InvalidField


def told(*arguments: str) -> tuple[Result, list[str | None]]:
    """What a command came to, and the queries that stand afterwards."""

    async def scene() -> tuple[Result, list[str | None]]:
        async with controlled() as at:
            command = ["subscribe", *arguments, "--url", at.url]
            result = await asyncio.to_thread(CliRunner().invoke, app, command)
            listed = at.twin.registry.list("subscription")
            return result, [each.value["sparql"] for each in listed if each.value]

    return run(scene())


def test_a_file_of_subscriptions_is_made(tmp_path: Path) -> None:
    file = tmp_path / "many.ndjson"
    file.write_text('{"sparql": "ASK {}"}\n{"stream": "a"}\n')
    result, standing = told("--bulk", str(file))
    assert (result.exit_code, result.stdout) == (0, "2 subscriptions created, 0 refused\n")
    assert standing == ["ASK {}", None]


def test_lines_that_are_refused_are_told(tmp_path: Path) -> None:
    file = tmp_path / "many.ndjson"
    file.write_text('{"sparql": "ASK {}"}\n{"kind": "signal"}\n')
    result, standing = told("--bulk", str(file), "--json")
    lines = [orjson.loads(each) for each in result.stdout.splitlines()]
    assert (result.exit_code, standing) == (1, ["ASK {}"])
    assert ("id" in lines[0], lines[1]["error"]["field"]) == (True, "sparql")
    assert "line 2" in told("--bulk", str(file))[0].stderr


def test_one_that_asks_nothing_is_refused() -> None:
    result, _ = told()
    assert isinstance(result.exception, InvalidField)


def test_a_limit_that_was_reached_is_told_in_words() -> None:
    head = {"position": "7", "time": "2026-11-16T08:00:00Z", "event": "urn:e"}
    assert "more than 10,000 solutions" in format_message({**head, "limit": {"reached": "solutions", "most": 10_000}})
    assert "is unknown (work, 2 s)" in format_message({**head, "limit": {"reached": "work", "most": 2.0}})


def test_the_past_comes_first(tmp_path: Path) -> None:
    async def scene() -> tuple[Result, list[str]]:
        async with broker(tmp_path) as at:
            at.publish(5)
            command = [
                "subscribe",
                "--stream",
                "even",
                "--from",
                format_position(2),
                "-n",
                "2",
                "--json",
                "--url",
                at.at.url,
            ]
            result = await asyncio.to_thread(CliRunner().invoke, app, command)
            refused = await asyncio.to_thread(CliRunner().invoke, app, [*command[:-6], "soon", *command[-5:]])
            assert isinstance(refused.exception, InvalidField)
            return result, [format_position(position) for position, number in at.events.items() if number in (2, 4)]

    result, expected = run(scene())
    made, *heard = [orjson.loads(each) for each in result.stdout.splitlines()]
    assert (result.exit_code, made["from"]) == (0, format_position(2))
    assert [each["position"] for each in heard] == expected
