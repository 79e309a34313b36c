"""Dialects: what is published in one is heard in another, and machines find out what there is."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import orjson
import pyoxigraph as ox

from tests.conformance.deployments.brokers import SOURCE, Broker
from tests.conformance.deployments.checks import Group
from tests.conformance.deployments.hearing import Ear

DIALECTS = Group("dialects")

_EVENT = "application/cloudevents+json"
_BATCH = "application/cloudevents-batch+json"
_TREE = "https://w3id.org/tree#"
_SHAPES = """@prefix sh: <http://www.w3.org/ns/shacl#> .
[] a sh:NodeShape ; sh:targetSubjectsOf <urn:p> ; sh:property [ sh:path <urn:p> ; sh:minInclusive 10 ] ."""


def _polled(stream: str, format: str) -> str:
    return f"/streams/{stream}?mode=poll&wait=0&after=earliest&format={format}"


async def _triples(broker: Broker, stream: str) -> set[str]:
    """What is in the events of a stream, whatever it came in."""
    answer = await broker.expect(200, "GET", _polled(stream, "nquads"))
    quads = ox.parse(answer.body, format=ox.RdfFormat.N_QUADS)
    return {str(quad.triple) for quad in quads if quad.graph_name != ox.DefaultGraph()}


@DIALECTS.check("CloudEvents come in binary, structured and batched, and go out as they came")
async def _(broker: Broker) -> None:
    stream, names = broker.name(), [broker.name() for _ in range(3)]
    said = {"specversion": "1.0", "source": broker.mark, "type": "org.example.reading", "room": "kitchen"}
    events = [{**said, "id": each, "datacontenttype": "text/turtle", "data": "<urn:s> <urn:p> 1 ."} for each in names]
    binary = {f"ce-{name}": value for name, value in events[0].items() if not name.startswith("data")}
    await broker.publish(stream, events[0]["data"], **binary)
    await broker.publish(stream, orjson.dumps(events[1]), _EVENT)
    await broker.publish(stream, orjson.dumps(events[2:]), _BATCH)
    told = (await broker.expect(200, "GET", _polled(stream, "cloudevents-batch"))).json()
    assert [each["id"] for each in told] == names, told
    assert all(said.items() <= each.items() for each in told), told
    assert all("<urn:p>" in each["data"] for each in told), told


@DIALECTS.check("each message of an RDF Message Log is an event, and each event is told as a message")
async def _(broker: Broker) -> None:
    stream = broker.name()
    body = 'VERSION "1.2-messages"\nPREFIX : <urn:>\n:s :p 1 .\nMESSAGE\n:s :p 2 .\n'
    receipt = await broker.publish(stream, body, "text/turtle; version=1.2-messages")
    assert receipt["events"] == 2, receipt
    told = (await broker.expect(200, "GET", _polled(stream, "messages-nquads"))).body.decode()
    assert told.startswith('VERSION "1.2-messages"'), told
    parts = told.split("MESSAGE\n")[:-1]
    assert [part.count("<urn:p>") for part in parts] == [1, 1], told


@DIALECTS.check("what goes out as Jelly comes in again as the same events")
async def _(broker: Broker) -> None:
    first, second = broker.name(), broker.name()
    for number in range(3):
        await broker.publish(first, f'<urn:s> <urn:p> {number}, "text"@en .')
    packed = (await broker.expect(200, "GET", _polled(first, "jelly"))).body
    assert (await broker.publish(second, packed, "application/x-jelly-rdf"))["events"] == 3
    found = await _triples(broker, second)
    assert len(found) == 4, found
    assert found == await _triples(broker, first)


@DIALECTS.check(
    "the history of a stream is linked pages (LDES) on which each event is found, and which caches may keep"
)
async def _(broker: Broker) -> None:
    stream, ids = broker.name(), [broker.iri() for _ in range(3)]
    for id in ids:
        await broker.publish(stream, "<urn:s> <urn:p> 1 .", Event_Id=id)
    found, waiting, read = list[str](), [f"/streams/{stream}/ldes"], set[str]()
    while waiting:
        path = waiting.pop()
        read.add(path)
        answer = await broker.expect(200, "GET", path, headers={"Accept": "application/n-quads"})
        again = await broker.call("GET", path, headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status in (200, 304), again.status
        quads = list(ox.parse(answer.body, format=ox.RdfFormat.N_QUADS))
        found += [quad.object.value for quad in quads if quad.predicate.value == _TREE + "member"]
        nodes = {urlsplit(quad.object.value).path for quad in quads if quad.predicate.value == _TREE + "node"}
        waiting += sorted(nodes - read)
    assert sorted(found) == sorted(ids), found


@DIALECTS.check("a client of Mercure publishes, listens, and goes on after the id that it heard last")
async def _(broker: Broker) -> None:
    stream, ids, positions = broker.name(), [broker.iri() for _ in range(2)], []
    hub = "/.well-known/mercure"
    for id in ids:
        broker.made.append(f"/events/{quote(id, safe='')}")
        form = {"topic": f"/streams/{stream}", "data": '{"@id": "urn:s", "urn:p": 1}', "id": id}
        answer = await broker.expect(200, "POST", hub, data=form, headers={SOURCE: broker.mark})
        positions.append(answer.body.decode())
    for after, left in (("earliest", positions), (positions[0], positions[1:])):
        async with broker.opened(f"{hub}?topic=/streams/{stream}&lastEventID={after}") as response:
            assert [each.position for each in await Ear(response).take(len(left), "message")] == left


@DIALECTS.check("streams are described as JSON and as a catalogue in RDF, with how to listen to them")
async def _(broker: Broker) -> None:
    stream = broker.name()
    await broker.publish(stream, "<urn:s> <http://example.org/v#p> 1 .")
    told = (await broker.expect(200, "GET", f"/streams/{stream}/about")).json()
    assert (told["stream"], told["events"]) == (stream, 1), told
    assert "http://example.org/v#" in told["vocabularies"], told
    assert told["listen"]["sse"]["type"] == "text/event-stream", told
    said = {"Accept": "text/turtle"}
    for path in (f"/streams/{stream}/about", "/streams"):
        answer = await broker.expect(200, "GET", path, headers=said)
        types = {str(quad.object) for quad in ox.parse(answer.body, format=ox.RdfFormat.TURTLE)}
        assert "<http://www.w3.org/ns/dcat#Dataset>" in types, path


@DIALECTS.check("what is served is told to machines: OpenAPI 3.1, AsyncAPI 3, and where they are")
async def _(broker: Broker) -> None:
    openapi, asyncapi = [(await broker.expect(200, "GET", f"/{name}.json")).json() for name in ("openapi", "asyncapi")]
    assert openapi["openapi"].startswith("3.1"), openapi["openapi"]
    assert asyncapi["asyncapi"].startswith("3."), asyncapi["asyncapi"]
    assert {"get", "post"} <= openapi["paths"]["/streams/{stream}"].keys()
    (known,) = (await broker.expect(200, "GET", "/.well-known/api-catalog")).json()["linkset"]
    named = {urlsplit(each["href"]).path for each in known["service-desc"]}
    assert named >= {"/openapi.json", "/asyncapi.json"}, named


@DIALECTS.check("an event that does not conform to the shapes of its stream is refused with the report")
async def _(broker: Broker) -> None:
    path = f"/streams/{broker.name()}"
    turtle = {"Content-Type": "text/turtle", SOURCE: broker.mark}
    broker.made.append(f"{path}/shapes")
    await broker.expect(200, "PUT", f"{path}/shapes?mode=refuse", data=_SHAPES.encode(), headers=turtle)
    await broker.expect(201, "POST", path, data=b"<urn:s> <urn:p> 11 .", headers=turtle)
    told = await broker.problem(422, "POST", path, data=b"<urn:s> <urn:p> 9 .", headers=turtle)
    assert (told["violations"], told["results"][0]["focus"]) == (1, "urn:s"), told


@DIALECTS.check("a webhook leads to no address that only the broker reaches")
async def _(broker: Broker) -> None:
    wish = {"stream": broker.name(), "webhook": {"url": "http://169.254.169.254/latest/meta-data"}}
    told = await broker.problem(422, "POST", "/subscriptions", json=wish)
    assert told["field"] == "webhook", told


@DIALECTS.check("streams name a hub of WebSub, which says what is wrong with a form")
async def _(broker: Broker) -> None:
    stream = broker.name()
    answer = await broker.expect(200, "HEAD", f"/streams/{stream}")
    links = ", ".join(value for name, value in answer.headers.items() if name.lower() == "link")
    assert 'rel="hub"' in links, links
    form = {"hub.mode": "shout", "hub.topic": f"{broker.url}/streams/{stream}", "hub.callback": "https://example.org/"}
    await broker.problem(400, "POST", "/websub", data=form)
