"""Runs: cases put to an engine, and what came of each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from tests.conformance import datasets, results
from tests.conformance.comparisons import difference
from tests.conformance.engines import Engine, Refused
from tests.conformance.graphs import path_of
from tests.conformance.manifests import Case, Kind

_LONGEST = 400
"""Characters of a reason: the SQL of a failed query is not one."""


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Outcome:
    case: Case
    verdict: Verdict
    reason: str = ""


def run(case: Case, engine: Engine) -> Outcome:
    """Put one case to the engine. Whatever goes wrong is the case's failure, never the run's."""
    if reason := unfit(case, engine):
        return Outcome(case, Verdict.SKIPPED, reason)
    try:
        reason = (_syntax if case.kind == Kind.SYNTAX else _evaluation)(case, engine)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    return Outcome(case, Verdict.FAILED, _short(reason)) if reason else Outcome(case, Verdict.PASSED)


@cache
def overtaken() -> dict[str, str]:
    """Tests that later specifications overtook, with their reasons."""
    found: dict[str, str] = tomllib.loads((Path(__file__).parent / "overtaken.toml").read_text())["overtaken"]
    return found


def unfit(case: Case, engine: Engine) -> str | None:
    """Why the case is not for this engine; None where it is."""
    if case.withdrawn:
        return "the test was withdrawn"
    if reason := overtaken().get(case.name):
        return reason
    if case.kind == Kind.UPDATE:
        return "SPARQL Update: events are published, never changed"
    if case.kind == Kind.OTHER:
        return f"{case.type} is not about a query and its answer"
    if case.remote:
        return "SERVICE: needs endpoints elsewhere"
    if case.regimes and not engine.regimes & set(case.regimes):
        return f"entailment under {' or '.join(case.regimes)}"
    if case.query is None:
        return "the manifest gives no query"
    return "the manifest gives no result" if case.kind == Kind.EVALUATION and case.result is None else None


def _syntax(case: Case, engine: Engine) -> str | None:
    try:
        engine.parse(_query(case), case.query or "")
    except Refused as error:
        return None if case.negative else f"refused: {error}"
    return "parsed, though it is no query" if case.negative else None


def _evaluation(case: Case, engine: Engine) -> str | None:
    text = _query(case)
    engine.load(datasets.load(case, text))
    expected = results.read(_file(case.result))
    return difference(expected, engine.run(text, case.query or ""), lax=case.lax)


def _query(case: Case) -> str:
    return _file(case.query).read_bytes().decode("utf-8")


def _file(iri: str | None) -> Path:
    path = path_of(iri or "")
    if path is None:
        raise ValueError(f"{iri} is not a file")
    return path


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"
