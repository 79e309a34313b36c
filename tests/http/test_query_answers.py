"""Answers of continuous queries over sockets: what the pipeline writes, told once, in every way there is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pyarrow as pa
import pytest

from tests.http.auth.test_auth import Acquaintances, bearer
from tests.http.harness import Ear, House, house, run
from triplewire.client.feeds import SseMessage
from triplewire.continuous.state import PARTIAL_ROWS
from triplewire.http.app import EdgeParts
from triplewire.matching.plans import SOLUTIONS
from triplewire.model import MATCHES, Event, format_position
from triplewire.model.subscriptions import ANSWER, ContinuousQuery, Owner, QueryState
from triplewire.security import Principal
from triplewire.security.principals import Authenticator
from triplewire.storage.log.ports import LogRetention, Publication
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.subscriptions import QUERY, query_to_value

PATH = "/queries/q/answers"
ALIKE = "SELECT ?car ?place { ?car <urn:at> ?place . ?car <urn:was> ?place }"
PLAIN = ContinuousQuery("q", ALIKE, group=7, variables=("car", "place"))
ASK = ContinuousQuery("q", "ASK { ?car <urn:at> ?place . ?car <urn:was> ?place }", group=8)
WINDOWED = ContinuousQuery("q", "REGISTER RSTREAM <hot> AS …", into="hot")


@dataclass
class Road:
    """An edge, and what the third query of the pipeline writes."""

    at: House
    batches: int = field(default=0)

    def register(self, query: ContinuousQuery = PLAIN) -> ContinuousQuery:
        (since,) = self.at.twin.registry.put([(QUERY, query.id, query_to_value(query))])
        return replace(query, since=since)

    def suspend(self, query: ContinuousQuery) -> int:
        value = {**query_to_value(replace(query, state=QueryState.SUSPENDED)), "first": query.since}
        return self.at.twin.registry.put([(QUERY, query.id, value)])[0]

    def answer(self, *rows: dict[str, Any]) -> None:
        table = pa.Table.from_pylist([*rows], schema=MATCHES)
        self.at.outbox.write(self.batches, self.at.twin.log.head(), table, OutboxLane.CONTINUOUS)
        self.batches += 1

    def publish(self, *ids: str, stream: str = "hot") -> list[int]:
        """Answers as events."""
        events = [Event(each, f"<{each}>\t<urn:is>\t<urn:hot>") for each in ids]
        (positions,) = self.at.twin.log.append([Publication(stream, events)])
        return [*positions]

    async def heard(self, count: int, path: str = PATH, **headers: str) -> list[SseMessage]:
        async with self.at.listen(path, **headers) as ear:
            return await ear.take(count)


@asynccontextmanager
async def road(*authenticators: Authenticator) -> AsyncIterator[Road]:
    def with_queries(parts: EdgeParts) -> EdgeParts:
        return replace(parts, authenticators=authenticators)

    async with house(change=with_queries) as at:
        yield Road(at)


def row(position: int, oldest: int, *terms: str | None, group: int = 7) -> dict[str, Any]:
    return {"position": position, "group": group, "value": float(oldest), "terms": ["0", *terms]}


def bindings(message: SseMessage) -> list[tuple[str, ...]]:
    told = orjson.loads(message.data)
    return [tuple(each["value"] for each in one.values()) for one in told["results"]["results"]["bindings"]]


def ids(messages: Iterable[SseMessage]) -> list[str | None]:
    return [each.id for each in messages]


def test_all_that_an_event_completes_comes_as_one_notification() -> None:
    async def scene() -> None:
        async with road() as on:
            query = on.register()
            first, second = on.at.append(1, 2)
            on.answer(row(second, first, "<urn:c:1>", "<urn:p>"), row(second, second, "<urn:c:2>", '"x"'))
            (message,) = await on.heard(1)
            told = orjson.loads(message.data)
            assert (message.event, message.id) == ("notification", format_position(second))
            assert (told["query"], told["kind"], told["stream"]) == (query.id, "bindings", "test")
            assert told["results"]["head"] == {"vars": ["car", "place"]}
            assert bindings(message) == [("urn:c:1", "urn:p"), ("urn:c:2", "x")]
            assert "subscription" not in told

    run(scene())


def test_who_was_registered_later_is_not_told_of_older_pieces() -> None:
    """Both are of one group: the answer is written once, and is for those alone who were there before its oldest
    piece."""

    async def scene() -> None:
        async with road() as on:
            on.register()
            (first,) = on.at.append(1)
            later = on.register(replace(PLAIN, id="later"))
            back = on.register(replace(PLAIN, id="back", begins=first))
            second, third = on.at.append(2, 3)
            on.answer(row(second, first, "<urn:old>", "<urn:p>"), row(third, second, "<urn:new>", "<urn:p>"))
            assert ids(await on.heard(2)) == [format_position(second), format_position(third)]
            assert ids(await on.heard(1, f"/queries/{later.id}/answers")) == [format_position(third)]
            assert ids(await on.heard(2, f"/queries/{back.id}/answers")) == [
                format_position(second),
                format_position(third),
            ]

    run(scene())


def test_what_the_past_answers_is_told_first_though_no_event_has_completed_it() -> None:
    """The pipeline writes it where the query was registered; there is no event at that place."""

    async def scene() -> None:
        async with road() as on:
            first, second = on.at.append(1, 2)
            query = on.register(replace(PLAIN, begins=first, created=on.at.twin.clock.now()))
            (third,) = on.at.append(3)
            on.answer(
                row(query.since, first, "<urn:a>", "<urn:p>"),
                row(query.since, second, "<urn:b>", "<urn:p>"),
                row(third, second, "<urn:c>", "<urn:p>"),
            )
            past, live = await on.heard(2)
            assert (past.id, live.id) == (format_position(query.since), format_position(third))
            assert (bindings(past), bindings(live)) == (
                [("urn:a", "urn:p"), ("urn:b", "urn:p")],
                [("urn:c", "urn:p")],
            )
            told = orjson.loads(past.data)
            assert told.keys() == {"query", "kind", "position", "time", "results"}
            assert ids(await on.heard(1, Last_Event_ID=format_position(query.since))) == [format_position(third)]
            for format in ("trig", "cloudevents-batch", "ztreamy"):
                async with on.at.session.get(f"{on.at.url}{PATH}?mode=poll&format={format}") as response:
                    assert "urn:a" in await response.text()

    run(scene())


def test_of_too_many_solutions_it_is_told_that_there_are_so_many() -> None:
    async def scene() -> None:
        async with road() as on:
            on.register()
            (position,) = on.at.append(1)
            on.answer(*[row(position, position, f"<urn:{n}>", "<urn:p>") for n in range(SOLUTIONS + 1)])
            (message,) = await on.heard(1)
            assert orjson.loads(message.data)["limit"] == {"reached": "solutions", "most": SOLUTIONS}

    run(scene())


def test_of_an_ask_it_is_told_that_it_is_so() -> None:
    async def scene() -> None:
        async with road() as on:
            on.register(ASK)
            (position,) = on.at.append(1)
            on.answer(row(position, position, group=8), row(position, position, group=8))
            (message,) = await on.heard(1)
            assert orjson.loads(message.data)["results"] == {"head": {}, "boolean": True}

    run(scene())


def test_history_comes_first_then_the_present_and_who_comes_back_misses_nothing() -> None:
    async def scene() -> None:
        async with road() as on:
            on.register()
            positions = [*on.at.append(1, 2)]
            on.answer(*(row(each, each, "<urn:c>", "<urn:p>") for each in positions))
            async with on.at.listen(PATH) as ear:
                assert ids(await ear.take(2)) == [*map(format_position, positions)]
                positions += on.at.append(3)
                on.answer(row(positions[2], positions[0], "<urn:c>", "<urn:p>"))
                assert (await ear.next()).id == format_position(positions[2])
            assert ids(await on.heard(2, Last_Event_ID=format_position(positions[0]))) == [
                *map(format_position, positions[1:])
            ]

    run(scene())


def test_every_way_of_listening_is_there() -> None:
    async def scene() -> None:
        async with road() as on:
            on.register()
            (position,) = on.at.append(1)
            on.answer(row(position, position, "<urn:c>", "<urn:p>"))
            async with on.at.session.get(f"{on.at.url}{PATH}?mode=poll&format=ndjson") as response:
                (told,) = [orjson.loads(line) for line in (await response.read()).splitlines()]
                assert (told["type"], told["query"]) == ("notification", "q")
            async with on.at.session.ws_connect(on.at.url + PATH) as socket:
                said = [orjson.loads((await socket.receive()).data) for _ in range(2)]
                assert [each["type"] for each in said] == ["position", "notification"]
            async with on.at.session.get(f"{on.at.url}{PATH}?mode=poll&format=trig") as response:
                assert '"query":"q"' in await response.text()
            async with on.at.session.get(f"{on.at.url}{PATH}?mode=poll&format=cloudevents-batch") as response:
                (cloud,) = orjson.loads(await response.read())
                assert (cloud["source"], cloud["twquery"]) == ("/queries/q", "q")
            event, answer = await on.heard(2, "/notifications?query=q&stream=test&after=earliest")
            assert (event.event, answer.event) == ("event", "notification")
            assert (
                (event.id or "").partition("~")[0] == (answer.id or "").partition("~")[0] == format_position(position)
            )

    run(scene())


def test_it_can_be_named_later_over_one_connection_and_let_go() -> None:
    async def scene() -> None:
        async with road() as on:
            on.register()
            (position,) = on.at.append(1)
            on.answer(row(position, position, "<urn:c>", "<urn:p>"))
            async with on.at.session.ws_connect(on.at.url + "/notifications") as socket:
                assert orjson.loads((await socket.receive()).data)["type"] == "position"
                await socket.send_json({"query": "q"})
                said = [orjson.loads((await socket.receive()).data) for _ in range(2)]
                assert [(each["type"], each.get("query")) for each in said] == [
                    ("position", "q"),
                    ("notification", "q"),
                ]
                await socket.send_json({"unquery": "q"})
                assert orjson.loads((await socket.receive()).data) == {"type": "left", "query": "q"}

    run(scene())


def test_what_was_ended_says_so_after_all_that_it_found() -> None:
    async def scene() -> None:
        async with road() as on:
            on.register()
            (position,) = on.at.append(1)
            async with on.at.listen(PATH) as ear:
                on.at.twin.registry.put([(QUERY, "q", None)])
                on.answer(row(position, position, "<urn:c>", "<urn:p>"))
                last = await ear.rest()
                assert [each.event for each in last] == ["notification", "end"]
                assert orjson.loads(last[-1].data)["query"] == "q"
            assert (await on.at.problem("GET", PATH))["status"] == 404

    run(scene())


@pytest.mark.parametrize("named", [{"group": 7, "value": float(2**60)}, None])
def test_one_that_is_suspended_tells_why_and_then_nothing(named: dict[str, Any] | None) -> None:
    """Whether the row is of the group or of the query alone; also to who comes later."""

    async def scene() -> None:
        async with road() as on:
            query = on.register()
            on.at.append(1)
            async with on.at.listen(PATH) as ear:
                of = {"subscription": query.since} if named is None else named
                # The end of a batch may be a change of the registry, where there is no event.
                on.at.twin.registry.put([("other", "thing", {})])
                on.answer({"position": on.at.twin.log.head(), **of, "limit": "state"})
                on.suspend(query)
                told = await ear.rest()
            for messages in (told, await rest(on)):
                limit, end = (orjson.loads(each.data) for each in messages)
                assert limit["limit"] == {"reached": "state", "most": PARTIAL_ROWS}
                assert "suspended" in end["detail"]

    run(scene())


async def rest(on: Road) -> list[SseMessage]:
    async with on.at.listen(PATH) as ear:
        return await ear.rest()


def test_answers_of_windows_are_the_events_of_their_stream_that_are_the_query_s() -> None:
    async def scene() -> None:
        async with road() as on:
            on.register(WINDOWED)
            mine, _, _ = on.publish(f"{ANSWER}q:1", f"{ANSWER}q2:1", "urn:somebody:else")
            async with on.at.listen(PATH) as ear:
                message = await ear.next()
                assert (message.event, message.id) == ("event", format_position(mine))
                assert orjson.loads(message.data)["stream"] == "hot"
                (later,) = on.publish(f"{ANSWER}q:2")
                assert (await ear.next()).id == format_position(later)
            assert ids(await on.heard(1, Last_Event_ID=format_position(mine))) == [format_position(later)]

    run(scene())


@pytest.mark.parametrize("suspended", [False, True])
def test_those_who_hear_windows_are_told_of_the_end_and_those_of_the_stream_are_not(suspended: bool) -> None:
    async def scene() -> None:
        async with road() as on:
            query = on.register(WINDOWED)
            async with on.at.listen("/streams/hot") as whole, on.at.listen(PATH) as ear:
                await settled(whole, ear)
                on.at.append(1)
                if suspended:
                    on.suspend(query)
                else:
                    on.at.twin.registry.put([(QUERY, "q", None)])
                # The pipeline is not so far yet: it publishes, and then says how far it is.
                (last,) = on.publish(f"{ANSWER}q:1")
                assert (await ear.next()).id == format_position(last)
                on.answer()
                assert [each.event for each in await ear.rest()] == ["end"]
                (after,) = on.publish("urn:after")
                assert ids(await whole.take(2)) == [format_position(last), format_position(after)]

    run(scene())


def test_who_comes_to_windows_that_are_suspended_is_told_so() -> None:
    async def scene() -> None:
        async with road() as on:
            on.suspend(on.register(WINDOWED))
            on.answer()
            assert [each.event for each in await rest(on)] == ["end"]

    run(scene())


async def settled(*ears: Ear) -> None:
    for ear in ears:
        await ear.position()


def test_what_the_log_has_let_go_is_told_as_a_gap() -> None:
    async def scene() -> None:
        async with road() as on:
            on.register()
            first, second = on.at.append(1, 2)
            on.answer(row(first, first, "<urn:c>", "<urn:p>"), row(second, second, "<urn:c>", "<urn:p>"))
            on.at.twin.clock.advance(10)
            (third,) = on.at.append(3)
            on.at.twin.log.trim(LogRetention(age=5), before=third)
            messages = await on.heard(1, Last_Event_ID=format_position(first))
            assert [each.event for each in messages] == ["gap"]

    run(scene())


def test_a_query_is_there_for_its_owner_and_for_who_looks_after_everything() -> None:
    """Of windows, too, though they may not listen to the stream that these publish into."""
    people = Acquaintances(
        {
            "anna": Principal.granted("anna", ["subscribe"]),
            "bob": Principal.granted("bob", ["subscribe", "consume"]),
            "root": Principal.granted("root", ["*"]),
        }
    )

    async def scene() -> None:
        async with road(people) as on:
            on.register(replace(PLAIN, owner=Owner("anna")))
            on.register(replace(WINDOWED, id="w", owner=Owner("anna")))
            (position,) = on.at.append(1)
            on.answer(row(position, position, "<urn:c>", "<urn:p>"))
            (event,) = on.publish(f"{ANSWER}w:1")
            for path, told in ((PATH, position), ("/queries/w/answers", event)):
                for name in ("anna", "root"):
                    assert ids(await on.heard(1, path, **bearer(name))) == [format_position(told)]
                assert (await on.at.problem("GET", path, headers=bearer("bob")))["status"] == 404
                gathered = f"/notifications?query={path.split('/')[2]}"
                assert (await on.at.problem("GET", gathered, headers=bearer("bob")))["status"] == 404

    run(scene())
