"""`triplewire erase` against an edge."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import orjson
from typer.testing import CliRunner, Result

from tests.http.harness import run
from tests.http.resources.test_erasures import erasable
from triplewire.cli.app import app
from triplewire.model.errors import BadRequest, NotFound
from triplewire.storage.registry.erasure import pending_erasures


def told(*commands: list[str], says: str | None = None) -> tuple[list[Result], list[str]]:
    """What each command came to, one after the other, and the names of what is being erased then."""

    async def scene() -> tuple[list[Result], list[str]]:
        async with erasable() as at:
            results = [
                await asyncio.to_thread(CliRunner().invoke, app, ["erase", *command, "--url", at.url], input=says)
                for command in commands
            ]
            return results, [each.name for each in pending_erasures(at.twin.registry)]

    return run(scene())


def test_each_scope_is_asked_for_and_listed() -> None:
    names = {"event": "http://example.org/event/1?a=b#c", "source": "the source", "subject": "urn:anna"}
    commands = [[scope, name, "--yes", "--json"] for scope, name in names.items()]
    (*asked, as_json, table), erased = told(*commands, ["list", "--json"], ["list"])
    receipts = [orjson.loads(each.stdout) for each in asked]
    assert [each["sha256"] for each in receipts] == [sha256(name.encode()).hexdigest() for name in names.values()]
    assert erased == [*names.values()]
    assert orjson.loads(as_json.stdout) == receipts
    assert table.exit_code == 0


def test_it_is_done_only_if_it_is_meant() -> None:
    (declined,), erased = told(["subject", "urn:anna"], says="n\n")
    assert declined.exit_code == 1
    assert "Delete all quads that name urn:anna for good?" in declined.output
    assert erased == []
    (accepted,), erased = told(["subject", "urn:anna", "--by", "the office"], says="y\n")
    assert accepted.exit_code == 0
    assert "not complete yet" in accepted.stdout
    assert erased == ["urn:anna"]


def test_what_is_wrong_is_said() -> None:
    (no_iri, unknown, nothing), _ = told(["subject", "anna", "--yes"], ["receipt", "none"], ["list"])
    assert isinstance(no_iri.exception, BadRequest)
    assert isinstance(unknown.exception, NotFound)
    assert "nothing was ever erased" in nothing.stdout
