"""The suites of the W3C on both engines: what fails is listed with its reason, and nothing else does."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.engines import start
from tests.conformance.manifests import Kind
from tests.conformance.reports import Report
from tests.conformance.runs import Verdict, run
from tests.conformance.w3c import gather
from triplewire import sparql

HERE = Path(__file__).parent
SUITES = Path(os.environ.get("TRIPLEWIRE_W3C") or HERE.parents[2] / "shared" / "w3c")

pytestmark = [
    pytest.mark.skipif(not SUITES.is_dir(), reason="no suites: TRIPLEWIRE_W3C names no folder, ../shared/w3c is none"),
    pytest.mark.skipif(not hasattr(sparql, "compile_query"), reason="the compiler of whole queries is not there yet"),
    pytest.mark.timeout(1_800),
]

LEAST = {"duckdb": 0.98, "spark": 0.96}
"""Of the evaluation tests."""
ENGINES = ["duckdb", pytest.param("spark", marks=pytest.mark.spark)]


@cache
def report(engine: str) -> Report:
    """Run once, however many tests look at it."""
    started = start(engine)
    return Report(engine, tuple(run(case, started) for case in gather([SUITES])))


def listed(engine: str) -> dict[str, str]:
    """The tests that are known to fail, with their reasons."""
    with (HERE / f"failures-{engine}.toml").open("rb") as file:
        found: dict[str, str] = tomllib.load(file)["failures"]
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_what_fails_is_listed_and_what_is_listed_fails(engine: str) -> None:
    failed = {each.case.name: each.reason for each in report(engine).of(Verdict.FAILED)}
    known = listed(engine)
    assert {name: reason for name, reason in failed.items() if name not in known} == {}, "fails, but is not listed"
    assert known.keys() - failed.keys() == set(), "is listed, but does not fail"
    assert all(known.values()), "each has a reason"


@pytest.mark.parametrize("engine", ENGINES)
def test_enough_evaluation_tests_pass(engine: str) -> None:
    rate = report(engine).rate(Kind.EVALUATION)
    assert rate is not None
    assert rate >= LEAST[engine]


@pytest.mark.parametrize("engine", ENGINES)
def test_queries_parse_and_what_is_none_is_refused(engine: str) -> None:
    assert [(each.case.name, each.reason) for each in report(engine).of(Verdict.FAILED, Kind.SYNTAX)] == []
    assert report(engine).of(Verdict.PASSED, Kind.SYNTAX)
