"""What those hear who see a part of what is published, however they listen."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.pairs import examples
from tests.http.auth.test_auth import Acquaintances, bearer
from tests.http.brokers import Broker, broker, observed
from tests.http.harness import Ear, data, house, run
from triplewire.http.app import EdgeParts
from triplewire.model import Event, format_position
from triplewire.model.events import OpaquePayload
from triplewire.model.terms import RDF_TYPE
from triplewire.security import Principal, Visibility, parse_policy, visibility_of
from triplewire.security.principals import Verb
from triplewire.security.visibility import PatternSet
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.security import PolicyStore

HEAD = '[default]\nsee = "allow"\npublish = "allow"\n'
POLICY = f"""{HEAD}
[[see]]
name = "weights and cats are for keepers"
who = ["*"]
except = ["role:keeper", "name:root"]
deny.predicates = ["<urn:weight>"]
deny.classes = ["<urn:Cat>"]

[[publish]]
name = "guests do not weigh"
who = ["name:ann"]
deny.predicates = ["<urn:weight>"]
"""
PEOPLE = Acquaintances(
    {
        "root": Principal.granted("root", ["*"]),
        "ann": Principal.granted("ann", ["consume", "subscribe", "publish"]),
        "ben": Principal.granted("ben", ["consume", "subscribe"]),
        "kim": Principal.granted("kim", ["consume", "subscribe"], ["keeper"]),
        "eve": Principal.granted("eve", ["consume:even", "subscribe:even"]),
    }
)
TOML = {"Content-Type": "application/toml"}
LAST = Event("urn:event:last", "<urn:a>\t<urn:says>\t<urn:end>")
_POSITION = re.compile(rb"[0-9a-f]{16}")

Quads = set[tuple[str, str, str, str]]


def left_of(events: Iterable[Event], visibility: Visibility | None) -> Quads:
    """The visible quads, by the words of the rules."""
    return {quad for each in events for quad in _left(each, visibility)}


def _left(event: Event, visibility: Visibility | None) -> Quads:
    quads = {(each.subject, each.predicate, each.object, each.graph) for each in event.quads}
    if visibility is None:
        return quads
    hidden = {
        subject
        for subject, predicate, object_, _ in quads
        if predicate == RDF_TYPE and object_ not in visibility.classes
    }
    return {
        quad for quad in quads if quad[1] in visibility.predicates and quad[0] not in hidden and quad[2] not in hidden
    }


def quads_in(body: bytes, format: ox.RdfFormat) -> Quads:
    read = ox.parse(body, format=format)
    return {(str(each.subject), str(each.predicate), str(each.object), str(each.graph_name)) for each in read}


def quads_of(documents: Iterable[dict[str, Any]]) -> Quads:
    return {quad for each in documents for quad in quads_in(each["body"].encode(), ox.RdfFormat.N_QUADS)}


def said_in(body: bytes, format: str) -> Quads:
    """Every quad that an answer holds, in whatever format."""
    if format in ("nquads", "trig"):
        # What is outside of all graphs is about events, and none of their quads.
        read = quads_in(body, ox.RdfFormat.N_QUADS if format == "nquads" else ox.RdfFormat.TRIG)
        return {quad for quad in read if quad[3] != str(ox.DefaultGraph())}
    lines = body.decode().splitlines()
    lines = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")] if format == "sse" else lines
    return quads_of(each for each in map(orjson.loads, lines) if "body" in each)


@asynccontextmanager
async def ward(folder: Path, policy: str = POLICY) -> AsyncIterator[Broker]:
    """A broker with a policy in force."""
    async with broker(folder, PEOPLE) as at:
        await at.call("PUT", "/policy", data=policy, headers={**bearer("root"), **TOML})
        yield at


async def heard(ear: Ear, last: str = LAST.id) -> list[dict[str, Any]]:
    """All events up to one."""
    found = [data(await ear.next())]
    while found[-1]["event"] != last:
        found.append(data(await ear.next()))
    return found


def end(at: Broker, stream: str = "even") -> None:
    at.at.twin.log.append([Publication(stream, [LAST])])


@pytest.mark.parametrize("name", ["ann", "kim", "eve"])
@pytest.mark.parametrize("kept", ["log", "lake", "memory"])
def test_the_past_and_the_present_are_told_as_somebody_sees_them(tmp_path: Path, name: str, kept: str) -> None:
    async def scene() -> None:
        async with ward(tmp_path) as at:
            at.publish(12)
            if kept == "lake":
                at.store()
                at.match()
                at.trim()
                assert at.at.twin.log.floor("even")
            async with at.at.listen("/streams/even", **bearer("root")) as other:
                await other.position()
                if kept == "memory":
                    at.publish(2)
                    await other.take(1)
                async with at.at.listen("/streams/even?after=earliest", **bearer(name)) as ear:
                    at.publish(6)
                    end(at)
                    found = await heard(ear)
            events = [observed(each) for each in range(len(at.events)) if each % 2 == 0]
            visibility = None if name == "kim" else _visibility("ann")
            assert quads_of(found) == left_of([*events, LAST], visibility)
            assert len(found) == len({each for _, _, _, each in left_of([*events, LAST], visibility)})

    run(scene())


@pytest.mark.parametrize("format", ["sse", "ndjson", "nquads", "trig"])
def test_formats_tell_the_same(tmp_path: Path, format: str) -> None:
    async def scene() -> None:
        async with ward(tmp_path) as at:
            at.publish(12)
            path = f"{at.at.url}/streams/even?after=earliest&mode=poll&format={format}"
            async with at.at.session.get(path, headers=bearer("ann")) as response:
                body = await response.read()
            events = [observed(each) for each in range(0, 12, 2)]
            assert said_in(body, format) == left_of(events, _visibility("ann"))
            for hidden in (b"urn:weight", b"urn:Cat", b"urn:event:2>", b"urn:animal:8"):
                assert hidden not in body

    run(scene())


@pytest.mark.parametrize("format", ["ztreamy", "cloudevents", "cloudevents-batch"])
def test_dialects_tell_nothing_that_is_hidden(tmp_path: Path, format: str) -> None:
    async def scene() -> None:
        async with ward(tmp_path) as at:
            at.publish(12)
            path = f"{at.at.url}/streams/even?after=earliest&mode=poll&format={format}"
            async with at.at.session.get(path, headers=bearer("ann")) as response:
                assert response.status == 200, await response.text()
                body = await response.read()
            assert b"urn:animal:0" in body
            for hidden in (b"urn:weight", b"urn:Cat", b"urn:event:2", b"urn:animal:8"):
                assert hidden not in body

    run(scene())


def test_a_websocket_and_many_over_one_connection_tell_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        async with ward(tmp_path) as at:
            at.publish(6)
            events = [observed(each) for each in range(0, 6, 2)]
            url, headers = at.at.url, bearer("ann")
            async with at.at.session.ws_connect(f"{url}/streams/even?after=earliest", headers=headers) as socket:
                end(at)
                told = await _messages(socket)
            assert quads_of(told) == left_of([*events, LAST], _visibility("ann"))
            async with at.at.session.ws_connect(f"{url}/notifications", headers=headers) as socket:
                await socket.send_json({"stream": "even", "after": "earliest"})
                told = await _messages(socket)
            assert quads_of(told) == left_of([*events, LAST], _visibility("ann"))
            async with at.at.listen("/notifications?stream=even&after=earliest", **headers) as ear:
                assert quads_of(await heard(ear)) == left_of([*events, LAST], _visibility("ann"))

    run(scene())


async def _messages(socket: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    found = []
    async for message in socket:
        told = orjson.loads(message.data)
        if "body" in told:
            found.append(told)
        if told.get("event") == LAST.id:
            return found
    raise AssertionError("the connection was closed")


def test_sieves_are_asked_of_what_is_visible(tmp_path: Path) -> None:
    asks = {
        "ASK { ?s <urn:weight> ?w }": set(),
        "ASK { ?s ?p ?o FILTER(?p = <urn:weight>) }": set(),
        "ASK { ?s <urn:name> ?n FILTER NOT EXISTS { ?s <urn:weight> ?w } }": {0, 4, 6, 10},
        "ASK { ?s a <urn:Dog> }": {4, 10},
    }

    async def scene() -> None:
        async with ward(tmp_path) as at:
            at.publish(12)
            for ask, numbers in asks.items():
                query = {"after": "earliest", "mode": "poll", "wait": "0", "format": "ndjson", "ask": ask}
                async with at.at.session.get(
                    f"{at.at.url}/streams/even", params=query, headers=bearer("ann")
                ) as answer:
                    told = [orjson.loads(line) for line in (await answer.read()).splitlines()]
                assert {each["event"] for each in told if "body" in each} == {f"urn:event:{each}" for each in numbers}

    run(scene())


def test_those_who_see_the_same_share_a_channel(tmp_path: Path) -> None:
    async def scene() -> None:
        async with ward(tmp_path) as at:
            room = at.at.edge.filtered.topic
            async with AsyncExitStack() as stack:
                ears = [
                    await stack.enter_async_context(at.at.listen("/streams/even", **bearer(name)))
                    for name in ("ann", "ben", "kim")
                ]
                for ear in ears:
                    await ear.position()
                end(at)
                for ear in ears:
                    await heard(ear)
                (tap,) = room
                assert sum(map(len, room.channels(tap))) == 2
                assert len(at.at.edge.events.topic) == 1

    run(scene())


def test_a_change_of_policy_holds_from_its_position_on_for_those_who_listen(tmp_path: Path) -> None:
    async def scene() -> None:
        async with ward(
            tmp_path, HEAD + '[[see]]\nname = "n"\nwho = ["name:ann"]\ndeny.predicates = ["<urn:none>"]\n'
        ) as at:
            async with (
                at.at.listen("/streams/even", **bearer("ann")) as ear,
                at.at.listen("/streams/even", **bearer("root")) as other,
            ):
                await ear.position()
                await other.position()
                at.publish(3)
                # In one breath, so that events of both policies are in one pass.
                PolicyStore(at.at.twin.registry).load(POLICY)
                at.publish(4)
                before = await ear.rest()
                assert [each.event for each in before][-1] == "closing"
                assert quads_of(map(data, before[:-1])) == left_of([observed(0), observed(2)], None)
                end(at)
                assert {each["event"] for each in await heard(other)} >= {"urn:event:0", "urn:event:4"}
            async with at.at.listen("/streams/even", Last_Event_ID=str(before[-2].id), **bearer("ann")) as ear:
                assert quads_of(await heard(ear)) == left_of([observed(4), observed(6), LAST], _visibility("ann"))

    run(scene())


def test_who_saw_everything_is_sent_back_as_well(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at, at.at.listen("/streams/even", **bearer("ann")) as ear:
            await ear.position()
            at.publish(1)
            await at.call("PUT", "/policy", data=POLICY, headers={**bearer("root"), **TOML})
            at.publish(2)
            assert [each.event for each in await ear.rest()] == ["event", "closing"]

    run(scene())


def test_a_stream_that_is_hidden_is_silent_and_has_no_past(tmp_path: Path) -> None:
    policy = HEAD + '[[see]]\nname = "n"\nwho = ["name:ann"]\ndeny.streams = ["even"]\n'

    async def scene() -> None:
        async with ward(tmp_path, policy) as at:
            at.publish(6)
            at.store()
            at.match()
            at.trim()
            for after in ("earliest", "urn:event:0", format_position(2)):
                query = {"after": after, "mode": "poll", "wait": "0"}
                for stream in ("even", "never"):
                    path = f"{at.at.url}/streams/{stream}"
                    async with at.at.session.get(path, params=query, headers=bearer("ann")) as answer:
                        assert (answer.status, await answer.read()) == (204, b"") or stream == "never"

    run(scene())


def test_to_come_back_to_an_event_that_is_hidden_tells_nothing_of_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with ward(tmp_path) as at:
            at.publish(10)
            starts = []
            for event in ("urn:event:2", "urn:event:none"):
                async with at.at.listen(f"/streams/even?after={event}", **bearer("ann")) as ear:
                    await ear.next()
                    starts.append([_POSITION.sub(b"", each.data) for each in ear.begun])
            assert starts[0] == starts[1]
            async with at.at.listen("/streams/even?after=urn:event:4", **bearer("ann")) as ear:
                assert data(await ear.next())["event"] == "urn:event:6"

    run(scene())


def test_what_is_no_rdf_is_seen_by_who_sees_its_quads(tmp_path: Path) -> None:
    policy = HEAD + '[[see]]\nname = "n"\nwho = ["name:ben"]\ndeny.predicates = ["<https://triplewire.dev/ns#body>"]\n'

    async def scene() -> None:
        async with ward(tmp_path, policy) as at:
            carried = Event("urn:carried", OpaquePayload("text/csv", b"a,b").text("urn:carried"))
            at.at.twin.log.append([Publication("even", [carried])])
            end(at)
            for name, told in (("ann", True), ("ben", False)):
                async with at.at.listen("/streams/even?after=earliest", **bearer(name)) as ear:
                    assert ("a,b" in str(await heard(ear))) is told

    run(scene())


@pytest.mark.parametrize("way", ["body", "each", "socket", "events"])
def test_what_must_not_be_published_is_refused_with_the_rule(tmp_path: Path, way: str) -> None:
    lines = '<urn:a> <urn:name> "n" <urn:e:1> .\n<urn:a> <urn:weight> 1 <urn:e:2> .\n'.replace(" 1 ", ' "1" ')

    async def scene() -> None:
        async with ward(tmp_path) as at:
            refusal = (await _refused(at, way, lines))["problem"]
            assert refusal["status"] == 403
            assert "the predicate <urn:weight>" in refusal["detail"]
            assert "'guests do not weigh'" in refusal["detail"]
            stored = at.at.twin.log.read(0, at.at.twin.log.head(), 100)["event"].to_pylist()
            assert stored == ([] if way == "events" else ["urn:e:1"])

    run(scene())


async def _refused(at: Broker, way: str, lines: str) -> dict[str, Any]:
    headers = {**bearer("ann"), "Content-Type": "application/n-quads"}
    if way == "body":
        answer = await at.call("POST", "/streams/even", data=lines, headers=headers)
        assert (answer["events"], answer["refusals"]) == (1, 1)
        return dict(answer["refused"][0])
    if way == "events":
        said = "".join(f'<urn:e:{each}> <https://triplewire.dev/ns#stream> "even" .\n' for each in (1, 2))
        return {"problem": await at.at.problem("POST", "/events", data=said + lines, headers=headers)}
    if way == "socket":
        path = f"{at.at.url}/streams/even/publish?type=application/n-quads"
        async with at.at.session.ws_connect(path, headers=bearer("ann")) as socket:
            for line in lines.splitlines():
                await socket.send_str(line)
            return [dict(orjson.loads((await socket.receive()).data)) for _ in range(2)][1]
    items = "".join(
        orjson.dumps({"format": "application/n-quads", "body": each}).decode() + "\n" for each in lines.splitlines()
    )
    headers |= {"Content-Type": "application/x-ndjson"}
    async with at.at.session.post(f"{at.at.url}/streams/even?ack=each", data=items, headers=headers) as response:
        told = [orjson.loads(line) for line in (await response.read()).splitlines()]
    return next(each for each in told if "problem" in each)


def test_a_change_of_policy_holds_for_the_next_publication(tmp_path: Path) -> None:
    async def scene() -> None:
        async with broker(tmp_path, PEOPLE) as at:
            line, headers = '<urn:a> <urn:weight> "1" .', {**bearer("ann"), "Content-Type": "application/n-triples"}
            await at.call("POST", "/streams/even", data=line, headers=headers)
            await at.call("PUT", "/policy", data=POLICY, headers={**bearer("root"), **TOML})
            refusal = await at.at.problem("POST", "/streams/even", data=line, headers=headers)
            assert refusal["status"] == 403
            await at.call("DELETE", "/policy", headers=bearer("root"))
            await at.call("POST", "/streams/even", data=line, headers=headers)

    run(scene())


def _visibility(name: str, text: str = POLICY) -> Visibility | None:
    return visibility_of(PEOPLE.people[name], Verb.CONSUME, parse_policy(text))


_PREDICATES = ("<urn:p>", "<urn:q>", "<urn:r>")
_CLASSES = ("<urn:C>", "<urn:D>")
_lines = st.sampled_from(
    [
        f"{subject}\t{predicate}\t{object_}"
        for subject in ("<urn:a>", "<urn:b>")
        for predicate, objects in (
            *((each, ("<urn:a>", "<urn:b>", '"1"')) for each in _PREDICATES),
            (RDF_TYPE, _CLASSES),
        )
        for object_ in objects
    ]
)
_events = st.lists(st.lists(_lines, min_size=1, max_size=4, unique=True), min_size=1, max_size=5)
_denied = st.tuples(
    st.lists(st.sampled_from(_PREDICATES), max_size=2, unique=True) | st.just(["<urn:*"]),
    st.lists(st.sampled_from(_CLASSES), max_size=2, unique=True) | st.just(["<urn:*"]),
)


@examples(12)
@given(_events, _denied, st.sampled_from(["sse", "ndjson", "nquads", "trig"]))
def test_any_policy_and_any_events(texts: list[list[str]], denied: tuple[list[str], list[str]], format: str) -> None:
    """Whatever a policy denies: what is told is what is left."""
    published = [Event(f"urn:e:{number}", "\n".join(lines)) for number, lines in enumerate(texts)]
    predicates, classes = (PatternSet.of(["*"], each) for each in denied)
    rules = [
        f"deny.{kind} = {_written(each)}" for kind, each in zip(("predicates", "classes"), denied, strict=True) if each
    ]
    policy = HEAD + ("" if not rules else "\n".join(['[[see]]\nname = "n"\nwho = ["name:ann"]', *rules]))

    async def scene() -> None:
        async with house(change=_shut) as at:
            PolicyStore(at.twin.registry).load(policy)
            at.twin.log.append([Publication("test", published)])
            path = f"{at.url}/streams/test?after=earliest&mode=poll&wait=0&format={format}"
            async with at.session.get(path, headers=bearer("ann")) as answer:
                body = await answer.read()
            assert said_in(body, format) == left_of(published, Visibility(predicates=predicates, classes=classes))

    run(scene())


def _shut(parts: EdgeParts) -> EdgeParts:
    return replace(parts, authenticators=(PEOPLE,))


def _written(patterns: Sequence[str]) -> str:
    return orjson.dumps([each if each.endswith(">") else each.replace("*", ">*") for each in patterns]).decode()
