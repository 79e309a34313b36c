"""`triplewire query` against an edge whose answers are known."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import orjson
import pytest
from typer.testing import CliRunner

from tests.http.harness import Said, house, run
from triplewire.cli.app import app
from triplewire.history.requests import HistoryRequest
from triplewire.model.errors import SparqlSyntax, TextPosition, TriplewireError


@dataclass
class Known:
    """Answers every query with the same pieces, and remembers what was asked."""

    pieces: Sequence[bytes | TriplewireError] = ()
    asked: list[HistoryRequest] = field(default_factory=list)

    async def ask(self, request: HistoryRequest) -> Said:
        self.asked.append(request)
        return Said(self.pieces)


@dataclass(frozen=True)
class Told:
    """What a command printed, the error that it ended with, and what the edge was asked."""

    output: bytes
    code: int
    error: BaseException | None
    asked: HistoryRequest | None


def query(*arguments: str, pieces: Sequence[bytes | TriplewireError] = (), text: str = "") -> Told:
    answers = Known(pieces)

    async def scene() -> Told:
        async with house(change=lambda parts: replace(parts, answers=answers)) as at:
            command = ["query", *arguments, "--url", at.url]
            done = await asyncio.to_thread(CliRunner().invoke, app, command, input=text)
            return Told(done.stdout_bytes, done.exit_code, done.exception, answers.asked[-1] if answers.asked else None)

    return run(scene())


def test_elsewhere_than_on_a_terminal_bytes_are_what_was_sent() -> None:
    told = query("SELECT * {}", pieces=[b"?x\n", b"\xc3", b"\xa4\t\n"])
    assert (told.output, told.code) == (b"?x\n\xc3\xa4\t\n", 0)
    assert told.asked == HistoryRequest("SELECT * {}", accept="*/*", format="tsv")


@pytest.mark.parametrize(
    ("arguments", "format"),
    [
        (["SELECT * {}"], "tsv"),
        (["CONSTRUCT WHERE { ?s ?p ?o }"], "turtle"),
        (["DESCRIBE <urn:x>", "--json"], "jsonld"),
        (["SELECT * {}", "--json"], "json"),
        (["SELECT * {}", "--format", "csv"], "csv"),
        (["DESCRIBE <urn:x>", "--format", "ntriples"], "ntriples"),
        (["ASK {}"], "json"),
    ],
)
def test_the_format_is_named_or_follows_from_the_form(arguments: list[str], format: str) -> None:
    told = query(*arguments)
    assert told.asked is not None
    assert told.asked.format == format


def test_wishes_reach_the_edge() -> None:
    told = query("SELECT * {}", "--engine", "spark", "--timeout", "2.5", "--entailment", "rdfs")
    assert told.asked is not None
    assert (told.asked.engine, told.asked.seconds, told.asked.entailment) == ("spark", 2.5, "rdfs")


def test_the_past_is_asked_by_version_or_by_time() -> None:
    told = query("SELECT * {}", "--version", "3")
    assert told.asked is not None
    assert told.asked.lake_version == 3
    told = query("SELECT * {}", "--as-of", "2026-11-16T10:00:00+01:00")
    assert told.asked is not None
    assert told.asked.lake_version == datetime(2026, 11, 16, 9, tzinfo=UTC)


@pytest.mark.parametrize(("truth", "word"), [(True, b"yes\n"), (False, b"no\n")])
def test_a_verdict_is_a_word_and_an_exit_code_only_on_request(truth: bool, word: bytes) -> None:
    pieces = [orjson.dumps({"head": {}, "boolean": truth})]
    assert query("ASK {}", pieces=pieces) == Told(word, 0, None, HistoryRequest("ASK {}", accept="*/*", format="json"))
    assert query("ASK {}", "--exit-code", pieces=pieces).code == (0 if truth else 1)
    told = query("ASK {}", "--exit-code", "--json", pieces=pieces)
    assert (told.output, told.code) == (pieces[0], 0 if truth else 1)


def test_the_query_may_come_from_standard_input() -> None:
    for arguments in ([], ["-"]):
        told = query(*arguments, text="SELECT ?a {}")
        assert told.asked is not None
        assert told.asked.text == "SELECT ?a {}"


def test_the_query_may_come_from_a_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("queries") / "q.rq"
    file.write_text("SELECT ?b {}")
    for arguments in (["--file", str(file)], [str(file)]):
        told = query(*arguments)
        assert told.asked is not None
        assert told.asked.text == "SELECT ?b {}"
    assert query("SELECT ?b {}", "--file", str(file)).code == 2


def test_an_error_keeps_its_place_and_its_line() -> None:
    sent = SparqlSyntax("expected }", place=TextPosition(2, 3), excerpt="ab?\n  ^")
    found = query("SELECT * {}", pieces=[sent]).error
    assert isinstance(found, SparqlSyntax)
    assert (found.place, found.excerpt) == (TextPosition(2, 3), "ab?\n  ^")
    assert str(found) == "expected }"


def test_an_answer_that_is_cut_off_is_an_error() -> None:
    told = query("SELECT * {}", pieces=[b"?x\n", SparqlSyntax("late")])
    assert isinstance(told.error, TriplewireError)
    assert "cut off" in str(told.error)
    assert told.output in (b"", b"?x\n")
