"""Subscribe and query: what is told of what matches, and what history answers."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import orjson

from tests.conformance.deployments.brokers import Broker
from tests.conformance.deployments.checks import Group
from tests.conformance.deployments.hearing import Ear

SUBSCRIBE = Group("subscribe")
QUERY = Group("query")

_LOUD = "SELECT ?s ?v {{ ?s <urn:x-loud:{mark}> ?v FILTER(?v > 20) }}"


async def _heard(broker: Broker, id: str, count: int) -> list[dict[str, object]]:
    async with broker.opened(f"/subscriptions/{id}/notifications") as response:
        return [each.said for each in await Ear(response).take(count, "notification")]


def _event(broker: Broker, value: int) -> str:
    return f"<urn:s> <urn:x-loud:{broker.mark}> {value} ."


@SUBSCRIBE.check("each kind is told of what matches, and of nothing else", live=True)
async def _(broker: Broker) -> None:
    stream, query = broker.name(), _LOUD.format(mark=broker.mark)
    made = {kind: await broker.subscribe(sparql=query, kind=kind, stream=stream) for kind in _FIELDS}
    values = (10, 21, 5, 42)
    positions = {value: (await broker.publish(stream, _event(broker, value)))["position"] for value in values}
    for kind, field in _FIELDS.items():
        told = await _heard(broker, made[kind]["id"], 2)
        assert [each["position"] for each in told] == [positions[21], positions[42]], (kind, told)
        assert all(field in each and each["kind"] == kind for each in told), (kind, told)


_FIELDS = {"signal": "event", "bindings": "results", "event": "body"}


@SUBSCRIBE.check("bindings are the solutions of the query", live=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    made = await broker.subscribe(sparql=_LOUD.format(mark=broker.mark), kind="bindings", stream=stream)
    await broker.publish(stream, f"<urn:a> <urn:x-loud:{broker.mark}> 21 . <urn:b> <urn:x-loud:{broker.mark}> 22 .")
    (told,) = await _heard(broker, made["id"], 1)
    results = orjson.loads(orjson.dumps(told["results"]))
    rows = {(row["s"]["value"], row["v"]["value"]) for row in results["results"]["bindings"]}
    assert rows == {("urn:a", "21"), ("urn:b", "22")}, rows


@SUBSCRIBE.check("a subscription sees what is published after it was made, and nothing before", live=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    await broker.publish(stream, _event(broker, 30))
    made = await broker.subscribe(sparql=_LOUD.format(mark=broker.mark), stream=stream)
    position = (await broker.publish(stream, _event(broker, 31)))["position"]
    (told,) = await _heard(broker, made["id"], 1)
    assert told["position"] == position, told


@SUBSCRIBE.check("with `from` the past comes first, then the present, without a gap and nothing twice", live=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    past = [(await broker.publish(stream, _event(broker, n)))["position"] for n in (30, 31, 32)]
    made = await broker.subscribe(**{"sparql": _LOUD.format(mark=broker.mark), "stream": stream, "from": past[0]})
    async with broker.opened(f"/subscriptions/{made['id']}/notifications") as response:
        ear = Ear(response)
        told = await ear.take(2, "notification")
        present = [(await broker.publish(stream, _event(broker, n)))["position"] for n in (33, 34)]
        told += await ear.take(3, "notification")
    assert [each.said["position"] for each in told] == [*past, *present], told


@SUBSCRIBE.check("who resumes is told every notification once, also after the end of the subscription", live=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    made = await broker.subscribe(sparql=_LOUD.format(mark=broker.mark), stream=stream)
    positions = [(await broker.publish(stream, _event(broker, n)))["position"] for n in (30, 31, 32)]
    first, *_ = await _heard(broker, made["id"], 1)
    async with broker.opened(f"/subscriptions/{made['id']}/notifications", Last_Event_ID=str(first["position"])) as r:
        await broker.expect(204, "DELETE", f"/subscriptions/{made['id']}")
        ear = Ear(r)
        told = await ear.take(2, "notification")
        while (last := await ear.next()).name == "position":
            pass
    assert [str(first["position"]), *(each.said["position"] for each in told)] == positions
    assert last.name == "end", last
    await broker.problem(404, "GET", f"/subscriptions/{made['id']}")


@SUBSCRIBE.check("a filter and a template are subscriptions, too", live=True)
async def _(broker: Broker) -> None:
    stream, name, attribute = broker.name(), broker.name(), f"urn:x-loud:{broker.mark}"
    template = {"sparql": f"SELECT ?v {{ ?s <{attribute}> ?v FILTER(?v > $limit) }}"}
    await broker.expect(200, "PUT", f"/templates/{name}", json=template)
    broker.made.append(f"/templates/{name}")
    wishes = (
        {"filter": [{"attribute": attribute, "op": ">", "value": 20}]},
        {"template": name, "values": {"limit": 20}},
    )
    made = [await broker.subscribe(stream=stream, **wish) for wish in wishes]
    await broker.publish(stream, _event(broker, 10))
    position = (await broker.publish(stream, _event(broker, 30)))["position"]
    for each in made:
        (told,) = await _heard(broker, each["id"], 1)
        assert told["position"] == position, told


@SUBSCRIBE.check("an array is made whole or not at all; of lines, each by itself")
async def _(broker: Broker) -> None:
    good, bad = {"sparql": "ASK { ?s <urn:x-none> ?o }"}, {"sparql": "ASK {"}
    await broker.problem(400, "POST", "/subscriptions", json=[good, bad])
    body = b"\n".join(map(orjson.dumps, (good, bad)))
    headers = {"Content-Type": "application/x-ndjson"}
    answer = await broker.expect(200, "POST", "/subscriptions", data=body, headers=headers)
    one, other = map(orjson.loads, answer.body.splitlines())
    broker.made.append(f"/subscriptions/{one['id']}")
    assert other["error"]["status"] == 400, other


@SUBSCRIBE.check("why an event matched, or not, can be asked", live=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    made = await broker.subscribe(sparql=_LOUD.format(mark=broker.mark), stream=stream)
    positions = [(await broker.publish(stream, _event(broker, n)))["position"] for n in (10, 30)]
    for position, matched in zip(positions, (False, True), strict=True):
        path = f"/subscriptions/{made['id']}/explain?event={position}"
        told = (await broker.expect(200, "GET", path)).json()
        assert (told["matched"], told["held"]) == (matched, True), told


@QUERY.check("what was published is found in history, in each way to ask", live=True)
async def _(broker: Broker) -> None:
    subject = broker.iri()
    await broker.publish(broker.name(), f"<{subject}> <urn:p> 42 .")
    query = f"SELECT ?v {{ <{subject}> <urn:p> ?v }}"
    asked = await _answered(broker, query)
    assert asked["results"]["bindings"][0]["v"]["value"] == "42", asked
    form = await broker.expect(200, "POST", "/sparql", data={"query": query})
    plain = await broker.expect(
        200, "POST", "/sparql", data=query, headers={"Content-Type": "application/sparql-query"}
    )
    assert form.json() == plain.json() == asked


async def _answered(broker: Broker, query: str) -> dict[str, dict[str, list[dict[str, dict[str, str]]]]]:
    """The answer, once history has it: events are stored some moments after they were acknowledged."""
    while True:
        found = (await broker.expect(200, "GET", "/sparql?" + urlencode({"query": query}))).json()
        if found["results"]["bindings"]:
            return found  # type: ignore[no-any-return]
        await asyncio.sleep(0.2)


@QUERY.check("answers come in the format that is asked for", live=True)
async def _(broker: Broker) -> None:
    formats = {
        "SELECT ?s { ?s <urn:x-none> ?o }": (
            "application/sparql-results+json",
            "application/sparql-results+xml",
            "text/csv",
        ),
        "CONSTRUCT { ?s ?p ?o } { ?s <urn:x-none> ?o . ?s ?p ?o }": (
            "text/turtle",
            "application/n-triples",
            "application/ld+json",
        ),
    }
    for query, types in formats.items():
        for media_type in types:
            path = "/sparql?" + urlencode({"query": query})
            answer = await broker.expect(200, "GET", path, headers={"Accept": media_type})
            assert answer.media_type == media_type, (answer.media_type, media_type)


@QUERY.check("history is described by itself")
async def _(broker: Broker) -> None:
    answer = await broker.expect(200, "GET", "/sparql", headers={"Accept": "text/turtle"})
    assert b"sparql-service-description#" in answer.body
