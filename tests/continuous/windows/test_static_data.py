"""What a query knows beside its windows, as it was when it was registered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from tests.continuous.windows.brute import SECOND, Brute, Published
from tests.continuous.windows.worlds import BASE, EX, PREFIX, entries, registered, told
from triplewire.continuous.state import BatchContext
from triplewire.continuous.windows.partition import WindowPartition
from triplewire.continuous.windows.static_data import PublishedStaticData
from triplewire.model import Event
from triplewire.model.clock import ManualClock
from triplewire.model.errors import NotFound, QueryLimit
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.sparql.algebra import Dataset
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.log.ports import Publication
from triplewire.storage.memory import MemoryLog, MemoryRegistry, PositionSequence
from triplewire.storage.registry.ontologies import ONTOLOGY, LoadedOntology, ontology_to_value

ROOMS = "<http://localhost/ontologies/rooms>"
PLACES = "<http://localhost/streams/places>"
ITSELF = f"<{EX}the-ontology>"


def line(*names: str) -> str:
    return "\t".join(name if name[0] in '<"' else f"<{EX}{name}>" for name in names)


class House:
    """A log, a lake that has some of it, and a registry."""

    def __init__(self, path: Path) -> None:
        positions = PositionSequence()
        self.log, self.registry = MemoryLog(positions, ManualClock(BASE)), MemoryRegistry(positions)
        self.lake, self._writer = DeltaLake(path), FileWriter(path)
        self.history = PublishedStaticData(self.lake, self.log, self.registry)

    def publish(self, stream: str, id: str, *lines: str) -> int:
        ((position,),) = self.log.append([Publication(stream, [Event(f"{EX}{id}", "\n".join(lines))])])
        return position

    def store(self) -> None:
        """Everything so far is in the lake, and no longer in the log's memory of this test."""
        after, upto = self.lake.files().position, self.log.head()
        files = [self._writer.write(self.log.read(after, upto, 100))]
        self.lake.commit(CommitBatch("store", upto, upto), files)

    def load(self, name: str, *lines: str) -> int:
        loaded = LoadedOntology(name, "\n".join(lines), len(lines), 0, 0)
        (position,) = self.registry.put([(ONTOLOGY, name, ontology_to_value(loaded))])
        return position

    def triples(self, dataset: Dataset, upto: int) -> set[tuple[str, str]]:
        """Graphs, and the triples in them."""
        found = self.history.quads(dataset, upto).to_pylist()
        return {(row["graph"], f"{row['subject']}\t{row['predicate']}\t{row['object']}") for row in found}


@pytest.fixture
def house(tmp_path: Path) -> House:
    made = House(tmp_path / "lake")
    made.publish("places", "e1", line("a", "in", "x"), line("b", "in", "y"))
    made.publish("others", "e2", line("c", "in", "z"))
    made.store()
    made.publish("places", "e3", line("a", "in", "x"), line("d", "in", "y"))
    return made


def test_all_that_was_published_is_in_lake_and_log(house: House) -> None:
    upto = house.log.head()
    house.publish("places", "e4", line("e", "in", "y"))
    found = house.triples(Dataset(), upto)
    assert {graph for graph, _ in found} == {f"<{EX}e1>", f"<{EX}e2>", f"<{EX}e3>"}
    assert len(found) == 5


def test_it_is_the_same_whatever_the_lake_has_meanwhile(house: House) -> None:
    upto = house.log.head()
    before = house.history.quads(Dataset(), upto)
    house.publish("places", "e4", line("e", "in", "y"))
    house.store()
    assert house.history.quads(Dataset(), upto).sort_by([("position", "ascending"), ("quad", "ascending")]) == before


def test_a_stream_is_one_graph_of_its_name_with_each_triple_once(house: House) -> None:
    expected = {line("a", "in", "x"), line("b", "in", "y"), line("d", "in", "y")}
    assert house.triples(Dataset(default=(PLACES,)), house.log.head()) == {(PLACES, each) for each in expected}
    quads = house.history.quads(Dataset(default=(PLACES,)), house.log.head())
    assert (quads.num_rows, quads["quad"].to_pylist(), set(quads["position"].to_pylist())) == (3, [0, 1, 2], {1})


def test_an_event_is_named_by_its_id(house: House) -> None:
    assert house.triples(Dataset(named=(f"<{EX}e2>",)), 9) == {(f"<{EX}e2>", line("c", "in", "z"))}


