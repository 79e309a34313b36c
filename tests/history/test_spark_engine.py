"""Spark over the lake's own files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from pyspark.sql import SparkSession

from tests.history.policed import World, snapshot
from tests.spark.sessions import SMALL_QUERIES, local_session
from tests.storage.lake.layouts import everywhere
from tests.storage.lake.terms import place, rows_of
from tests.storage.lake.test_delta import entries
from tests.storage.lake.test_zone_expressions import QUADS
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.requests import QueryLimits
from triplewire.model import Event
from triplewire.model.terms import TW, XSD
from triplewire.security import Verb, parse_policy, visibility_of
from triplewire.spark import query_engine
from triplewire.sparql import compile_query, parse_query, to_sql
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch, Snapshot
from triplewire.storage.lake.zones import zone_expression

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    with local_session("lake", "local[1]", SMALL_QUERIES) as made:
        query_engine.configure_session(made)
        yield made


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """In it d is a part of c, c of b, and b of a; each event has a file, and there is one more of something else."""
    table = tmp_path_factory.mktemp("lake")
    events = [Event(f"urn:e:{part}", f"<urn:{part}>\t<urn:in>\t<urn:{whole}>") for part, whole in ("dc", "cb", "ba")]
    events.append(Event("urn:e:v", f'<urn:a>\t<urn:v>\t"2"^^<{XSD}integer>'))
    written = [FileWriter(table).write(entries(each, first=number)) for number, each in enumerate(events, 1)]
    DeltaLake(table).commit(CommitBatch("q", 0, 7), written)
    return DeltaLake(table).files()


@pytest.mark.parametrize(
    ("where", "found", "files"),
    [
        ("?x <urn:in>+ <urn:a>", {"b", "c", "d"}, 3),
        ("?x <urn:in>* <urn:b>", {"b", "c", "d"}, 3),
        ("<urn:c> <urn:in>+ ?x", {"a", "b"}, 3),
        ("?x <urn:in> <urn:c>", {"d"}, 1),
        ("?x <urn:v> ?v FILTER(?v > 1)", {"a"}, 1),
        ("?x <urn:v> ?v FILTER(?v > 2)", set(), 1),
        ("?x <urn:v> ?v FILTER(?v > 3)", set(), 0),
        (
            "?x <urn:in> ?y . ?e <https://triplewire.dev/ns#stream> 'quads' ; <https://triplewire.dev/ns#time> ?t",
            set(),
            3,
        ),
    ],
)
def test_a_query_reads_the_files_that_it_needs(
    session: SparkSession, lake: Snapshot, where: str, found: set[str], files: int
) -> None:
    compiled = compile_query(parse_query(f"SELECT ?x {{ {where} }}"), "spark")
    placed, scanned = query_engine.prune_query(session, compiled, lake)
    assert set(query_engine.run_query(session, placed).column("v0").to_pylist()) == {f"<urn:{name}>" for name in found}
    assert len(scanned.files) == files
    whole, _ = query_engine.prune_query(session, replace(compiled, scan_predicates=()), lake)
    assert set(query_engine.run_query(session, whole).column("v0").to_pylist()) == {f"<urn:{name}>" for name in found}


@pytest.mark.parametrize("order", ["none", "prefix", "reversed"])
def test_rows_lie_in_the_zones_that_a_map_says(session: SparkSession, tmp_path: Path, order: str) -> None:
    found = everywhere(order)
    written = FileWriter(tmp_path).write(rows_of(QUADS))
    rows = session.read.parquet(str(tmp_path / written.path)).orderBy("position")
    answered = rows.selectExpr(to_sql(zone_expression(found), "spark")).collect()
    assert [zone for (zone,) in answered] == [found.locate(found.placed(place(quad))) for quad in QUADS]
    assert len({zone for (zone,) in answered}) > 40


CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_both_engines_see_the_same(session: SparkSession, tmp_path: Path, case: Path) -> None:
    """What is hidden is hidden in the rounds of a closure, too, and from headers and what is joined."""
    world = World.from_json(orjson.loads(case.read_bytes()))
    visibility = visibility_of(world.principal, Verb.QUERY, parse_policy(world.policy()))
    found, duck = snapshot(tmp_path, world.occurrences, parted=True), DuckDbEngine(tmp_path)
    for text in (
        "SELECT * { ?s ?p ?o }",
        "SELECT * { ?s (<urn:p:one>|<urn:p:two>)+ ?o }",
        f"SELECT ?s (COUNT(*) AS ?n) {{ ?e <{TW}stream> ?s }} GROUP BY ?s",
        "SELECT (GROUP_CONCAT(?s) AS ?all) (SUM(?o) AS ?sum) { ?s ?p ?o }",
        "SELECT * { ?s ?p ?o FILTER NOT EXISTS { GRAPH ?g { ?s a ?c } } } ORDER BY ?p LIMIT 2",
    ):
        query = parse_query(text)
        theirs, _ = query_engine.prune_query(session, compile_query(query, "spark", steady=True), found, visibility)
        ours = duck.batches(compile_query(query, "duckdb", steady=True), found, QueryLimits(), visibility)
        assert query_engine.run_query(session, theirs).to_pylist() == [
            row for batch in ours for row in batch.to_pylist()
        ]
