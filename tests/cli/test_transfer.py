"""`triplewire export` and `triplewire import`, as a person would use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.http.harness import house, run
from tests.service.transfer.lakes import SOURCES, quads_of, rows
from triplewire.cli.app import app
from triplewire.cli.transfer import publish_file
from triplewire.config.files import prepare_directory
from triplewire.model import END, format_position
from triplewire.model.errors import BadRequest, Conflict, InputError, Unavailable
from triplewire.service.transfer.formats import choose_encoding
from triplewire.service.transfer.importer import Import, ImportLimits
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch

NUMBERS = [*range(1, 9)]
BROKEN = Path(__file__).parents[1] / "service" / "transfer" / "data" / "broken.nq"
SAID = ["stream", "event", "text", "source", "application", "time"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    prepare_directory(folder)
    table = folder / "lake" / "quads"
    DeltaLake(table).commit(CommitBatch("q", 0, 8), [FileWriter(table).write(rows(NUMBERS, SOURCES[:2]))])
    return folder


def export(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["export", *arguments, "--data", str(data)])


def bring(*arguments: str, text: bytes = b"") -> tuple[Result, list[Any]]:
    async def scene() -> tuple[Result, list[Any]]:
        async with house() as at:
            command = ["import", *arguments, "--url", at.url]
            done = await asyncio.to_thread(CliRunner().invoke, app, command, input=text)
            return done, at.twin.log.read(0, END, 100).select(SAID).to_pylist()

    return run(scene())


@pytest.mark.parametrize("name", ["all.nq", "all.trig.gz", "all.parquet"])
def test_out_and_in_again(data: Path, tmp_path: Path, name: str) -> None:
    done = export(data, str(tmp_path / name))
    assert (done.exit_code, "8 events" in done.stderr) == (0, True), done.stderr
    done, found = bring(str(tmp_path / name))
    assert done.exit_code == 0, done.stderr
    assert found == rows(NUMBERS, SOURCES[:2]).select(SAID).to_pylist()
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_through_standard_output_and_input(data: Path) -> None:
    done = export(data, "-", "--format", "trig", "--stream", "even", "--after", format_position(2))
    assert done.exit_code == 0
    _, found = bring("-", "--format", "trig", "--stream", "other", text=done.stdout_bytes)
    assert [(row["event"], row["stream"]) for row in found] == [
        (f"urn:event:{n if n != 8 else 4}", "other") for n in (4, 6, 8)
    ]


def test_some_of_it_without_headers(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "some.nq"
    done = export(data, str(path), "--no-headers", "--from", "1970-01-01T00:01:00Z", "--to", "1970-01-01T00:02:00")
    assert done.exit_code == 0, done.stderr
    wanted = rows([n for n in NUMBERS if n * 7 % 5 == 1])
    assert sorted(line.removesuffix(" .") for line in path.read_text().split("\n")[:-1]) == quads_of(
        wanted, headers=False
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["all.csv"], BadRequest, "known are .nq"),
        (["all.nq", "--from", "soon"], BadRequest, "--from must be ISO 8601"),
        (["all.nq", "--after", "7"], BadRequest, "not a position"),
        (["all.parquet", "--no-headers"], BadRequest, "columns"),
        (["there.nq"], Conflict, "--overwrite"),
    ],
)
def test_an_export_that_cannot_be_says_why(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], kind: type, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.nq").write_text("mine")
    done = export(data, *arguments)
    assert isinstance(done.exception, kind)
    assert words in str(done.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["there.nq"]


def test_no_lake_is_said(tmp_path: Path) -> None:
    assert "no lake" in str(export(tmp_path, "all.nq").exception)


def test_what_is_broken_stops_all(tmp_path: Path) -> None:
    path = tmp_path / "broken.nq"
    path.write_bytes(BROKEN.read_bytes())
    done, found = bring(str(path))
    assert isinstance(done.exception, InputError)
    assert "8 faults" in str(done.exception)
    assert f"{path}:7:1: this is not N-Quads" in done.stderr
    assert (found, [each.name for each in tmp_path.iterdir()]) == ([], ["broken.nq"])


def test_what_is_broken_is_passed_over_and_kept(tmp_path: Path) -> None:
    path, rejects = tmp_path / "broken.nq", tmp_path / "rejects.nq"
    path.write_bytes(BROKEN.read_bytes())
    done, found = bring(str(path), "--on-error", "skip", "--rejects", str(rejects))
    assert (done.exit_code, [row["event"] for row in found]) == (3, ["urn:e1"])
    assert "8 faults" in done.stderr
    lines = path.read_bytes().split(b"\n")
    assert rejects.read_bytes().split(b"\n")[:-1] == [lines[number - 1] for number in (7, 8, 9, 10, 13, 14)]


def test_a_broker_that_is_away_leaves_a_state_to_go_on_with(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.nq"
    export(data, str(path))
    wanted = Import(path, choose_encoding(path.name), limits=ImportLimits(attempts=1))
    with pytest.raises(Unavailable):
        publish_file(wanted, path.name, "http://127.0.0.1:1", print)
    assert (tmp_path / "all.nq.import").exists()
    again, found = bring(str(path))
    assert (found, "--resume" in str(again.exception)) == ([], True)
    again, found = bring(str(path), "--resume")
    assert (again.exit_code, len(found), [each.name for each in tmp_path.iterdir()]) == (0, 8, ["all.nq"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.nq"], "no such file"),
        (["none.csv"], "known are .nq"),
        (["there.nq", "--rejects", "x"], "--on-error skip"),
        (["there.nq", "--stream", "a/b"], "not a valid name of a stream"),
    ],
)
def test_an_import_that_cannot_be_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.nq").write_text("")
    done, _ = bring(*arguments)
    assert words in str(done.exception)
