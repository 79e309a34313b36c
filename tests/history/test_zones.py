"""Whatever is inserted, compacted, split and merged: zones tile the space, every quad is in one, and a query that
reads
few files answers as one that reads everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.history.lakes import E, Growing, asked, iri, typed
from tests.storage.lake.test_compaction import Grown
from tests.storage.lake.test_rebalancing import misplaced
from triplewire.history.duckdb import DuckDbEngine, IndexLimits
from triplewire.storage.lake.balance import BalanceSettings, LoadCriterion
from triplewire.storage.lake.maintenance import compact, fresh_files
from triplewire.storage.lake.rebalancing import rebalance

SPLIT = BalanceSettings(zones=6, smallest=4, criteria=(LoadCriterion("quads", 1.2, 0.5),))
MERGE = BalanceSettings(zones=2, smallest=1_000_000, criteria=(LoadCriterion("quads", 2, 0.9),))
OBJECTS = (
    iri("a"),
    iri("z"),
    '"plain"',
    '"\U0001f600"@en',
    typed("-5", "integer"),
    typed("10", "integer"),
    typed("9", "decimal"),
    typed("1e3", "double"),
    typed("NaN", "double"),
    typed("-0.0", "double"),
    typed("2026-11-16T10:00:00+02:00", "dateTime"),
    typed("2026-11-16T09:00:00Z", "dateTime"),
    typed("abc", "integer"),
)
QUERIES = (
    "SELECT * { ?s :p1 ?o }",
    "SELECT * { :s3 ?p ?o }",
    "SELECT * { ?s ?p :z }",
    f"SELECT * {{ GRAPH <{E}event/5> {{ ?s ?p ?o }} }}",
    "SELECT * { ?s :p2 ?v FILTER(?v > 9) }",
    "SELECT * { ?s ?p ?v FILTER(?v <= 0 && ?v >= -5.0) }",
    'SELECT * { ?s ?p ?t FILTER(?t < "2026-11-16T08:30:00Z"^^xsd:dateTime) }',
    "SELECT * { ?s :p1 ?o . ?s :p2 ?v FILTER(isNumeric(?v)) }",
    "SELECT * { ?s :p0 ?o OPTIONAL { ?s :p3 ?v FILTER(?v > 5) } }",
    'SELECT * { ?s ?p ?o FILTER(STRSTARTS(STR(?s), "http://example.org/s1")) }',
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "SELECT * { :s3 :p1 ?o . ?s ?p ?o }",
    f"SELECT * {{ GRAPH <{E}event/5> {{ ?s :p1 ?o }} ?s :p2 ?v OPTIONAL {{ ?s :p3 ?w }} }}",
    "SELECT * { GRAPH ?g { ?s ?p -5 } GRAPH ?g { ?t ?q ?o } }",
)


def lines(number: int) -> list[str]:
    """An event of three quads, all of which are its own."""
    return [
        f"{iri(f's{number % 7}')}\t{iri(f'p{(number + at) % 4}')}\t{OBJECTS[(number * 3 + at) % len(OBJECTS)]}"
        for at in range(3)
    ]


@given(st.lists(st.sampled_from(["insert", "insert", "compact", "split", "merge"]), min_size=2, max_size=9))
@example(["insert", "insert", "compact", "split", "insert", "compact", "insert", "merge"])
@example(["insert", "compact", "split", "insert", "compact", "split", "merge", "split"])
@settings(max_examples=6, deadline=None)
def test_any_sequence(steps: list[str]) -> None:
    with TemporaryDirectory() as folder:
        grown = Grown(Path(folder), file_quads=6)
        growing = Growing(Path(folder) / "quads")
        works: dict[str, Callable[[], object]] = {
            "insert": lambda: growing.grow(*(lines(growing.events + at) for at in range(5))),
            "compact": lambda: compact(grown.context),
            "split": lambda: rebalance(grown.context, SPLIT),
            "merge": lambda: rebalance(grown.context, MERGE),
        }
        for step in steps:
            works[step]()
        check(grown, growing)


def check(grown: Grown, growing: Growing) -> None:
    snapshot = grown.lake.files()
    waiting = sum(each.rows for each in fresh_files(snapshot))
    assert misplaced(grown, snapshot) == waiting
    made = ((number, at, line) for number in range(growing.events) for at, line in enumerate(lines(number)))
    assert grown.rows(snapshot) == Counter((1 + number, at, line.split("\t")[2]) for number, at, line in made)
    pruned = DuckDbEngine(growing.path, copies=False, limits=IndexLimits(filter_files=1))
    found = {text: asked(pruned, snapshot, text) for text in QUERIES}
    while pruned.prepare(snapshot):
        pass
    again = {text: asked(pruned, snapshot, text) for text in QUERIES}
    whole = DuckDbEngine(growing.path)
    assert found == again == {text: asked(whole, snapshot, text) for text in QUERIES}
    pruned.close()
    whole.close()
