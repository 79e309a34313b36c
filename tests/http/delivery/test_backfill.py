"""Past, then present: what a listener hears, beside what an engine that we did not write finds in all events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.brokers import STREAMS, Broker, broker, observed
from tests.http.harness import data, run
from tests.oracle import bag, solutions, store
from triplewire.client.feeds import SseMessage
from triplewire.config.metrics import Metrics
from triplewire.http.delivery.connections import MemoryConnection, OnLost
from triplewire.model import Kind, format_position, parse_position
from triplewire.storage.log.ports import LogRetention
from triplewire.storage.registry.subscriptions import LANE

ZOO = "@prefix : <urn:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :Dog rdfs:subClassOf :Animal ."
TURTLE = {"Content-Type": "text/turtle"}
HEAVY = "SELECT ?s ?w { ?s <urn:weight> ?w FILTER(?w > 1 && ?w != 6) }"
DOGS = "SELECT ?s { ?s a ?c FILTER(?c IN (<urn:Dog>, <urn:Animal>)) }"
SAID = "CONSTRUCT { ?s <urn:was> ?w } WHERE { ?s <urn:weight> ?w FILTER(?w > 2) }"


@dataclass(frozen=True)
class Form:
    """A way to ask, and the query that says the same to the oracle; None where streams alone decide."""

    wish: Mapping[str, Any]
    oracle: str | None
    streams: tuple[str, ...] = STREAMS

    def wants(self, number: int) -> bool:
        if STREAMS[number % 2] not in self.streams:
            return False
        return self.oracle is None or bool(solutions([observed(number)], self.oracle))


FORMS = {
    "select": Form({"sparql": HEAVY}, HEAVY),
    "ask": Form(
        {"sparql": "ASK { ?s <urn:weight> ?w FILTER(?w > 3) }"}, "SELECT * { ?s <urn:weight> ?w FILTER(?w > 3) }"
    ),
    "construct": Form({"sparql": SAID}, "SELECT * { ?s <urn:weight> ?w FILTER(?w > 2) }"),
    "evaluated": Form(
        {"sparql": 'SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o FILTER(REGEX(STR(?o), "[13579]")) } GROUP BY ?s'},
        'SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o FILTER(REGEX(STR(?o), "[13579]")) } GROUP BY ?s',
    ),
    "narrowed": Form({"sparql": HEAVY, "stream": "odd"}, HEAVY, ("odd",)),
    "stream": Form({"stream": "even"}, None, ("even",)),
    "filter": Form(
        {"filter": [{"attribute": "urn:weight", "op": ">=", "value": 4}]},
        "SELECT ?s { ?s <urn:weight> ?w FILTER(?w >= 4) }",
    ),
    "template": Form(
        {"template": "heavier", "values": {"limit": 2}}, "SELECT ?s ?w { ?s <urn:weight> ?w FILTER(?w > 2) }"
    ),
    "entailment": Form({"sparql": "SELECT ?s { ?s a <urn:Animal> }", "entailment": "rdfs"}, DOGS),
    "meaning": Form(
        {
            "filter": [
                {
                    "attribute": "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
                    "op": "@>",
                    "value": "urn:Animal",
                }
            ]
        },
        DOGS,
    ),
}


async def prepared(at: Broker) -> None:
    """What forms need that are not alone."""
    template = {"sparql": "SELECT ?s ?w { ?s <urn:weight> ?w FILTER(?w > $limit) }"}
    await at.call("PUT", "/templates/heavier", json=template)
    await at.call("PUT", "/ontologies/zoo", data=ZOO.encode(), headers=TURTLE)


def told(at: Broker, form: Form, begins: int = 0, after: int = 0) -> list[str]:
    """The positions that a listener must hear of."""
    return [format_position(p) for p, number in at.events.items() if p >= begins and p > after and form.wants(number)]


def check(at: Broker, form: Form, kind: Kind, message: SseMessage) -> None:
    """What one notification says beside its position."""
    found, event = data(message), observed(at.events[parse_position(message.id or "")])
    assert (message.event, found["position"], found["event"]) == ("notification", message.id, event.id)
    assert found["stream"] == STREAMS[at.events[parse_position(message.id or "")] % 2]
    if kind is Kind.EVENT:
        sent = {str(each) for each in ox.parse(found["body"].encode(), format=ox.RdfFormat.N_QUADS)}
        assert sent == {str(each) for each in store([event])}
    elif kind is Kind.BINDINGS and "graph" in found:
        built = {str(each) for each in ox.parse(found["graph"].encode(), format=ox.RdfFormat.N_TRIPLES)}
        answer = store([event]).query(SAID, use_default_graph_as_union=True)
        assert isinstance(answer, ox.QueryTriples)
        assert built == {str(each) for each in answer}
    elif kind is Kind.BINDINGS and form.oracle is not None and form.wish.get("sparql", "").startswith("SELECT"):
        assert bag(found["results"]) == solutions([event], form.oracle)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("name", FORMS)
def test_all_events_are_heard_of_once_and_in_order_whatever_is_asked(tmp_path: Path, name: str, kind: Kind) -> None:
    form = FORMS[name]

    async def scene() -> None:
        async with broker(tmp_path / "quads") as at:
            await prepared(at)
            at.publish(4)
            at.match()
            at.store()
            at.publish(3)
            at.trim(3)
            assert at.begin() == 7
            made = await at.subscribe({**form.wish, "kind": kind.value, "from": "earliest"})
            assert made["from"] == "earliest"
            at.publish(4)
            async with at.at.listen(made["notifications"]) as ear:
                past = await ear.take(len(told(at, form)) - len(told(at, form, parse_position(made["since"]))))
                at.match()
                present = await ear.take(len(told(at, form)) - len(past))
                at.publish(3)
                at.match()
                live = await ear.take(len(told(at, form)) - len(past) - len(present))
            heard = [*past, *present, *live]
            assert all((past, present, live))
            assert [message.id for message in heard] == told(at, form)
            for message in heard:
                check(at, form, kind, message)
            for message in heard if kind is Kind.BINDINGS else ():
                async with at.at.listen(made["notifications"], Last_Event_ID=message.id or "") as ear:
                    rest = await ear.take(len(told(at, form, after=parse_position(message.id or ""))))
                    assert rest == heard[heard.index(message) + 1 :]

    run(scene())


STEPS = st.lists(st.sampled_from(["publish", "match", "store"]), max_size=6)
WITH_TRIM = st.lists(st.sampled_from(["publish", "match", "store", "trim"]), max_size=6)


@given(
    before=WITH_TRIM,
    between=WITH_TRIM,
    after=STEPS,
    begins=st.integers(0, 12),
    cut=st.integers(0, 12),
    step=st.integers(1, 4),
)
@settings(max_examples=12, deadline=None)
def test_wherever_the_log_the_lake_and_the_pipeline_are_nothing_is_lost_or_told_twice(
    before: list[str], between: list[str], after: list[str], begins: int, cut: int, step: int
) -> None:
    form = FORMS["select"]

    async def scene(folder: Path) -> None:
        async with broker(folder, backfill_events=step) as at:
            take(at, ["publish", *before])
            first = min(begins, at.at.twin.log.head())
            made = await at.subscribe({**form.wish, "from": format_position(first)})
            take(at, between)
            await at.at.edge.matches.step()
            async with at.at.listen(made["notifications"]) as ear:
                await ear.position()
                take(at, [*after, "publish", "publish", "publish", "publish", "match"])
                expected = told(at, form, first)
                heard = await ear.take(len(expected))
            assert [message.id for message in heard] == expected
            last = heard[min(cut, len(heard) - 1)]
            async with at.at.listen(made["notifications"], Last_Event_ID=last.id or "") as ear:
                rest = await ear.take(len(heard) - heard.index(last) - 1)
                take(at, ["publish", "match"])
                assert [*heard[: heard.index(last) + 1], *rest] == heard
                assert [message.id for message in await ear.take(2)] == told(at, form, first)[-2:]

    with TemporaryDirectory() as folder:
        run(scene(Path(folder)))


def take(at: Broker, steps: list[str]) -> None:
    for each in steps:
        if each == "publish":
            at.publish(2)
        else:
            {"match": at.match, "store": at.store, "trim": at.trim}[each]()


EVERYTHING = {"stream": ["even", "odd"]}


def ids(messages: Iterable[SseMessage]) -> list[str | None]:
    return [message.id for message in messages]


def test_without_a_from_there_is_no_past(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path) as at:
            at.publish(3)
            made = await at.subscribe(EVERYTHING)
            assert "from" not in made
            at.publish(2)
            at.match()
            for after in ("", "?after=earliest", f"?after={format_position(1)}"):
                async with at.at.listen(made["notifications"] + after) as ear:
                    assert ids(await ear.take(2)) == [format_position(each) for each in at.events][-2:]

    run(scene())


def test_several_listen_each_at_its_own_place(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, backfill_events=2) as at:
            at.publish(9)
            made = await at.subscribe({**EVERYTHING, "from": format_position(3)})
            begins = {
                "": 3,
                "?after=earliest": 3,
                f"?after={format_position(2)}": 3,
                f"?after={format_position(7)}": 8,
                "?after=now": 99,
            }
            async with AsyncExitStack() as stack:
                ears = {
                    first: await stack.enter_async_context(at.at.listen(made["notifications"] + after))
                    for after, first in begins.items()
                }
                for ear in ears.values():
                    await ear.position()
                at.publish(2)
                at.match()
                for first, ear in ears.items():
                    expected = told(at, Form({}, None), min(first, parse_position(made["since"])))
                    assert ids(await ear.take(len(expected))) == expected

    run(scene())


def test_one_that_ends_is_told_to_its_end(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, backfill_events=1) as at:
            at.publish(4)
            made = await at.subscribe({**EVERYTHING, "from": "earliest"})
            at.publish(1)
            async with at.at.listen(made["notifications"]) as ear:
                first = await ear.next()
                at.at.end(made["id"])
                at.publish(1)
                at.match()
                heard = [first, *await ear.rest()]
            assert ids(heard[:-1]) == [format_position(each) for each in at.events][:5]
            assert heard[-1].event == "end"
            async with at.at.listen(made["notifications"], Last_Event_ID=format_position(2)) as ear:
                assert await ear.rest() == heard[2:]

    run(scene())


def test_the_past_is_matched_by_the_ontologies_of_when_it_was_asked_for(tmp_path: Path) -> None:
    async def scene(name: str) -> None:
        form = FORMS[name]
        async with broker(tmp_path / name) as at:
            await prepared(at)
            at.publish(6)
            made = await at.subscribe({**form.wish, "from": "earliest"})
            await at.call("PUT", "/ontologies/zoo", data=ZOO.replace("Dog", "Cat").encode(), headers=TURTLE)
            at.publish(6)
            at.match()
            cats = [format_position(p) for p, number in at.events.items() if number >= 6 and number % 3 != 1]
            dogs = [format_position(p) for p, number in at.events.items() if number < 6 and number % 3 != 2]
            for cut in (None, *dogs):
                after = {} if cut is None else {"Last_Event_ID": cut}
                expected = [each for each in [*dogs, *cats] if cut is None or each > cut]
                async with at.at.listen(made["notifications"], **after) as ear:
                    assert ids(await ear.take(len(expected))) == expected

    for name in ("entailment", "meaning"):
        run(scene(name))


def test_how_far_it_is_is_told_also_where_nothing_matches(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, backfill_events=2) as at:
            at.publish(6)
            made = await at.subscribe({"sparql": "ASK { ?s <urn:weight> 5 }", "from": "earliest"})
            at.publish(1)
            async with at.at.session.get(at.at.url + made["notifications"]) as response:
                text = b""
                while format_position(parse_position(made["since"])).encode() not in text:
                    text += await response.content.readany()
            lines = [line[4:].decode() for line in text.splitlines() if line.startswith(b"id: ")]
            assert lines == [format_position(each) for each in (0, 2, 4, 6, parse_position(made["since"]))]

    run(scene())


def test_what_is_nowhere_is_told_as_a_gap(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path) as at:
            at.publish(2)
            at.store()
            at.publish(6)
            at.at.twin.log.trim(LogRetention(size=0), before=6)
            made = await at.subscribe({**EVERYTHING, "from": "earliest"})
            async with at.at.listen(made["notifications"]) as ear:
                heard = await ear.take(6)
            assert [message.event for message in heard] == [*["notification"] * 2, "gap", *["notification"] * 3]
            assert data(heard[2])["asked"] == format_position(2)
            assert data(heard[2])["earliest"] == format_position(6)

    run(scene())


@pytest.mark.parametrize("name", ["select", "entailment", "meaning"])
def test_what_was_let_go_since_it_was_made_is_heard_of_as_well(tmp_path: Path, name: str) -> None:
    """By the ontologies that were loaded when each event came, as if somebody had listened all the time."""
    form = FORMS[name]

    async def scene() -> None:
        async with broker(tmp_path, backfill_events=2) as at:
            await prepared(at)
            at.publish(4)
            made = await at.subscribe({**form.wish, "from": "earliest"})
            async with at.at.listen(made["notifications"]) as ear:
                await ear.position()
                for below in ("Cat", "Dog", None, "Cat"):
                    if below is None:
                        await at.call("DELETE", "/ontologies/zoo")
                    else:
                        zoo = ZOO.replace("Dog", below).encode()
                        await at.call("PUT", "/ontologies/zoo", data=zoo, headers=TURTLE)
                    at.publish(3)
                    at.match()
                ended = at.at.end(made["id"])
                at.publish(2)
                at.match()
                heard = await ear.rest()
            at.store()
            at.publish(1)
            at.match()
            at.trim(0.6)
            assert at.begin() > ended
            await at.at.edge.matches.step()
            for number in range(0, len(heard) - 1, 3):
                async with at.at.listen(made["notifications"], Last_Event_ID=heard[number].id or "") as ear:
                    said = [(message.event, message.data) for message in await ear.rest()]
                    assert said == [(message.event, message.data) for message in heard[number + 1 :]]
            assert len(heard) > 8

    run(scene())


def test_who_leaves_is_not_read_for_any_longer(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, backfill_events=1) as at:
            at.publish(20)
            made = await at.subscribe({"sparql": "ASK { ?s <urn:weight> 99 }", "from": "earliest"})
            subscription = await at.at.edge.matches.queries.find(made["id"], resuming=False)
            history = at.at.edge.backfill.history(
                subscription, lambda: [], at.at.edge.matches.history(subscription.made)
            )
            topic = at.at.edge.matches.topic
            wire = Leaving(3, topic.lose)
            await topic.listen(subscription.made, topic.open(subscription.made, wire, 0, Metrics()), history)
            assert wire.sent == 4
            assert len(at.at.edge.matches.topic) == 0

    run(scene())


class Leaving(MemoryConnection):
    """Of a client that goes after so many writes."""

    def __init__(self, after: int, on_lost: OnLost) -> None:
        super().__init__(on_lost=on_lost)
        self.sent = 0
        self._after = after

    def write(self, data: bytes) -> None:
        self.sent += 1
        if self.sent > self._after:
            self.close()
        super().write(data)


@pytest.mark.parametrize("early", [False, True])
def test_one_in_the_slow_lane_has_its_past_first(tmp_path: Path, early: bool) -> None:
    """Whether its shape went there before it was made or after."""

    async def scene() -> None:
        async with broker(tmp_path, backfill_events=2) as at:
            first = await at.subscribe(EVERYTHING)
            shape = at.at.twin.registry.changes(0, parse_position(first["since"]))[0].key
            at.publish(3)
            if early:
                at.at.twin.registry.put([(LANE, shape, {"cost": 0.25})])
            made = await at.subscribe({**EVERYTHING, "from": "earliest"})
            at.publish(2)
            at.match()
            if not early:
                at.at.twin.registry.put([(LANE, shape, {"cost": 0.25})])
            at.publish(2)
            at.match()
            at.match_slowly()
            expected = [format_position(position) for position in at.events]
            for cut in range(len(expected)):
                after = {"Last_Event_ID": expected[cut - 1]} if cut else {}
                async with at.at.listen(made["notifications"], **after) as ear:
                    assert ids(await ear.take(len(expected) - cut)) == expected[cut:]

    run(scene())
