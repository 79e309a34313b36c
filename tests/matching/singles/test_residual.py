"""The questions that no index decides, as the benchmark asks them: all are decided one by one."""

from __future__ import annotations

import pytest

from tests.matching.singles.judges import batch, evaluated, singly
from triplewire.bench.match_residual import TEXTS, residual
from triplewire.bench.match_skeletons import Skeleton, key_term, number_term
from triplewire.bench.match_templates import Template
from triplewire.model import Event, Kind

KEY, VALUE = key_term(0), number_term(50_000_000)
EVENTS = batch(
    [Event(f"http://bench.example/e/{number}", residual(10, 10.0).event(number)[1]) for number in range(200)]
)
ARRANGEMENTS = 5


@pytest.mark.parametrize("place", range(len(TEXTS)))
def test_nothing_is_undecided(place: int) -> None:
    matched = 0
    for number in range(ARRANGEMENTS):
        asked = Template(TEXTS[place](Skeleton(number)), plain=False).sparql((KEY, VALUE))
        kind = (Kind.BINDINGS, Kind.SIGNAL)[number % 2]
        found = singly(asked, EVENTS, kind)
        assert found == evaluated(asked, EVENTS, kind)
        matched += sum(each is not None and each.matched for each in found)
    assert matched
