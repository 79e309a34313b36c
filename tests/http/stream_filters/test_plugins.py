"""Filters of a deployment: how they are found, made and held to what they promise."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.http.stream_filters.entries import entries
from triplewire.http.stream_filters.parameters import PluginCall
from triplewire.http.stream_filters.plugins import (
    ENTRY_POINT_GROUP,
    ChangedFilter,
    PluginFailed,
    PluginFilters,
    Verdict,
    apply_plugin,
)
from triplewire.model.errors import BadRequest, Unavailable
from triplewire.testing import event

MODULE = """
class Every:
    def __init__(self, n="2"):
        self.n, self.seen = int(n), 0
    def passes(self, batch):
        numbers = range(self.seen, self.seen + batch.num_rows)
        self.seen += batch.num_rows
        return [number % self.n == 0 for number in numbers]

class Mute:
    pass

def angry(): raise KeyError("secret")
"""
ENTRY_POINTS = f"""[{ENTRY_POINT_GROUP}]
every = deployed_filters:Every
mute = deployed_filters:Mute
angry = deployed_filters:angry
lost = deployed_filters:Nothing
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginFilters:
    """What an edge finds beside which a package with filters is installed."""
    (tmp_path / "deployed_filters.py").write_text(MODULE)
    about = tmp_path / "deployed_filters-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: deployed-filters\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "deployed_filters", raising=False)
    return PluginFilters.installed()


def test_a_filter_of_another_package_is_found_by_its_name_and_remembers(installed: PluginFilters) -> None:
    made, batch = installed.make(PluginCall("every", (("n", "3"),))), entries([event(number) for number in range(4)])
    assert [apply_plugin(made, batch).tolist() for _ in range(2)] == [
        [True, False, False, True],
        [False, False, True, False],
    ]
    assert apply_plugin(installed.make(PluginCall("every")), batch).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (PluginCall("none"), "there is no filter 'none' here; there are .*angry.*every"),
        (PluginCall("every", (("m", "3"),)), "filter every: .*unexpected keyword.*it takes filter.n"),
        (PluginCall("every", (("n", "three"),)), "filter every: invalid literal.*it takes filter.n"),
    ],
)
def test_who_names_it_wrongly_is_told_what_there_is(installed: PluginFilters, chosen: PluginCall, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        installed.make(chosen)


@pytest.mark.parametrize("name", ["mute", "angry", "lost"])
def test_one_that_cannot_be_made_is_no_fault_of_the_client_and_tells_nothing(
    installed: PluginFilters, name: str
) -> None:
    with pytest.raises(Unavailable, match=f"the filter {name} does not work here") as caught:
        installed.make(PluginCall(name))
    assert "secret" not in str(caught.value)


class Says:
    """Says what it was told to say."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def passes(self, batch: pa.Table) -> Verdict:
        if isinstance(self._verdict, Sequence) and not self._verdict:
            raise ZeroDivisionError
        return self._verdict


@pytest.mark.parametrize(
    "verdict",
    [[True, None], (True, False), np.array([True, False]), pa.array([True, None]), pa.chunked_array([[True], [False]])],
    ids=["list", "tuple", "numpy", "arrow", "chunked"],
)
def test_a_verdict_may_come_in_any_form(verdict: Verdict) -> None:
    assert apply_plugin(Says(verdict), entries([event(1), event(2)])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        ([True], "1 values for 2 events"),
        ([True] * 3, "3 values for 2 events"),
        ([], "ZeroDivisionError"),
        (np.array([1, 0]), "something other than true or false"),
        (pa.array(["yes", "no"]), "something other than true or false"),
    ],
)
def test_a_verdict_that_is_none_is_found_out(verdict: Verdict, told: str) -> None:
    with pytest.raises(PluginFailed, match=told):
        apply_plugin(Says(verdict), entries([event(1), event(2)]))


def test_those_that_come_with_the_project_are_named_by_it() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    named = project["project"]["entry-points"][ENTRY_POINT_GROUP]
    found = PluginFilters({name: EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in named.items()})
    assert isinstance(found.make(PluginCall("changed", (("property", "urn:p"),))), ChangedFilter)
