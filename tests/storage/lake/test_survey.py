"""Surveys and drawings: what lies in zones, in words, as JSON and as a picture that a browser takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.storage.lake.terms import Quad, place, rows_of, typed
from triplewire.storage.lake import survey
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.keys import term_key
from triplewire.storage.lake.ports import CommitBatch, TableChange
from triplewire.storage.lake.survey import LakeSurvey, describe_zone, format_bound, survey_document, survey_lake
from triplewire.storage.lake.zones import ZoneLayout, ZoneLayoutStore

FIVE = term_key(typed("5", "integer"))
ZONES = ZoneLayout().split("z0", "predicate", "<urn:p").split("z2", "object", FIVE)
QUADS: list[Quad] = [("<urn:g>", "<urn:s>", "<urn:p>", typed(str(number), "integer")) for number in range(8)]


def lake(data: Path) -> DeltaLake:
    """With all quads in zones, five of them in z3 and three in z4, and one event that is fresh."""
    table = data / "lake" / "quads"
    found, writer = DeltaLake(table), FileWriter(table)
    found.commit(CommitBatch("q", 0, 1), [writer.write(rows_of(QUADS[:1]))])
    parts: dict[str, list[Quad]] = {}
    for quad in QUADS:
        parts.setdefault(ZONES.locate(place(quad)), []).append(quad)
    added = tuple(replace(writer.write(rows_of(quads)), zone=zone) for zone, quads in parts.items())
    found.replace(TableChange(found.files().files, added, zones=ZoneLayoutStore(data / "lake" / "zones").write(ZONES)))
    found.commit(CommitBatch("q", 1, 2), [writer.write(rows_of(QUADS[:1]))])
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    lake(made)
    return made


@pytest.fixture(scope="module")
def found(data: Path) -> LakeSurvey:
    return survey_lake(DeltaLake(data / "lake" / "quads").files(), ZONES, {"z4": 7})


def test_a_survey_counts_what_files_hold(found: LakeSurvey) -> None:
    counted = {zone: (held.files, held.load.quads, held.load.reads) for zone, held in found.holdings.items()}
    assert counted == {"z1": (0, 0, 0), "z3": (1, 5, 0), "z4": (1, 3, 7)}
    assert (found.fresh.files, found.fresh.load.quads) == (1, 1)
    assert (found.share("z1"), found.share("z3")) == (0, 5 / 8)
    assert found.holdings["z3"].load.bytes > 1_000


def test_a_zone_in_words() -> None:
    assert [describe_zone(zone) for zone in ZONES.zones] == [
        "predicate < <urn:p",
        "<urn:p ≤ predicate, object < 5",
        "<urn:p ≤ predicate, 5 ≤ object",
    ]
    assert describe_zone(ZoneLayout().zones[0]) == "everything"


@pytest.mark.parametrize(
    ("bound", "shown"),
    [
        (term_key(typed("-1.5e300", "double")), "-1.5e+300"),
        (term_key(typed("2026-11-16T12:00:00+02:00", "dateTime")), "2026-11-16T10:00:00Z"),
        (term_key(typed("292000-01-01", "date")), "9152462764800000000 µs"),
        ("#", "#"),
        ("\U00087fff", "U+87FFF"),
        ("<http://example.org/" + "a" * 40 + "/end", "<http://exa…" + "a" * 28 + "/end"),
    ],
)
def test_a_bound_for_people(bound: str, shown: str) -> None:
    assert format_bound(bound) == shown


def test_the_picture_has_every_zone_and_every_cut(found: LakeSurvey) -> None:
    picture = ElementTree.fromstring(survey.draw_svg(found))
    space = "{http://www.w3.org/2000/svg}"
    titles = [each.text or "" for each in picture.iter(f"{space}title")]
    assert {each.split(":")[0] for each in titles if " quads" in each} == {"z1", "z3", "z4"}
    assert {each for each in titles if " quads" not in each} == {"predicate < <urn:p", "object < 5"}
    areas = {
        (group.find(f"{space}title").text or "").split(":")[0]: _area(group.find(f"{space}rect"))  # type: ignore[union-attr]
        for group in picture.iter(f"{space}g")
    }
    assert areas["z3"] / areas["z4"] == pytest.approx(5 / 3, rel=0.01)


def _area(rect: ElementTree.Element | None) -> float:
    assert rect is not None
    return float(rect.get("width", 0)) * float(rect.get("height", 0))


def test_another_order_says_what_it_costs() -> None:
    empty = survey_lake(DeltaLake(Path("nowhere")).files(), ZoneLayout(order="prefix"))
    assert "touches every zone" in survey_document(empty)["costs"]
    assert "z0" in survey.draw_svg(empty)
