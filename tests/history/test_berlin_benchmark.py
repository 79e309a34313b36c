"""The four queries of EventCloud's experiment with the Berlin SPARQL Benchmark, on a lake that lies in zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pyoxigraph as ox
import pytest

from tests.storage.lake.test_delta import entries
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.requests import QueryLimits
from triplewire.model import Event
from triplewire.model.clock import ManualClock
from triplewire.sparql import CompiledQuery, compile_query, parse_query
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import MaintenanceContext, compact
from triplewire.storage.lake.ports import CommitBatch, Snapshot, TableChange
from triplewire.storage.lake.read_counts import READ_COUNT_SECONDS, ReadCounter, load_read_counts
from triplewire.storage.lake.zones import ZoneLayout, ZoneLayoutStore
from triplewire.testing.samples import COUNTRIES, INSTANCES, REVIEW, VOCABULARY, Shop

PREFIXES = f"""
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX bsbm: <{VOCABULARY}>
PREFIX bsbm-ins: <{INSTANCES}>
PREFIX iso: <{COUNTRIES}>
PREFIX rev: <{REVIEW}>
"""
QUERIES = {
    "the producer in a country": (
        """CONSTRUCT { iso:DE <http://www.ecommerce.com/Producers> ?producer }
           WHERE { ?producer rdf:type bsbm:Producer . ?producer bsbm:country iso:DE }""",
        1,
        0.3,
    ),
    "all reviews": ("SELECT ?review { ?review rdf:type rev:Review }", 6_660, 0.3),
    "all types": ("SELECT ?s ?o { ?s rdf:type ?o }", 25_920, 0.3),
    "all of one type": (
        """CONSTRUCT { bsbm-ins:ProductType1 ?a ?b . ?c ?d bsbm-ins:ProductType1 }
           WHERE { bsbm-ins:ProductType1 ?a ?b . ?c ?d bsbm-ins:ProductType1 }""",
        677,
        0.8,
    ),
}
"""What is asked, how many answers the experiment had, and the share of files that may be read for it."""

CUTS = (
    ("z0", "predicate", f"<{VOCABULARY}p"),
    ("z1", "predicate", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"),
    ("z2", "predicate", f"<{VOCABULARY}v"),
    ("z3", "subject", f"<{INSTANCES}P"),
    ("z4", "predicate", "<http://www.w3.org/2000/"),
    ("z9", "object", f"<{INSTANCES}"),
)
"""Zones that are cut from one another; the two parts of a zone have the next two numbers."""


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return [*Shop().events()]


@pytest.fixture(scope="module")
def lake(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("shop")
    table, writer = DeltaLake(folder / "quads"), FileWriter(folder / "quads")
    for number, first in enumerate(range(0, len(events), 6_000)):
        part = events[first : first + 6_000]
        table.commit(CommitBatch("q", number, first + len(part)), [writer.write(entries(*part, first=first + 1))])
    maps = ZoneLayoutStore(folder / "zones")
    zones = reduce(lambda zones, cut: zones.split(*cut), CUTS, ZoneLayout())
    table.replace(TableChange((), (), zones=maps.write(zones)))
    compact(MaintenanceContext(table, folder / "quads", maps))
    return table.files()


@pytest.fixture(scope="module")
def duck(lake: Snapshot) -> Iterator[DuckDbEngine]:
    with closing(DuckDbEngine(Path(lake.table), copies=False)) as made:
        yield made


@pytest.fixture(scope="module")
def oracle(events: list[Event]) -> ox.Store:
    store = ox.Store()
    text = "\n".join(f"{line} ." for event in events for line in event.text.replace("\t", " ").split("\n"))
    store.bulk_load(text.encode(), format=ox.RdfFormat.N_TRIPLES)
    return store


def test_the_shop_is_of_the_size_of_the_experiment(events: list[Event], oracle: ox.Store) -> None:
    assert (len(events), len(oracle)) == (23_922, 250_030)
    assert sum(event.text.count("\n") + 1 for event in Shop(66).events()) == pytest.approx(25_000, rel=0.05)


def test_the_lake_lies_in_zones(lake: Snapshot) -> None:
    assert len({each.zone for each in lake.files}) == 1 + len(CUTS)
    assert None not in {each.zone for each in lake.files}
    assert sum(each.rows for each in lake.files) == 250_030


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_of_the_experiment_and_little_is_read(
    name: str, lake: Snapshot, duck: DuckDbEngine, oracle: ox.Store
) -> None:
    text, count, share = QUERIES[name]
    compiled = compile_query(parse_query(PREFIXES + text), "duckdb", duck.statistics(lake))
    found = rows(duck, compiled, lake)
    assert len(found) == count
    assert found == asked(oracle, PREFIXES + text)
    assert 0 < len(duck.scanned(compiled, lake).files) <= share * len(lake.files)
    assert found == rows(duck, replace(compiled, scan_predicates=()), lake)


def rows(duck: DuckDbEngine, compiled: CompiledQuery, lake: Snapshot) -> set[tuple[str, ...]]:
    return {tuple(row.values()) for batch in duck.batches(compiled, lake, QueryLimits()) for row in batch.to_pylist()}


def asked(store: ox.Store, text: str) -> set[tuple[str, ...]]:
    found = store.query(text)
    if isinstance(found, ox.QueryTriples):
        return {(str(each.subject), str(each.predicate), str(each.object)) for each in found}
    assert isinstance(found, ox.QuerySolutions)
    return {tuple(str(term) for term in each) for each in found}


def test_it_is_told_which_zones_were_read(lake: Snapshot, tmp_path: Path) -> None:
    clock = ManualClock()
    duck = DuckDbEngine(Path(lake.table), reads=ReadCounter(tmp_path, clock), copies=False)
    compiled = compile_query(parse_query(PREFIXES + QUERIES["all reviews"][0]), "duckdb")
    assert rows(duck, compiled, lake)
    clock.advance(READ_COUNT_SECONDS)
    while duck.prepare(lake):
        pass
    read = duck.scanned(compiled, lake).files
    assert load_read_counts(tmp_path, clock.now()) == pytest.approx(Counter(each.zone for each in read), rel=0.01)
    duck.close()
