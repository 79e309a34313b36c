"""The suites of the W3C on both engines: what fails is listed with its reason, and nothing else does."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.conformance.manifests import Kind
from tests.conformance.runs import Verdict
from tests.conformance.w3c import gather, put
from tests.sparql.w3c_suites import MISSING, ROOT

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.skipif(not ROOT.is_dir(), reason=MISSING),
    pytest.mark.timeout(1_800),
]

LEAST = {"duckdb": 0.98, "spark": 0.96}
"""Of the evaluation tests."""


def listed(engine: str) -> dict[str, str]:
    """The tests that are known to fail, with their reasons."""
    with (HERE / f"failures-{engine}.toml").open("rb") as file:
        found: dict[str, str] = tomllib.load(file)["failures"]
    return found


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_suites(engine: str) -> None:
    """One test for all that a run must show, as a run takes its time."""
    report = put(gather([ROOT]), engine)
    failed = {each.case.name: each.reason for each in report.of(Verdict.FAILED)}
    known = listed(engine)
    assert {name: reason for name, reason in failed.items() if name not in known} == {}, "fail, but are not listed"
    assert known.keys() - failed.keys() == set(), "are listed, but do not fail"
    assert all(known.values()), "each that fails has a reason"
    assert report.of(Verdict.FAILED, Kind.SYNTAX) == [], "all queries parse, and what is none is refused"
    assert (report.rate(Kind.EVALUATION) or 0) >= LEAST[engine]
    assert report.rate(Kind.SYNTAX) == 1
