"""`bench match`: workloads are what they say, by an engine that we did not write, and what differs from it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from bench.commands import match
from bench.harness import Disagreement
from bench.match import check_matches, draw, register, write_events
from bench.match_oracle import MatchCounter, SampledEvent, count_by_brute_force, measure_parser
from bench.match_templates import FilledTemplate, Template
from bench.match_workloads import (
    CLASSES,
    DEEP,
    WORKLOADS,
    MatchWorkload,
    choose_workload,
    find_ancestors,
    find_workload,
    write_ontology,
)
from tests import oracle
from tests.matching.filters import reference
from triplewire.matching.filters import parse_filters
from triplewire.matching.matcher import Matcher
from triplewire.matching.prepared_queries import lift_request
from triplewire.model import ENTRIES, MATCHES, Event
from triplewire.model.errors import TriplewireError, Unsupported

NAMES = [*WORKLOADS]
SHAPES = {
    "paths": 1,
    "mixed": 100,
    "distinct": 300,
    "sensors": 1,
    "ranges": 1,
    "classes": 1,
    "everything": 101,
    "residual": 100,
}

KNOWLEDGE = reference.Knowledge([(s, p, o) for s, p, o in (line.split("\t") for line in write_ontology().split("\n"))])


def sampled(workload: MatchWorkload, numbers: range) -> list[SampledEvent]:
    return [
        SampledEvent(each, stream, f"urn:e:{each}", text) for each in numbers for stream, text in [workload.event(each)]
    ]


def one_by_one(sample: Sequence[SampledEvent], asked: Sequence[FilledTemplate]) -> Counter[int]:
    """Each pair as a query of its own."""
    return Counter(
        each.position
        for each in sample
        for question in asked
        if question.stream in (None, each.stream) and matches(question, Event(each.event, each.text))
    )


def matches(question: FilledTemplate, event: Event) -> bool:
    """Filters as their reference says, which knows the ontology as triples."""
    fields = question.template.fields(question.terms)
    if fields["sparql"] is not None:
        return oracle.matches(event, question.sparql)
    return reference.holds(parse_filters(json.loads(fields["filter"])), event, KNOWLEDGE)


@pytest.mark.parametrize("name", NAMES)
def test_events_have_five_quads_and_none_is_like_another(name: str) -> None:
    workload = choose_workload(name, 1_000).workload
    texts = [workload.event(number)[1] for number in range(500)]
    assert {len(text.split("\n")) for text in texts} == {5}
    assert {len(line.split("\t")) for text in texts for line in text.split("\n")} == {3}
    assert len(set(texts)) == 500
    assert measure_parser(texts[:10]) > 0


@pytest.mark.parametrize("name", NAMES)
def test_what_is_drawn_once_is_drawn_again(name: str) -> None:
    first, second = choose_workload(name, 500).workload, choose_workload(name, 500).workload
    assert [first.event(number) for number in range(50)] == [second.event(number) for number in range(50)]
    for number in range(200):
        one, other = first.question(number), second.question(number)
        assert one.template.fields(one.terms) == other.template.fields(other.terms)


@pytest.mark.parametrize("name", NAMES)
def test_a_template_filled_in_is_the_text_lifted(name: str) -> None:
    workload = choose_workload(name, 300).workload
    for number in range(0, 300, 3):
        question = workload.question(number)
        made = question.make_subscription("x")
        lifted = lift_request(question.template.asked(question.terms))
        assert (made.shape, made.constants) == (lifted.shape.key, lifted.constants)
        assert made.stream == question.stream


@pytest.mark.parametrize("name", NAMES)
def test_there_are_as_many_shapes_as_it_says(name: str) -> None:
    workload = choose_workload(name, 300).workload
    used = {workload.question(number).template.shape.key for number in range(300)}
    assert used == {template.shape.key for template in workload.templates}
    assert len(used) == SHAPES[name]


@pytest.mark.parametrize("name", NAMES)
def test_it_matches_about_as_often_as_it_should(name: str) -> None:
    chosen = choose_workload(name, 500, 1.0)
    events = 60 if name == "residual" else 400
    asked = [chosen.workload.question(number) for number in range(500)]
    found = count_by_brute_force(sampled(chosen.workload, range(events)), asked)
    always = 500 / 20 if name == "everything" else 0
    assert 0.7 < found.total() / events - always < 1.3


@pytest.mark.parametrize("name", NAMES)
def test_brute_force_is_each_pair_by_itself(name: str) -> None:
    workload = choose_workload(name, 300, 2.0).workload
    asked = [workload.question(number) for number in range(300)]
    sample = sampled(workload, range(6))
    assert count_by_brute_force(sample, asked) == one_by_one(sample, asked)


def test_matches_follow_the_number_of_subscriptions() -> None:
    assert choose_workload("paths", 100_000).matches == pytest.approx(0.4)
    assert choose_workload("paths", 1_000_000).matches == pytest.approx(4)
    assert choose_workload("distinct", 1_000).matches == choose_workload("distinct", 3_000).matches == 1


def test_a_workload_that_there_is_not() -> None:
    with pytest.raises(Unsupported, match="there are paths, mixed"):
        choose_workload("nothing", 10)


def test_the_ontology_is_a_tree_of_ten_thousand_classes_eight_deep() -> None:
    above = {lower: upper for lower, _, upper in KNOWLEDGE.triples}
    names = above.keys() | set(above.values())
    assert len(names) == CLASSES == 10_000
    assert len(above) == CLASSES - 1
    depths = [len(find_ancestors(each)) - 1 for each in names]
    assert max(depths) == DEEP == 8
    assert all(find_ancestors(lower) == {lower} | find_ancestors(upper) for lower, upper in above.items())


def test_residual_has_bags_and_regular_expressions_and_aggregates() -> None:
    texts = " ".join(each.text for each in choose_workload("residual", 10).workload.templates)
    for part in ("REGEX", "OPTIONAL", "NOT EXISTS", "MAX(", "AVG(", "#=/>", "#</<"):
        assert part in texts


def test_few_have_as_many_matches_as_many() -> None:
    for name in ("classes", "everything"):
        few, many = choose_workload(name, 1_000, 2.0), choose_workload(name, 10_000, 2.0)
        assert few.matches == many.matches
        assert {each.shape.key for each in few.workload.templates} == {
            each.shape.key for each in many.workload.templates
        }


def test_a_slot_that_is_no_constant_is_told() -> None:
    with pytest.raises(TriplewireError, match="slots"):
        _ = Template("SELECT * { ?s $i0 ?o }").shape


@pytest.mark.parametrize("name", NAMES)
def test_what_stands_in_the_registry_matches_what_it_should(name: str, tmp_path: Path) -> None:
    standing = register(choose_workload(name, 200, 2.0), tmp_path / "data")
    entries = write_events(standing.chosen.workload, range(100, 140), standing.last, tmp_path / "events", 2)
    sample = entries.sample(10)
    assert [each.position for each in sample] == [standing.last + 1 + 4 * number for number in range(10)]
    assert len(entries.read_texts(5)) == 5
    matcher = Matcher(standing.ports.open_registry(), tmp_path / "index")
    found = matcher.match(table(sample))
    right = count_by_brute_force(sample, standing.questions())
    assert {each.position: standing.counter.count(found, each.position) for each in sample} == {
        each.position: right[each.position] for each in sample
    }
    assert right.total() > 0


def test_the_subscriptions_that_stand_are_those_of_the_registry(tmp_path: Path) -> None:
    standing = register(choose_workload("mixed", 250), tmp_path / "data")
    changes = [each for each in standing.ports.open_registry().changes(0, standing.last) if each.kind == "subscription"]
    made = [standing.make_subscription(number) for number in range(len(standing))]
    assert [each.position for each in changes] == [each.since for each in made]
    assert [each.key for each in changes] == [each.id for each in made[0:250]]
    assert made[-1].since == standing.last


def test_a_row_of_a_group_counts_for_those_whose_threshold_it_passes() -> None:
    chosen = choose_workload("ranges", 100, 50.0)
    question = chosen.workload.question(0)
    asked = [
        FilledTemplate(question.template, (f'"{threshold}"^^<http://www.w3.org/2001/XMLSchema#decimal>',))
        for threshold in (1, 2, 2, 3)
    ]
    counter = MatchCounter.of([each.make_subscription("x") for each in asked], [question.template.shape])
    (group,) = counter.groups

    def counted(*rows: tuple[int, float]) -> int:
        made = [{"position": at, "group": group, "value": value} for at, value in rows]
        return counter.count(pa.Table.from_pylist(made, schema=MATCHES))

    assert [counted((7, value)) for value in (0.5, 1.0, 1.5, 2.0, 2.5, 9.0)] == [0, 0, 1, 1, 3, 4]
    assert counted((7, 1.5), (7, 2.5), (8, 9.0)) == 3 + 4
    assert counted() == 0


def test_a_difference_is_told() -> None:
    check_matches("urn:e", 3, 3)
    with pytest.raises(Disagreement, match="urn:e: 2 subscriptions were matched, brute force matches 3"):
        check_matches("urn:e", 2, 3)


REPORT: dict[str, Any] = {
    "workload": "paths",
    "subscriptions": 100_000,
    "shapes": 1,
    "runs": [50_000, 100_000],
    "matches": {"per_event": 0.4, "all": 1_000},
    "ratio": 2.5,
    "growth": {"from": 1_000, "events_per_s": 200_000},
    "parse_events_per_s": 40_000,
    "passed_on_per_s": 400_000,
}


def test_the_picture_has_a_bar_for_each_rate() -> None:
    tree = ElementTree.fromstring(draw(REPORT))
    bars = [float(each.get("width", "")) for each in tree.iter() if each.get("height") == "14"]
    assert [round(each / bars[-1], 3) for each in bars] == [0.125, 0.25, 0.5, 0.1, 1.0]
    assert "with 1,000 subscriptions" in "".join(tree.itertext())
    assert "with" not in "".join(ElementTree.fromstring(draw({**REPORT, "growth": None})).itertext())


def test_help_and_page_name_every_workload() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    for name, sort in WORKLOADS.items():
        assert f"`{name}`" in (match.__doc__ or "")
        assert f"`{name}`" in page
        assert find_workload(name).usual == sort.usual


@pytest.mark.processes
def test_a_small_run() -> None:
    """In a process of its own: the size of a JVM's memory is that which it was started with."""
    sizes = ["--workload", "mixed", "--subscriptions", "300", "--events", "2000", "--runs", "2"]
    command = [sys.executable, "-m", "triplewire", "bench", "match", *sizes, "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["shapes"] == 100
    assert len(report["runs"]) == 2
    assert report["ratio"] > 0
    assert report["checked"]["events"] == 200
    assert done.stderr.count("run ") >= 2


def table(sample: Sequence[SampledEvent]) -> pa.Table:
    rows = [
        {
            "position": each.position,
            "stream": each.stream,
            "event": each.event,
            "text": each.text,
            "time": 0,
            "received": 0,
            "syntax": "application/n-quads",
        }
        for each in sample
    ]
    return pa.Table.from_pylist(rows, schema=ENTRIES)
