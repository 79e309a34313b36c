"""`zones`: the map in a terminal, as JSON and as a picture, of a lake that nobody serves."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import orjson
from rich.console import Console
from typer.testing import CliRunner

from tests.storage.lake.test_survey import FIVE, ZONES, lake
from triplewire.cli.app import app
from triplewire.cli.lake import draw_zones
from triplewire.config.files import prepare_directory
from triplewire.storage.lake.survey import survey_lake


def test_the_map_in_a_terminal(tmp_path: Path) -> None:
    console = Console(width=120, file=StringIO(), record=True)
    console.print(draw_zones(survey_lake(lake(tmp_path).files(), ZONES, {"z4": 7})))
    text = console.export_text()
    for part in (
        "3 zones, 8 quads",
        "predicate │ <urn:p",
        "object │ 5",
        "z3",
        "62.5%",
        "7 reads",
        "1 quads in 1 files",
    ):
        assert part in text


def test_the_command_reads_a_lake_that_nobody_serves(tmp_path: Path) -> None:
    prepare_directory(tmp_path)
    lake(tmp_path)
    runner = CliRunner()
    told = runner.invoke(app, ["zones", "--data", str(tmp_path), "--json", "--svg", str(tmp_path / "zones.svg")])
    report = orjson.loads(told.stdout)
    assert [(each["zone"], each["quads"], each["words"]) for each in report["zones"]][1] == (
        "z3",
        5,
        "<urn:p ≤ predicate, object < 5",
    )
    assert report["zones"][1]["box"]["object"] == {"least": None, "below": FIVE}
    assert "</svg>" in (tmp_path / "zones.svg").read_text()
    shown = runner.invoke(app, ["zones", "--data", str(tmp_path)])
    assert (shown.exit_code, "z4" in shown.stdout) == (0, True)


def test_where_there_is_no_lake_that_is_told(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["zones", "--data", str(tmp_path)])
    assert "there is no lake in" in str(told.exception)
