"""`triplewire template` against an edge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
from typer.testing import CliRunner, Result

from tests.http.harness import run
from tests.http.resources.test_routes import controlled
from triplewire.cli.app import app
from triplewire.model.errors import InvalidField, NotFound

TEXT = "ASK { ?s <urn:p> $thing ; <urn:v> ?v FILTER(?v > $limit) }"


def told(*commands: list[str]) -> list[Result]:
    """What each command came to, one after the other."""

    async def scene() -> list[Result]:
        async with controlled() as at:
            return [
                await asyncio.to_thread(CliRunner().invoke, app, ["template", *command, "--url", at.url])
                for command in commands
            ]

    return run(scene())


def test_a_template_is_put_listed_printed_and_deleted(tmp_path: Path) -> None:
    file = tmp_path / "above.rq"
    file.write_text(TEXT)
    results = told(
        ["put", "above", str(file), "--type", "thing=iri"],
        ["list", "--json"],
        ["list"],
        ["get", "above"],
        ["get", "above", "--json"],
        ["delete", "above"],
        ["list"],
    )
    assert [each.exit_code for each in results] == [0] * 7, results
    put, as_json, table, text, whole, _, none = (each.stdout for each in results)
    assert put.startswith("above: $thing iri, $limit term, version ")
    assert orjson.loads(as_json)[0]["name"] == "above"
    assert "$limit term" in table
    assert text == TEXT + "\n"
    assert orjson.loads(whole)["parameters"]["thing"] == {"type": "iri"}
    assert "no template" in none


def test_what_is_not_there_is_said() -> None:
    for command in (["get", "a"], ["delete", "a"]):
        (result,) = told(command)
        assert isinstance(result.exception, NotFound)


def test_a_type_without_a_name_is_refused() -> None:
    (result,) = told(["put", "a", TEXT, "--type", "iri"])
    assert result.exit_code == 2
    assert "is not NAME=VALUE" in result.output


def test_a_subscription_is_made_of_a_template_and_values() -> None:
    async def scene() -> tuple[list[Result], list[object]]:
        async with controlled() as at:
            commands = [
                ["template", "put", "above", TEXT, "--type", "thing=iri"],
                ["subscribe", "--template", "above", "--value", "thing=urn:a"],
            ]
            done = [await asyncio.to_thread(CliRunner().invoke, app, [*each, "--url", at.url]) for each in commands]
            return done, [each.key for each in at.twin.registry.list("template")]

    (put, refused), names = run(scene())
    assert (put.exit_code, names) == (0, ["above"])
    assert isinstance(refused.exception, InvalidField)
    assert "values has no limit" in str(refused.exception)
