"""`triplewire policy` against an edge, and without one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
from typer.testing import CliRunner, Result

from tests.http.harness import run
from tests.http.resources.test_routes import controlled
from triplewire.cli.app import app
from triplewire.model.errors import BadRequest, NotFound

TEXT = """
[default]
see = "allow"
publish = "allow"
[[see]]
name = "nurses"
who = ["role:nurse"]
deny.classes = ["<urn:Diagnosis>"]
"""


def told(*commands: list[str]) -> list[Result]:
    """What each command came to, one after the other."""

    async def scene() -> list[Result]:
        async with controlled() as at:
            return [
                await asyncio.to_thread(CliRunner().invoke, app, ["policy", *command, "--url", at.url])
                for command in commands
            ]

    return run(scene())


def test_a_policy_is_loaded_shown_explained_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "ward.toml"
    file.write_text(TEXT)
    results = told(
        ["load", str(file)],
        ["show"],
        ["explain", "--as", "bea", "--role", "nurse", "--grant", "query:ward-*", "--json"],
        ["explain", "--as", "bea", "--role", "nurse"],
        ["remove"],
        ["versions"],
        ["show"],
    )
    loaded, shown, explained, table, removed, versions, none = results
    assert [each.exit_code for each in results[:6]] == [0] * 6, results
    assert "in force from" in loaded.stdout
    assert shown.stdout == TEXT
    found = orjson.loads(explained.stdout)
    assert found["query"]["streams"] == {"allowed": ["ward-*"], "denied": []}
    assert found["query"]["classes"] == {"allowed": ["*"], "denied": ["<urn:Diagnosis>"]}
    assert found["consume"]["streams"]["allowed"] == []
    assert found["publish"]["classes"]["denied"] == []
    assert "<urn:Diagnosis>" in table.stdout
    assert removed.stdout == ""
    assert [line.split("  ")[1] for line in versions.stdout.splitlines()] == [
        "none",
        "1 rules about seeing, 0 about publishing",
    ]
    assert isinstance(none.exception, NotFound)


def test_a_file_is_checked_without_an_edge(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(TEXT)
    bad.write_text(TEXT + "allow.classes = ['<urn:A>']")
    assert "1 rules about seeing" in CliRunner().invoke(app, ["policy", "check", str(good)]).stdout
    refused = CliRunner().invoke(app, ["policy", "check", str(bad)])
    assert isinstance(refused.exception, BadRequest)
    assert "line 9: rule 1 of [[see]] 'nurses', allow.classes: '<urn:A>' changes nothing" in str(refused.exception)
