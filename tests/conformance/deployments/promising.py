"""Guarantees: durable and ordered, once, past then present, erased when it was asked for; and how things stand."""

from __future__ import annotations

import asyncio

from tests.conformance.deployments.brokers import SOURCE, Broker
from tests.conformance.deployments.checks import Group
from tests.conformance.deployments.hearing import Ear

GUARANTEES = Group("guarantees")
STATUS = Group("status")

_TURTLE = {"Content-Type": "text/turtle"}


@GUARANTEES.check("what is acknowledged is there for who asks afterwards, in the order of positions")
async def _(broker: Broker) -> None:
    stream = broker.name()
    bodies = [f"<urn:s> <urn:p> {number} ." for number in range(20)]
    receipts = await asyncio.gather(*(broker.publish(stream, body) for body in bodies))
    path = f"/streams/{stream}?mode=poll&wait=0&format=ndjson&after=earliest"
    answer = await broker.expect(200, "GET", path)
    positions = [line.split(b'"position":"')[1][:16].decode() for line in answer.body.splitlines()]
    assert positions == sorted(each["position"] for each in receipts), positions


@GUARANTEES.check("the past comes first, then the present, without a gap and nothing twice")
async def _(broker: Broker) -> None:
    stream = broker.name()
    positions = [(await broker.publish(stream, f"<urn:s> <urn:p> {n} ."))["position"] for n in range(5)]
    async with broker.opened(f"/streams/{stream}?after=earliest") as response:
        ear = Ear(response)
        heard = await ear.take(1)
        # Published while the past is still being told, or just after: nobody can say which.
        receipts = await asyncio.gather(*(broker.publish(stream, f"<urn:s> <urn:p> {n} .") for n in range(5, 10)))
        heard += await ear.take(9)
    assert [each.position for each in heard] == [*positions, *sorted(each["position"] for each in receipts)]


@GUARANTEES.check("an event whose id was given is stored once; with other content it is refused")
async def _(broker: Broker) -> None:
    stream, id = broker.name(), broker.iri()
    first = await broker.publish(stream, "<urn:s> <urn:p> 1 .", Event_Id=id)
    again = await broker.publish(stream, "<urn:s> <urn:p> 1 .", Event_Id=id)
    assert (again["position"], again["repeated"]) == (first["position"], 1), (first, again)
    headers = {**_TURTLE, "Event-Id": id, SOURCE: broker.mark}
    told = await broker.problem(409, "POST", f"/streams/{stream}", data=b"<urn:s> <urn:p> 2 .", headers=headers)
    assert told["position"] == first["position"], told


@GUARANTEES.check("a publication with an Idempotency-Key that comes again is answered as the first time")
async def _(broker: Broker) -> None:
    stream, key = broker.name(), broker.name()
    body = "<urn:s> <urn:p> 1 ."
    first, again = [await broker.publish(stream, body, Idempotency_Key=key) for _ in range(2)]
    assert first["position"] == again["position"], (first, again)
    last = await broker.publish(stream, "<urn:s> <urn:p> 2 .")
    async with broker.opened(f"/streams/{stream}?after=earliest") as response:
        heard = [each.position for each in await Ear(response).take(2)]
    assert heard == [first["position"], last["position"]], heard


@GUARANTEES.check("an event with something wrong in it is not stored at all")
async def _(broker: Broker) -> None:
    stream = broker.name()
    await broker.problem(400, "POST", f"/streams/{stream}", data=b"<urn:s> <urn:p> 1 . <urn:s>", headers=_TURTLE)
    position = (await broker.publish(stream, "<urn:s> <urn:p> 2 ."))["position"]
    async with broker.opened(f"/streams/{stream}?after=earliest") as response:
        assert [each.position for each in await Ear(response).take(1)] == [position]


@GUARANTEES.check("from the answer to an erasure on nobody is told the event, and a receipt says how far it is")
async def _(broker: Broker) -> None:
    stream, id = broker.name(), broker.iri()
    await broker.publish(stream, "<urn:s> <urn:p> 1 .", Event_Id=id)
    last = (await broker.publish(stream, "<urn:s> <urn:p> 2 ."))["position"]
    receipt = await broker.erase(id)
    async with broker.opened(f"/streams/{stream}?after=earliest") as response:
        assert [each.position for each in await Ear(response).take(1)] == [last]
    told = (await broker.expect(200, "GET", f"/erasures/{receipt['id']}")).json()
    hidden = told["steps"][0]
    assert (told["erases"], hidden["step"], hidden["state"]) == ("event", "hidden", "done"), told
    assert id not in str(told), "a receipt names what it erases"


@STATUS.check("health tells how far log, matching and history are")
async def _(broker: Broker) -> None:
    answer = await broker.call("GET", "/health")
    told = answer.json()
    assert answer.status == (200 if told["status"] in ("ok", "lagging") else 503), (answer.status, told["status"])
    assert told["matched"] <= told["head"], told


@STATUS.check("every answer says of which broker it is")
async def _(broker: Broker) -> None:
    answers = [await broker.call("GET", path) for path in ("/", "/health", "/subscriptions")]
    assert len({each.headers["Edge-Id"] for each in answers}) == 1, [each.headers for each in answers]


@STATUS.check("metrics are there for Prometheus")
async def _(broker: Broker) -> None:
    answer = await broker.expect(200, "GET", "/metrics")
    assert b"# TYPE triplewire_events_published_total counter" in answer.body
