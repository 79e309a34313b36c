"""The questions that no index decides, as the benchmark asks them: all are decided one by one."""

from __future__ import annotations

import orjson
import pytest

from bench.match_templates import FilledTemplate, FilterTemplate, Template
from bench.match_workloads import BAGS, TEXTS, Skeleton, make_residual, write_key, write_number
from tests.matching.interpreter import filters
from tests.matching.interpreter.oracles import batch, evaluated, singly
from triplewire.matching.interpreter.matcher import interpret_shape
from triplewire.model import Event, Kind

WORKLOAD = make_residual(10, 10.0)
KEY, VALUE = write_key(0), write_number(50_000_000)
PUBLISHED = [Event(f"http://bench.example/e/{number}", WORKLOAD.event(number)[1]) for number in range(200)]
EVENTS = batch(PUBLISHED)
ARRANGEMENTS = 5


@pytest.mark.parametrize("place", range(len(TEXTS)))
def test_every_pair_is_decided_as_the_evaluator_does(place: int) -> None:
    matched = 0
    for number in range(ARRANGEMENTS):
        asked = FilledTemplate(Template(TEXTS[place](Skeleton(number)), plain=False), (KEY, VALUE)).sparql
        kind = (Kind.BINDINGS, Kind.SIGNAL)[number % 2]
        found = singly(asked, EVENTS, kind)
        assert found == evaluated(asked, EVENTS, kind)
        matched += sum(each is not None and each.matched for each in found)
    assert matched


@pytest.mark.parametrize("place", range(len(BAGS)))
def test_so_is_every_pair_with_a_bag(place: int) -> None:
    matched = 0
    for number in range(ARRANGEMENTS):
        template = WORKLOAD.templates[number * (len(TEXTS) + len(BAGS)) + len(TEXTS) + place]
        assert isinstance(template, FilterTemplate)
        found = filters.singly(orjson.loads(template.fields((KEY, VALUE))["filter"]), PUBLISHED)
        assert found == [template.holds((KEY, VALUE), _objects(each)) for each in PUBLISHED]
        matched += found.count(True)
    assert matched


def _objects(event: Event) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for _, predicate, object_ in (line.split("\t") for line in event.text.split("\n")):
        found.setdefault(predicate, []).append(object_)
    return found


def test_every_shape_is_known() -> None:
    shapes = {each.shape for each in WORKLOAD.templates}
    assert len(shapes) == len(WORKLOAD.templates)
    assert not [each for each in shapes if interpret_shape(each) is None]
