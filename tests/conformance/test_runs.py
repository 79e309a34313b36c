"""The harness on a suite of our own, some of whose results are wrong: it can fail, and says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.datasets import sources
from tests.conformance.w3c import main

SUITE = Path(__file__).parent / "data"

FAILED = {
    "wrong": "missing [?friend=_: ?who=<http://example.org/eve>]",
    "wrong-order": "the rows come in another order",
    "not-refused": "parsed, though it is no query",
    "lost": "FileNotFoundError",
}
SKIPPED = {
    "update": "SPARQL Update",
    "owl": "entailment under OWL-Direct or RIF",
    "withdrawn": "withdrawn",
    "remote": "SERVICE",
    "protocol": "ProtocolTest",
}
PASSED = 13


def test_every_outcome_has_its_name_and_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(SUITE), "--engine", "oxigraph", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["failed"], found["skipped"]) == (PASSED, len(FAILED), len(SKIPPED))
    for verdict, reasons in (("failed", FAILED), ("skipped", SKIPPED)):
        told = {each["name"].partition("#")[2]: each["reason"] for each in found["names"][verdict]}
        assert told.keys() == reasons.keys()
        assert all(reason in told[name] for name, reason in reasons.items())
    assert found["kinds"]["syntax"] == {"passed": 2, "failed": 1, "skipped": 0, "rate": 2 / 3}


def test_included_manifests_are_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    places = [str(SUITE), str(SUITE / "manifest.ttl"), str(SUITE / "inner" / "more.ttl")]
    assert main([*places, "--engine", "oxigraph", "--json"]) == 0
    names = json.loads(capsys.readouterr().out)["names"]["passed"]
    assert [each["name"] for each in names].count("data/inner#again") == 1
    assert len(names) == PASSED


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(SUITE), "--engine", "oxigraph", "--only", "wrong-order"]) == 0
    out = capsys.readouterr().out
    assert "conformance/data" in out
    assert "the rows come in another order" in out


def test_a_folder_without_a_manifest_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--engine", "oxigraph"]) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT * FROM <a.ttl> FROM NAMED <b.ttl> {}", ["file:///x/a.ttl", "file:///x/b.ttl"]),
        ("BASE <http://example.org/d/> ASK from named\n<a.ttl> {}", ["http://example.org/d/a.ttl"]),
        ("SELECT * # FROM <a.ttl>\n{ ?from <b> 'FROM <c>' }", []),
        ('SELECT * { <http://example.org/#x> ?p """FROM <a>""" }', []),
    ],
)
def test_what_a_query_names_by_from(query: str, found: list[str]) -> None:
    assert list(sources(query, "file:///x/q.rq")) == found
