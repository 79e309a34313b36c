"""Dry runs: the events of the last hour that a subscription would have matched."""

from __future__ import annotations

import json

import pytest

from triplewire.matching.dry_run import DRY_RUN_SECONDS, DryRun, run_dry
from triplewire.model import Kind, format_position
from triplewire.model.errors import Unsupported
from triplewire.sparql import parse_query
from triplewire.storage.log.ports import LOOKUP_POSITIONS
from triplewire.testing import TWIN_KINDS, Twin, open_twin, publication
from triplewire.testing.samples import EXAMPLE

ABOVE = f"SELECT ?o {{ ?o <{EXAMPLE}result> ?v FILTER(?v > 6) }}"


def run_on(
    stores: Twin,
    sparql: str = ABOVE,
    kind: Kind = Kind.SIGNAL,
    seconds: float = DRY_RUN_SECONDS,
    positions: int = LOOKUP_POSITIONS,
) -> DryRun:
    return run_dry(parse_query(sparql), kind, stores.log, stores.clock, seconds=seconds, positions=positions)


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_events_of_the_last_hour_count_and_the_newest_are_told(kind: str) -> None:
    with open_twin(kind) as stores:
        stores.log.append([publication(8, 9)])
        stores.clock.advance(3601)
        stores.log.append([publication(*range(10, 14))])
        stores.registry.put([("other", "x", {})])
        stores.clock.advance(3599)
        stores.log.append([publication(1, 7, 3)])
        found = run_on(stores)
    assert (found.matched, found.looked_at, found.complete) == (5, 7, True)
    value = json.loads(json.dumps(found.value()))
    assert [each["event"] for each in value["examples"]] == [f"{EXAMPLE}event/{number}" for number in (7, 13, 12)]
    assert value["examples"][0]["position"] == format_position(9)
    assert value["examples"][0]["stream"] == "test"


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize(
    ("sparql", "tier"),
    [
        (f"ASK {{ ?o <{EXAMPLE}result> ?v FILTER(STRLEN(STR(?v)) < 2 && ?v > 6) }}", "evaluator"),
        (ABOVE, "index"),
        (f"ASK {{ ?o <{EXAMPLE}result> ?v OPTIONAL {{ ?o <{EXAMPLE}unit> ?u }} FILTER(?v > 6) }}", "evaluator"),
        (f"CONSTRUCT {{ ?o <{EXAMPLE}high> ?v }} WHERE {{ ?o <{EXAMPLE}result> ?v FILTER(?v > 6) }}", "index"),
    ],
)
def test_it_tells_how_it_would_be_matched(kind: Kind, sparql: str, tier: str) -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(5, 6, 7)])
        found = run_on(stores, sparql, kind)
    value = found.value()
    assert (value["matched"], value["of"], value["tier"]) == (1, 3, tier)
    six = '"6"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert value["shape"]["constants"][-1] == six
    index = value["plan"]["index"]
    assert (None if index is None else index["threshold"]) == (f"greater {six}" if tier == "index" else None)
    assert f"<{EXAMPLE}result>" in value["plan"]["algebra"]
    assert value["plan"]["sql"].startswith("SELECT")


def test_of_too_many_events_the_newest_are_looked_at() -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(*range(10))])
        found = run_on(stores, positions=4)
    assert (found.matched, found.looked_at, found.complete) == (3, 4, False)


def test_it_ends_in_time() -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(7)])
        found = run_on(stores, seconds=-1.0)
    assert (found.matched, found.looked_at, found.complete) == (0, 0, False)


def test_nothing_was_published() -> None:
    with open_twin("memory") as stores:
        found = run_on(stores)
    assert (found.matched, found.looked_at, found.complete, found.examples) == (0, 0, True, ())


def test_what_cannot_be_made_is_not_run_on() -> None:
    with open_twin("memory") as stores, pytest.raises(Unsupported, match="DESCRIBE"):
        run_on(stores, "DESCRIBE <urn:x>")
