"""Consume: every format, every way, every place to begin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson

from tests.conformance.deployments.brokers import Broker
from tests.conformance.deployments.checks import Group
from tests.conformance.deployments.hearing import READERS, Ear, lines

CONSUME = Group("consume")

_COUNT = 3


async def _published(broker: Broker, stream: str, count: int = _COUNT) -> list[str]:
    return [(await broker.publish(stream, f"<urn:s> <urn:p> {n} ."))["position"] for n in range(count)]


def _in(name: str) -> Callable[[Broker], Awaitable[None]]:
    async def run(broker: Broker) -> None:
        stream = broker.name()
        positions = await _published(broker, stream)
        async with broker.opened(f"/streams/{stream}?after=earliest&format={name}") as response:
            heard = await Ear(response, READERS[name]).take(_COUNT)
        assert [each.position for each in heard] == positions, heard

    return run


for _name in READERS:
    CONSUME.check(f"a stream is told as {_name}, in order, each with where to resume")(_in(_name))


def _packed(encoding: str) -> Callable[[Broker], Awaitable[None]]:
    async def run(broker: Broker) -> None:
        stream = broker.name()
        positions = await _published(broker, stream)
        async with broker.opened(f"/streams/{stream}?after=earliest", Accept_Encoding=encoding) as response:
            assert response.headers.get("Content-Encoding") == encoding, response.headers
            assert [each.position for each in await Ear(response).take(_COUNT)] == positions

    return run


CONSUME.check("a stream may be packed with gzip")(_packed("gzip"))


@CONSUME.check("polls tell what there is, and where to ask for the rest")
async def _(broker: Broker) -> None:
    stream = broker.name()
    positions = await _published(broker, stream)
    path, heard = f"/streams/{stream}?mode=poll&format=ndjson&limit=2&wait=0&after=earliest", list[str]()
    for _ in range(2):
        answer = await broker.expect(200, "GET", path)
        found, _rest = lines(answer.body)
        heard += [each.position or "" for each in found]
        assert answer.headers["Position"] == heard[-1], answer.headers
        path = answer.headers["Link"].partition(">")[0].removeprefix("<")
    assert heard == positions
    await broker.expect(204, "GET", path)


@CONSUME.check("a WebSocket tells one message in one text")
async def _(broker: Broker) -> None:
    stream = broker.name()
    positions = await _published(broker, stream)
    async with broker.socket(f"/streams/{stream}?after=earliest") as socket:
        heard = [orjson.loads(await socket.receive_str()) for _ in range(_COUNT + 1)]
    assert [each["position"] for each in heard if each["type"] == "event"] == positions, heard


@CONSUME.check("a client that acknowledges is told no more than its window")
async def _(broker: Broker) -> None:
    stream = broker.name()
    positions = await _published(broker, stream)
    async with broker.socket(f"/streams/{stream}?after=earliest&ack=1&window=1") as socket:
        for position in positions:
            while (said := orjson.loads(await socket.receive_str()))["type"] != "event":
                pass
            assert said["position"] == position, said
            # An answer to what is not understood comes at once: that nothing else came before it is the window's doing.
            await socket.send_str('{"hello": 1}')
            assert orjson.loads(await socket.receive_str())["type"] == "problem"
            await socket.send_str(orjson.dumps({"ack": position}).decode())


@CONSUME.check("many streams are told over one connection, in the order of events")
async def _(broker: Broker) -> None:
    one, two = broker.name(), broker.name()
    positions = [(await broker.publish(each, "<urn:s> <urn:p> 1 ."))["position"] for each in (one, two, one, two)]
    async with broker.opened(f"/notifications?stream={one}&stream={two}&after={_before(positions[0])}") as response:
        heard = await Ear(response).take(4)
    assert [each.said["position"] for each in heard] == positions, heard


def _before(position: str) -> str:
    return f"{int(position, 16) - 1:016x}"


@CONSUME.check("who resumes with Last-Event-ID is told what follows, and nothing twice")
async def _(broker: Broker) -> None:
    stream = broker.name()
    positions = await _published(broker, stream)
    async with broker.opened(f"/streams/{stream}", Last_Event_ID=positions[0]) as response:
        assert [each.position for each in await Ear(response).take(2)] == positions[1:]


@CONSUME.check("a listener may begin after the IRI of an event")
async def _(broker: Broker) -> None:
    stream, id = broker.name(), broker.iri()
    await broker.publish(stream, "<urn:s> <urn:p> 0 .", Event_Id=id)
    last = (await broker.publish(stream, "<urn:s> <urn:p> 1 ."))["position"]
    async with broker.opened(f"/streams/{stream}?after={id}") as response:
        assert [each.position for each in await Ear(response).take(1)] == [last]


@CONSUME.check("only what passes a sieve is told")
async def _(broker: Broker) -> None:
    stream = broker.name()
    await _published(broker, stream, 2)
    wanted = (await broker.publish(stream, "<urn:s> <urn:p> 1 .", Application_Id="wanted"))["position"]
    async with broker.opened(f"/streams/{stream}?after=earliest&application=wanted") as response:
        assert [each.position for each in await Ear(response).take(1)] == [wanted]


@CONSUME.check("only what a query of a sieve holds of is told", live=True)
async def _(broker: Broker) -> None:
    stream = broker.name()
    await _published(broker, stream, 2)
    wanted = (await broker.publish(stream, "<urn:s> <urn:wanted> 1 ."))["position"]
    path = f"/streams/{stream}?after=earliest&ask=ASK%7B%3Fs%20%3Curn%3Awanted%3E%20%3Fo%7D"
    async with broker.opened(path) as response:
        assert [each.position for each in await Ear(response).take(1)] == [wanted]


@CONSUME.check("a stream of a name that nobody has published to can be listened to")
async def _(broker: Broker) -> None:
    stream = broker.name()
    async with broker.opened(f"/streams/{stream}") as response:
        ear = Ear(response)
        assert (await ear.next()).name == "position"
        position = (await broker.publish(stream, "<urn:s> <urn:p> 1 ."))["position"]
        assert [each.position for each in await ear.take(1)] == [position]


@CONSUME.check("HEAD on a stream does not hang")
async def _(broker: Broker) -> None:
    answer = await broker.call("HEAD", f"/streams/{broker.name()}")
    assert answer.status in (200, 405), answer.status
