"""Memberships: who belongs to which group, and what passes a threshold."""

from __future__ import annotations

import numpy as np
import pytest

from tests.matching.index.generated import VALUES
from triplewire.matching.index import Memberships
from triplewire.matching.index.numbers import DECIDED, parse_instant, parse_number
from triplewire.matching.shapes import lift
from triplewire.model.terms import XSD
from triplewire.sparql import parse_query


def memberships(text: str) -> tuple[Memberships, tuple[str, ...]]:
    lifted = lift(parse_query(text), solutions=False)
    return Memberships(lifted.shape), lifted.constants


def threshold(term: str) -> float | None:
    made, constants = memberships(f"ASK {{ ?s <urn:v> ?v FILTER(?v > {term}) }}")
    found = made.of(constants)
    return None if found is None else found.threshold


@pytest.mark.parametrize("term", [each for each in VALUES if XSD in each])
def test_thresholds_are_the_values_that_the_kernel_reads(term: str) -> None:
    """What the kernel decides of an event's term is what a threshold of the same text is."""
    data = np.frombuffer(term.encode(), np.uint8)
    for read in (parse_number, parse_instant):
        state, value = read(data, 0, len(data))
        if state == DECIDED:
            assert threshold(term) == value


def test_members_of_a_group_differ_in_the_threshold_alone() -> None:
    made, _ = memberships("ASK { ?s <urn:by> <urn:a> ; <urn:v> ?v FILTER(?v > 1) }")
    given = [("<urn:a>", "5"), ("<urn:a>", "7"), ("<urn:b>", "5")]
    found = [made.of((node, f'"{value}"^^<{XSD}integer>')) for node, value in given]
    one, other, apart = (each for each in found if each is not None)
    assert (one.group, one.threshold, other.threshold) == (other.group, 5.0, 7.0)
    assert apart.group != one.group


@pytest.mark.parametrize(
    ("op", "passing"),
    [
        (">", [False, False, True]),
        (">=", [False, True, True]),
        ("<", [True, False, False]),
        ("<=", [True, True, False]),
    ],
)
def test_a_value_passes_as_the_comparison_says(op: str, passing: list[bool]) -> None:
    made, constants = memberships(f"ASK {{ ?s <urn:v> ?v FILTER(?v {op} 5) }}")
    found = made.of(constants)
    assert found
    assert found.concerns(np.array([4.0, 5.0, 6.0])).tolist() == passing


@pytest.mark.parametrize(
    "text",
    [
        "ASK { ?s <urn:v> ?v OPTIONAL { ?s <urn:w> ?w } }",
        'ASK { ?s <urn:v> ?v FILTER(REGEX(?v, "a")) }',
        "ASK {}",
        "ASK { GRAPH ?s { ?s <urn:v> ?v } }",
        "ASK { ?e <https://triplewire.dev/ns#stream> ?name }",
    ],
)
def test_what_the_index_does_not_decide_has_no_groups(text: str) -> None:
    made, constants = memberships(text)
    assert made.program is None
    assert made.of(constants) is None
