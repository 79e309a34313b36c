"""`triplewire publish` against an edge."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from tests.http.harness import house, run
from tests.http.publish.test_items import item, rows
from tests.http.publish.test_streaming import line
from triplewire.cli.app import app
from triplewire.model import format_position


def told(*arguments: str, input: bytes | None = None) -> tuple[Result, list[dict[str, Any]]]:
    """What a command came to, and what is in the log then."""

    async def scene() -> tuple[Result, list[dict[str, Any]]]:
        async with house() as at:
            command = ["publish", "test", *arguments, "--url", at.url]
            result = await asyncio.to_thread(CliRunner().invoke, app, command, input)
            return result, rows(at)

    return run(scene())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ttl", b"<urn:s> <urn:p> 1 ."),
        ("a.ttl.gz", gzip.compress(b"<urn:s> <urn:p> 1 .")),
        ("a.ztreamy", item(1)),
        ("a.ndjson", line(1)),
        ("a.jsonl.gz", gzip.compress(line(1))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_are_published_by_their_endings(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    result, stored = told(str(tmp_path / name))
    assert (result.exit_code, len(stored)) == (0, 1), result.output
    assert f"1 event(s) at {format_position(1)}" in result.stdout


def test_what_is_refused_is_told_and_the_rest_is_in(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(line(1) + b"{\n" + line(2))
    result, stored = told(str(tmp_path / "a.ndjson"))
    assert (result.exit_code, len(stored)) == (3, 2)
    assert "item 2 is refused" in result.stderr


@pytest.mark.parametrize("options", [[], ["--gzip"]])
def test_standard_input_is_published_item_by_item(options: list[str]) -> None:
    result, stored = told("--each", "--json", *options, input=line(1) + b"{\n" + line(1))
    found = [orjson.loads(each) for each in result.stdout.splitlines()]
    assert (result.exit_code, len(stored)) == (3, 1)
    assert [each.get("position") for each in found] == [format_position(1), None, format_position(1), None]
    assert found[-1]["end"] == {"items": 3, "events": 2, "repeated": 1, "refused": 1}


def test_an_unknown_ending_is_told_with_those_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"")
    result, _ = told(str(tmp_path / "a.pdf"))
    assert result.exit_code != 0
    assert ".ztreamy" in str(result.exception) + result.output
