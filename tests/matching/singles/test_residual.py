"""The questions that no index decides, as the benchmark asks them: all but bags are decided one by one."""

from __future__ import annotations

import pytest

from tests.matching.singles.judges import batch, evaluated, singly
from triplewire.bench.match_residual import TEXTS, residual
from triplewire.bench.match_skeletons import Skeleton, key_term, number_term
from triplewire.bench.match_templates import Question, Template
from triplewire.matching.singles import single_of
from triplewire.model import Event, Kind
from triplewire.sparql.algebra import Bag
from triplewire.sparql.rewriting import parts

WORKLOAD = residual(10, 10.0)
KEY, VALUE = key_term(0), number_term(50_000_000)
EVENTS = batch([Event(f"http://bench.example/e/{number}", WORKLOAD.event(number)[1]) for number in range(200)])
ARRANGEMENTS = 5


@pytest.mark.parametrize("place", range(len(TEXTS)))
def test_every_pair_is_decided_as_the_evaluator_does(place: int) -> None:
    matched = 0
    for number in range(ARRANGEMENTS):
        asked = Question(Template(TEXTS[place](Skeleton(number)), plain=False), (KEY, VALUE)).sparql
        kind = (Kind.BINDINGS, Kind.SIGNAL)[number % 2]
        found = singly(asked, EVENTS, kind)
        assert found == evaluated(asked, EVENTS, kind)
        matched += sum(each is not None and each.matched for each in found)
    assert matched


def test_every_shape_but_those_with_bags_is_known() -> None:
    shapes = {each.shape for each in WORKLOAD.templates}
    unknown = {each for each in shapes if single_of(each) is None}
    assert unknown == {each for each in shapes if any(isinstance(part, Bag) for part in parts(each.query))}
    assert len(unknown) < len(shapes) / 2
