"""`bench sparql`: its data are what it says, every query has an answer, and engines that disagree are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from bench.city import City
from bench.harness import Disagreement
from bench.sparql import (
    QUERIES,
    Oxigraph,
    check_rows,
    count_rows,
    draw,
    make_ratio_bar,
    make_tables,
    measure_compiler,
    run,
)
from triplewire.model.terms import RDF_TYPE
from triplewire.rdf import N_QUADS, decode


@pytest.fixture(scope="module")
def rival(tmp_path_factory: pytest.TempPathFactory) -> Oxigraph:
    store = Oxigraph(tmp_path_factory.mktemp("rival"))
    store.load(City(5_000).write_bodies(100))
    return store


@pytest.mark.parametrize("wanted", [1_000, 5_000, 30_000])
def test_a_city_has_about_as_many_quads_as_were_wished_for(wanted: int) -> None:
    city = City(wanted)
    hierarchy, *observations = decode(b"".join(city.write_bodies(100)), N_QUADS)
    assert {len(event.quads) for event in observations} == {5}
    assert len(observations) == city.events
    assert len(hierarchy.quads) + 5 * city.events == city.quads
    assert abs(city.quads - wanted) < 5


def test_every_platform_is_in_the_city() -> None:
    city = City(1_000_000)
    (event,) = decode(city.write_hierarchy().encode(), N_QUADS)
    parts = {quad.subject: quad.object for quad in event.quads}
    assert len(parts) == len(event.quads), "nothing hangs in two places"
    for thing in parts:
        steps = 0
        while thing in parts:
            thing, steps = parts[thing], steps + 1
        assert thing == "<http://city.example/place/0>"
        assert steps < 10


def test_observations_are_of_sensors_that_hang_somewhere() -> None:
    city = City(5_000)
    events = decode(b"".join(city.write_bodies(100)), N_QUADS)
    hung = {quad.subject for quad in events[0].quads}
    assert {event.quads[1].object for event in events[1:]} <= hung
    assert {event.quads[0].predicate for event in events[1:]} == {RDF_TYPE}


@pytest.mark.parametrize("question", QUERIES, ids=lambda each: each.name)
def test_every_query_has_an_answer(rival: Oxigraph, question: Any) -> None:  # noqa: ANN401
    found = [count_rows(question, rival.answer(question.text(City(5_000), turn))) for turn in range(5)]
    assert any(found)


def test_two_triples_that_are_one_count_once() -> None:
    (construct,) = [each for each in QUERIES if each.gives_triples]
    assert count_rows(construct, b"<urn:a> <urn:b> <urn:c> .\n" * 2 + b"<urn:a> <urn:b> <urn:d> .\n") == 2


def test_engines_that_disagree_are_told() -> None:
    check_rows(QUERIES[0], "duckdb", 5, 5)
    with pytest.raises(Disagreement, match="spark gives 4 rows, pyoxigraph 5"):
        check_rows(QUERIES[0], "spark", 4, 5)


def test_every_query_compiles() -> None:
    found = measure_compiler(City(5_000))
    assert set(found) == {each.name for each in QUERIES}
    assert all(each["first"] > 0 and each["again"] >= 0 for each in found.values())


REPORT: dict[str, Any] = {
    "machine": {"cores": 2, "memory_gb": 24},
    "quads": 5_000,
    "runs": 3,
    "load_s": {"triplewire": 2.5, "oxigraph": 0.5},
    "queries": {
        "lookup": {"rows": 5, "duckdb_ms": 4.2, "spark_ms": None, "oxigraph_ms": 0.0, "ratio": 0.01},
        "average": {"rows": 1_005, "duckdb_ms": 30.0, "spark_ms": 400.0, "oxigraph_ms": 900.0, "ratio": 30.0},
    },
    "compile_ms": {"first": 9.0, "again": 1.0, "slowest_again": 2.0},
}


def test_the_picture_has_a_bar_for_each_time() -> None:
    tree = ElementTree.fromstring(draw(REPORT))
    bars = [each for each in tree.iter() if each.tag.endswith("rect") and each.get("height") == "14"]
    assert len(bars) == 5
    widths = [float(each.get("width", "")) for each in bars]
    assert widths == sorted(widths[:2], reverse=True) + sorted(widths[2:])
    assert "average per property" in "".join(tree.itertext())


def test_the_table_tells_who_is_faster() -> None:
    assert make_ratio_bar(10.0).plain == " " * 18 + "│██████"
    assert make_ratio_bar(0.1).plain == "██████".rjust(18) + "│"
    assert make_ratio_bar(1.0).plain.strip() == "│"
    assert len(make_ratio_bar(0.0).plain) == 19
    console = Console(width=120)
    with console.capture() as captured:
        console.print(*make_tables(REPORT))
    assert "1,005" in captured.get()
    assert "1.0 ms for one seen before" in captured.get()


@pytest.mark.processes
def test_a_small_run_over_the_real_processes(tmp_path: Path) -> None:
    said: list[str] = []
    report = run(5_000, 2, said.append, spark=False)
    assert report["quads"] == City(5_000).quads
    assert set(report["queries"]) == {each.name for each in QUERIES}
    assert all(each["duckdb_ms"] > 0 for each in report["queries"].values())
    assert sum(text.startswith("query ") for text in said) == len(QUERIES)
