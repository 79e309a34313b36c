"""Publish: every syntax, headers, items, one by one and for long."""

from __future__ import annotations

import gzip

import orjson

from tests.conformance.deployments.brokers import SOURCE, Broker
from tests.conformance.deployments.checks import Group
from tests.conformance.deployments.hearing import Ear

PUBLISH = Group("publish")

SYNTAXES = {
    "text/turtle": "<urn:s> <urn:p> 1 .",
    "application/n-triples": '<urn:s> <urn:p> "1" .\n',
    "application/n-quads": '<urn:s> <urn:p> "1" <{id}> .\n',
    "application/trig": '<{id}> {{ <urn:s> <urn:p> "1" }}',
    "application/ld+json": '{{"@id": "urn:s", "urn:p": "1"}}',
    "application/rdf+xml": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:">'
    '<rdf:Description rdf:about="urn:s"><u:p>1</u:p></rdf:Description></rdf:RDF>',
}


@PUBLISH.check("events are taken in six syntaxes, and each has a position after the one before")
async def _(broker: Broker) -> None:
    stream, positions = broker.name(), []
    for media_type, body in SYNTAXES.items():
        receipt = await broker.publish(stream, body.format(id=broker.iri()), media_type)
        assert receipt["events"] == 1, (media_type, receipt)
        positions.append(receipt["position"])
    assert positions == sorted(set(positions)), positions


@PUBLISH.check("each named graph of a body is an event, whose id is its name")
async def _(broker: Broker) -> None:
    stream, ids = broker.name(), [broker.iri() for _ in range(3)]
    body = "".join(f"<urn:s> <urn:p> <urn:o> <{id}> .\n" for id in ids)
    assert (await broker.publish(stream, body, "application/n-quads"))["events"] == 3
    async with broker.opened(f"/streams/{stream}?after=earliest") as response:
        assert [each.said["event"] for each in await Ear(response).take(3)] == ids


@PUBLISH.check("what a publisher says of an event is told to those who listen")
async def _(broker: Broker) -> None:
    stream, id = broker.name(), broker.iri()
    said = {"Event_Id": id, "Application_Id": "suite", "Timestamp": "2026-01-02T03:04:05Z"}
    await broker.publish(stream, "<urn:s> <urn:p> 1 .", **said)
    async with broker.opened(f"/streams/{stream}?after=earliest") as response:
        (message,) = await Ear(response).take(1)
    told = [message.said[name] for name in ("event", "source", "application", "time")]
    assert told == [id, broker.mark, "suite", "2026-01-02T03:04:05Z"], told


@PUBLISH.check("a body may be compressed")
async def _(broker: Broker) -> None:
    packed = gzip.compress(b"<urn:s> <urn:p> 1 .")
    assert (await broker.publish(broker.name(), packed, Content_Encoding="gzip"))["events"] == 1


@PUBLISH.check("of lines, each is taken or refused by itself")
async def _(broker: Broker) -> None:
    good = {"format": "text/turtle", "body": "<urn:s> <urn:p> 1 ."}
    body = b"\n".join([orjson.dumps(good), b"{", orjson.dumps(good)])
    receipt = await broker.publish(broker.name(), body, "application/x-ndjson")
    assert (receipt["events"], receipt["refusals"]) == (2, 1), receipt
    assert receipt["refused"][0]["problem"]["status"] == 400, receipt


@PUBLISH.check("a request that keeps publishing hears of each item")
async def _(broker: Broker) -> None:
    lines = [orjson.dumps({"format": "text/turtle", "body": f"<urn:s> <urn:p> {n} ."}) for n in range(3)]
    headers = {"Content-Type": "application/x-ndjson", SOURCE: broker.mark}
    path = f"/streams/{broker.name()}?ack=each"
    answer = await broker.expect(200, "POST", path, data=b"\n".join(lines), headers=headers)
    told = [orjson.loads(line) for line in answer.body.splitlines()]
    assert [each["item"] for each in told if "position" in each] == [1, 2, 3], told
    assert told[-1]["end"]["events"] == 3, told


@PUBLISH.check("a WebSocket that keeps publishing hears of each item")
async def _(broker: Broker) -> None:
    async with broker.socket(f"/streams/{broker.name()}/publish") as socket:
        for number in range(3):
            said = {"source": broker.mark, "format": "text/turtle", "body": f"<urn:s> <urn:p> {number} ."}
            await socket.send_str(orjson.dumps(said).decode())
        told = [orjson.loads(await socket.receive_str()) for _ in range(3)]
    assert [each["item"] for each in told if "position" in each] == [1, 2, 3], told


@PUBLISH.check("events of one body may be of many streams")
async def _(broker: Broker) -> None:
    one, two = broker.name(), broker.name()
    body = "".join(
        f'<{id}> <https://triplewire.dev/ns#stream> "{stream}" ; <https://triplewire.dev/ns#source> "{broker.mark}" .\n'
        f"<{id}> {{ <urn:s> <urn:p> <urn:o> }}\n"
        for id, stream in ((broker.iri(), one), (broker.iri(), two))
    )
    answer = await broker.expect(201, "POST", "/events", data=body, headers={"Content-Type": "application/trig"})
    assert answer.json()["events"] == 2, answer.json()
    for stream in (one, two):
        async with broker.opened(f"/streams/{stream}?after=earliest") as response:
            assert (await Ear(response).take(1))[0].said["stream"] == stream
