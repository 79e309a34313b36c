"""`triplewire ontology` against an edge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
from typer.testing import CliRunner, Result

from tests.http.harness import run
from tests.http.resources.test_routes import controlled
from triplewire.cli.app import app
from triplewire.model.errors import NotFound, UnknownMediaType

TEXT = "<urn:A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:B> .\n"


def told(*commands: list[str]) -> list[Result]:
    """What each command came to, one after the other."""

    async def scene() -> list[Result]:
        async with controlled() as at:
            return [
                await asyncio.to_thread(CliRunner().invoke, app, ["ontology", *command, "--url", at.url])
                for command in commands
            ]

    return run(scene())


def test_an_ontology_is_put_listed_printed_and_deleted(tmp_path: Path) -> None:
    file = tmp_path / "small.ttl"
    file.write_text(TEXT)
    results = told(
        ["put", "small", str(file)],
        ["list", "--json"],
        ["list"],
        ["get", "small", "--type", "application/n-triples"],
        ["delete", "small"],
        ["list"],
    )
    assert [each.exit_code for each in results] == [0] * 6, results
    put, as_json, table, text, _, none = (each.stdout for each in results)
    assert "1 triples, 2 classes, 0 properties" in put
    assert orjson.loads(as_json)[0]["name"] == "small"
    assert "small" in table
    assert text == TEXT
    assert "no ontology" in none


def test_the_media_type_goes_before_the_ending(tmp_path: Path) -> None:
    file = tmp_path / "small.txt"
    file.write_text(TEXT)
    refused, taken = told(["put", "a", str(file)], ["put", "a", str(file), "--type", "text/turtle", "--json"])
    assert isinstance(refused.exception, UnknownMediaType)
    assert orjson.loads(taken.stdout)["classes"] == 2


def test_what_is_not_there_is_said() -> None:
    for command in (["get", "a"], ["delete", "a"]):
        (result,) = told(command)
        assert isinstance(result.exception, NotFound)