def test_an_ontology_is_known_by_its_name_and_by_what_it_says_it_is(house: House) -> None:
    says = f"{ITSELF}\t{RDF_TYPE}\t<http://www.w3.org/2002/07/owl#Ontology>"
    first = house.load("rooms", line("x", "part", "house"), says)
    second = house.load("rooms", line("x", "part", "barn"), says)
    for name in (ROOMS, ITSELF):
        assert (name, line("x", "part", "house")) in house.triples(Dataset(default=(name,)), first)
        assert (name, line("x", "part", "barn")) in house.triples(Dataset(default=(name,)), second)
    with pytest.raises(NotFound, match="rooms"):
        house.triples(Dataset(default=(ROOMS,)), first - 1)


def test_what_nothing_has_as_its_name_is_refused(house: House) -> None:
    with pytest.raises(NotFound, match="no stream, ontology or event"):
        house.triples(Dataset(default=("<urn:nobody>",)), 9)


def test_too_much_is_refused_with_what_would_help(house: House) -> None:
    limited = replace(house.history, limit=4)
    with pytest.raises(QueryLimit, match="more than 4 quads; name what it needs by FROM"):
        limited.quads(Dataset(), house.log.head())
    assert limited.quads(Dataset(default=(PLACES,)), house.log.head()).num_rows == 3


@pytest.mark.parametrize("source", [f"FROM {PLACES}", f"FROM {ROOMS}", ""], ids=["stream", "ontology", "everything"])
def test_windows_are_joined_with_what_was_known(house: House, source: str) -> None:
    house.load("rooms", line("a", "in", "x"), line("b", "in", "y"), line("d", "in", "y"))
    text = f"""{PREFIX}REGISTER RSTREAM <out> AS SELECT ?s ?v ?r {source} FROM NAMED WINDOW <urn:w0> ON <a> [RANGE PT2S]
        WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v }} ?s :in ?r }}"""
    since = house.log.head()
    query = ContinuousQuery(id="q", text=text, into="out", created=BASE, since=since)
    known = [line("a", "in", "x"), line("b", "in", "y"), line("d", "in", "y")]
    brute = Brute(query, background=(*known, line("c", "in", "z")) if not source else tuple(known))
    house.publish("places", "e9", line("e", "in", "y"))
    place = WindowPartition(house.history)
    place.apply_changes([registered(query)])
    triples = tuple(f'<{EX}{name}>\t<{EX}v>\t"7"^^<{XSD}integer>' for name in "abcde")
    event = Published(since + 5, "a", triples, BASE + SECOND, BASE + SECOND)
    turn = BatchContext(0, since + 5, BASE + 3 * SECOND)
    found = told(place.process(entries([event]), turn))
    assert found == brute.take([event], turn)
    assert len(found[0].rows) == (4 if not source else 3)
    again = WindowPartition(house.history)
    again.restore(place.snapshot(), turn)
    later = BatchContext(1, since + 6, BASE + 5 * SECOND)
    moved = Published(since + 6, "a", triples, BASE + 3 * SECOND, BASE + 3 * SECOND)
    assert again.process(entries([moved]), later).equals(place.process(entries([moved]), later))


def test_named_graphs_of_the_background_are_told_apart(house: House) -> None:
    text = f"""{PREFIX}REGISTER RSTREAM <out> AS SELECT ?s ?r FROM NAMED {PLACES}
        FROM NAMED WINDOW <urn:w> ON <a> [RANGE PT2S]
        WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} GRAPH {PLACES} {{ ?s :in ?r . ?t :in ?r FILTER(?s != ?t) }} }}"""
    place = WindowPartition(house.history)
    query = ContinuousQuery(id="q", text=text, into="out", created=BASE, since=house.log.head())
    place.apply_changes([registered(query)])
    lines = tuple(f'<{EX}{name}>\t<{EX}v>\t"7"^^<{XSD}integer>' for name in "abcd")
    event = Published(90, "a", lines, BASE + SECOND, BASE + SECOND)
    (row,) = place.process(entries([event]), BatchContext(0, 90, BASE + 3 * SECOND)).to_pylist()
    found = orjson.loads(row["payload"])["results"]["bindings"]
    assert sorted(each["s"]["value"] for each in found) == [f"{EX}b", f"{EX}d"]


def test_a_background_that_is_not_there_suspends_the_query(house: House) -> None:
    text = f"""{PREFIX}REGISTER RSTREAM <out> AS SELECT ?s FROM <urn:nobody>
        FROM NAMED WINDOW <urn:w> ON <a> [RANGE PT2S]
        WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} ?s :in ?r }}"""
    place = WindowPartition(house.history)
    place.apply_changes([registered(ContinuousQuery(id="q", text=text, into="out", since=1))])
    results: pa.Table = place.process(entries([]), BatchContext(0, 1, BASE))
    assert results["kind"].to_pylist() == ["suspended"]
    assert "urn:nobody" in results["payload"][0].as_py()
