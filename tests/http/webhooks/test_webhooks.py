"""Webhooks: signed, in order, tried again, parked and delivered again; with what can go wrong on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest
from aiohttp import web
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from tests.http.harness import run
from tests.http.test_tracing import PARENT, TRACE, tracing
from tests.http.webhooks.scenes import Call, Scene, receiver, scene
from triplewire.http.webhooks.calls import WEBHOOK_PAUSE_FIRST, WEBHOOK_RETRY_AFTER
from triplewire.http.webhooks.dead_letters import DEAD_LETTERS
from triplewire.http.webhooks.deliverer import WEBHOOK_PROGRESS_SECONDS
from triplewire.model import format_position, parse_position
from triplewire.security import Principal
from triplewire.security.principals import Authenticator
from triplewire.storage.memory import MemoryWebhookStore
from triplewire.storage.webhooks import DeadLetter, WebhookProgress
from triplewire.testing.doubles import Fault, Faults

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="


def entries(at: Scene) -> list[tuple[str, str, Mapping[str, Any] | None]]:
    """All that the registry was told."""
    return [(each.kind, each.key, each.value) for each in at.at.twin.registry.changes(0, 99)]


def position(call: Call) -> str:
    found: str = orjson.loads(call.body)["data"]["position"]
    return found


def test_what_matches_is_sent_signed_as_a_library_for_receivers_wants_it() -> None:
    async def story() -> None:
        async with scene() as at:
            made = await at.subscribe()
            (first,) = at.publish(made)
            call = await at.receiver.next()
            told = Webhook(made["webhook"]["secret"]).verify(call.body, dict(call.headers))
            assert told["type"] == "notification"
            assert told["data"]["subscription"] == made["id"]
            assert (told["data"]["position"], told["data"]["time"]) == (format_position(first), told["timestamp"])
            assert call.headers["webhook-id"] == f"{made['id']}_{format_position(first)}"
            assert call.headers["content-type"] == "application/json"
            forged = call.body.replace(b"notification", b"notifications")
            with pytest.raises(WebhookVerificationError):
                Webhook(made["webhook"]["secret"]).verify(forged, dict(call.headers))

    run(story())


def test_a_secret_of_ones_own_is_taken_and_none_is_ever_told_again() -> None:
    async def story() -> None:
        async with scene() as at:
            made = await at.subscribe(secret=SECRET, attempts=2)
            assert made["webhook"] == {"url": at.receiver.url, "attempts": 2}
            at.publish(made)
            call = await at.receiver.next()
            Webhook(SECRET).verify(call.body, dict(call.headers))
            fresh = (await at.subscribe())["webhook"]["secret"]
            seen = [await at.call("GET", path) for path in (f"/subscriptions/{made['id']}", "/hooks", "/subscriptions")]
            assert seen[0]["webhook"] == {"url": at.receiver.url, "state": "on", "attempts": 2}
            assert not [each for each in seen if SECRET in str(each) or fresh in str(each)]

    run(story())


def test_a_stream_alone_is_a_subscription_whose_events_are_sent_whole() -> None:
    async def story() -> None:
        async with scene() as at:
            wish = {"stream": "test", "kind": "event", "webhook": {"url": at.receiver.url}}
            made = await at.call("POST", "/subscriptions", 201, json=wish)
            at.publish(made)
            told = orjson.loads((await at.receiver.next()).body)["data"]
            assert told["stream"] == "test"
            assert told["event"] in told["body"]

    run(story())


def test_each_is_sent_when_the_one_before_was_taken() -> None:
    async def story() -> None:
        async with scene() as at:
            made = await at.subscribe()
            taken = asyncio.Event()

            async def later(request: web.Request) -> web.Response:
                await taken.wait()
                return web.Response()

            at.receiver.replies.append(later)
            wanted = [format_position(each) for each in at.publish(made, count=3)]
            assert position(await at.receiver.next()) == wanted[0]
            await at.call("GET", "/hooks")
            assert at.receiver.calls.empty()
            taken.set()
            assert [position(await at.receiver.next()) for _ in range(2)] == wanted[1:]

    run(story())


def test_what_is_refused_is_sent_again_after_longer_and_longer_pauses_with_the_same_id() -> None:
    async def story() -> None:
        async with scene(attempts=5) as at:
            made = await at.subscribe()
            at.receiver.replies += [500, 404, 302, 200]
            first, second = at.publish(made, count=2)
            ids = [(await at.receiver.next()).headers["webhook-id"]]
            for pause in (1.0, 2.0, 4.0):
                assert await at.alarm.pauses() == [pause]
                at.alarm.advance(pause)
                ids.append((await at.receiver.next()).headers["webhook-id"])
            assert ids == [f"{made['id']}_{format_position(first)}"] * 4
            assert position(await at.receiver.next()) == format_position(second)
            assert await at.letters(made) == []

    run(story())


def test_the_time_of_a_signature_is_that_of_the_attempt_and_pauses_do_not_go_by_the_wall_clock() -> None:
    async def story() -> None:
        async with scene() as at:
            made = await at.subscribe()
            at.receiver.replies += [503]
            at.publish(made)
            before = int((await at.receiver.next()).headers["webhook-timestamp"])
            assert await at.alarm.pauses() == [1.0]
            at.clock.jump(-3_600_000_000)
            assert await at.alarm.pauses() == [1.0]
            at.alarm.advance(1.0)
            assert int((await at.receiver.next()).headers["webhook-timestamp"]) == before - 3_600 + 1

    run(story())


@pytest.mark.parametrize(("said", "wanted"), [("7", 7.0), ("0", 1.0), ("999999999", WEBHOOK_RETRY_AFTER), ("x", 1.0)])
def test_a_target_says_when_to_come_back(said: str, wanted: float) -> None:
    async def story() -> None:
        async with scene() as at:
            made = await at.subscribe()

            async def busy(request: web.Request) -> web.Response:
                return web.Response(status=429, headers={"Retry-After": said})

            at.receiver.replies.append(busy)
            at.publish(made)
            assert await at.alarm.pauses() == [wanted]

    run(story())


def test_what_is_never_taken_is_parked_and_the_rest_goes_on_and_it_is_delivered_when_asked() -> None:
    async def story() -> None:
        async with scene(attempts=2) as at:
            made = await at.subscribe()
            at.receiver.replies += [500, 503]
            first, second = at.publish(made, count=2)
            await at.alarm.pauses()
            at.alarm.advance(1)
            calls = [await at.receiver.next() for _ in range(3)]
            assert [position(each) for each in calls] == [
                format_position(first),
                format_position(first),
                format_position(second),
            ]
            (letter,) = await at.letters(made)
            assert letter["position"] == format_position(first)
            assert (letter["attempts"], letter["status"], letter["reason"]) == (2, 503, "answered 503")
            assert letter["id"] == calls[0].headers["webhook-id"]
            path = f"/subscriptions/{made['id']}/replay"
            at.receiver.replies += [500]
            assert (await at.call("POST", path, 202))["replaying"] == 1
            await at.receiver.next()
            await at.until(lambda: not at.books.redeliveries())
            assert len(await at.letters(made)) == 1
            body = {"positions": [letter["position"]]}
            assert (await at.call("POST", path, 202, json=body))["replaying"] == 1
            again = await at.receiver.next()
            assert (again.headers["webhook-id"], again.body) == (letter["id"], calls[0].body)
            await at.until(lambda: not at.books.dead_letters(made["id"]))
            assert (await at.call("POST", path, 202))["replaying"] == 0

    run(story())


def test_parked_ones_are_given_up_when_asked() -> None:
    async def story() -> None:
        async with scene(attempts=1) as at:
            made = await at.subscribe()
            at.receiver.replies += [500, 500]
            first, second = (format_position(each) for each in at.publish(made, count=2))
            await at.until(lambda: len(at.books.dead_letters(made["id"], limit=9)) == 2)
            path = f"/subscriptions/{made['id']}/dead-letters"
            page = await at.call("GET", path + "?limit=1")
            assert [each["position"] for each in page["letters"]] == [first]
            rest = await at.call("GET", f"{path}?cursor={page['next']}")
            assert ([each["position"] for each in rest["letters"]], rest["next"]) == ([second], None)
            await at.call("DELETE", f"{path}?position={first}", 204)
            assert [each["position"] for each in await at.letters(made)] == [second]
            await at.call("DELETE", path, 204)
            assert await at.letters(made) == []

    run(story())


def test_a_list_that_is_full_parks_nothing_more_and_loses_nothing() -> None:
    async def story() -> None:
        async with scene(attempts=1) as at:
            made = await at.subscribe()
            full = [DeadLetter(made["id"], at, 1, "answered 500", 500, 0) for at in range(1, DEAD_LETTERS + 1)]
            books = MemoryWebhookStore()
            books.put_secrets({made["id"]: made["webhook"]["secret"]})
            books.record({}, full)
            async with scene(attempts=1, books=books) as other:
                # The same subscription, as it is after a restart.
                other.at.twin.registry.put(entries(at))
                other.receiver.replies += [500, 500]
                value = await other.call("GET", f"/subscriptions/{made['id']}")
                url = value["webhook"]["url"]
                other.publish(value)
                assert url == at.receiver.url
                at.receiver.replies += [500, 500]
                heard = await at.receiver.next()
                assert await other.alarm.pauses() == [1.0]
                other.alarm.advance(1)
                again = await at.receiver.next()
                assert heard.headers["webhook-id"] == again.headers["webhook-id"]

    run(story())


def test_a_target_that_is_gone_ends_it() -> None:
    async def story() -> None:
        async with scene() as at:
            made = await at.subscribe()
            at.receiver.replies += [410]
            at.publish(made, count=2)
            await at.receiver.next()
            await at.until(lambda: not len(at.at.edge.scheduler))
            (hook,) = (await at.call("GET", "/hooks"))["hooks"]
            assert (hook["id"], hook["state"]) == (made["id"], "gone")
            problem = await at.at.problem("POST", f"/subscriptions/{made['id']}/replay")
            assert problem["status"] == 409
            at.publish(made)
            await at.call("GET", "/hooks")
            assert at.receiver.calls.empty()
            await at.call("DELETE", f"/subscriptions/{made['id']}", 204)
            await at.until(lambda: at.books.secret(made["id"]) is None)

    run(story())


def test_the_end_of_a_subscription_ends_it_at_once_and_its_secret_is_forgotten() -> None:
    async def story() -> None:
        async with scene() as at:
            made = await at.subscribe()
            at.receiver.replies += [500]
            at.publish(made, count=2)
            await at.alarm.pauses()
            await at.call("DELETE", f"/subscriptions/{made['id']}", 204)
            await at.until(lambda: at.books.secret(made["id"]) is None)
            assert (await at.call("GET", "/hooks"))["hooks"] == []
            assert at.receiver.calls.qsize() == 1
            assert dict(at.books.progress()) == {}

    run(story())


def test_a_target_that_is_down_and_comes_back_gets_everything() -> None:
    async def story() -> None:
        async with scene(attempts=9) as at:
            async with receiver() as away:
                url, port = away.url, int(away.url.split(":")[2].split("/")[0])
            made = await at.subscribe(url)
            wanted = [format_position(each) for each in at.publish(made, count=3)]
            for pause in (1.0, 2.0):
                assert await at.alarm.pauses() == [pause]
                at.alarm.advance(pause)
            assert await at.alarm.pauses() == [4.0]
            (hook,) = (await at.call("GET", "/hooks"))["hooks"]
            assert hook["reason"].startswith("cannot be reached")
            async with receiver(port) as back:
                at.alarm.advance(4.0)
                assert [position(await back.next()) for _ in range(3)] == wanted

    run(story())


def test_one_that_hangs_is_given_up_and_delays_nobody_else() -> None:
    async def story() -> None:
        async with scene(seconds=2.0) as at, receiver() as other:
            made, beside = await at.subscribe(), await at.subscribe(other.url)
            at.receiver.replies += [at.receiver.hang]
            first, second = at.publish(made, beside, count=2)
            assert [position(await other.next()) for _ in range(2)] == [format_position(first), format_position(second)]
            assert await at.alarm.pauses() == [1.0]
            reasons: dict[str, str | None] = {}
            while not reasons.get(made["id"]):
                hooks = (await at.call("GET", "/hooks"))["hooks"]
                reasons = {each["id"]: each.get("reason") for each in hooks}
            assert reasons[made["id"]] == "did not answer in time"
            at.alarm.advance(1)
            assert [position(await at.receiver.next()) for _ in range(3)] == [
                format_position(first),
                format_position(first),
                format_position(second),
            ]

    run(story())


def test_another_edge_goes_on_where_the_one_before_was() -> None:
    async def story() -> None:
        books = MemoryWebhookStore()
        async with scene(books=books) as at:
            made = await at.subscribe()
            (first,) = at.publish(made)
            assert position(await at.receiver.next()) == format_position(first)
            await at.until(lambda: books.progress().get(made["id"]) == WebhookProgress(first))
            said = entries(at)
        async with scene(books=books) as at, receiver(int(made["webhook"]["url"].split(":")[2].split("/")[0])) as same:
            at.at.twin.registry.put(said[:2])
            at.at.append(1)
            (hooked,) = at.at.twin.registry.put(said[2:])
            value = await at.call("GET", f"/subscriptions/{made['id']}")
            (second,) = at.publish(value)
            assert hooked < second
            assert position(await same.next()) == format_position(second)

    run(story())


class Full(MemoryWebhookStore):
    """A disk that takes nothing at first."""

    def __init__(self, faults: int) -> None:
        super().__init__()
        self._faults = Faults([Fault.FULL] * faults)

    def record(self, progress: object, dead_letters: object = ()) -> None:
        self._faults.run(lambda: super(Full, self).record(progress, dead_letters))  # type: ignore[arg-type]


def test_where_the_disk_is_full_deliveries_go_on_and_parking_waits() -> None:
    async def story() -> None:
        async with scene(books=Full(2), attempts=1) as at:
            made = await at.subscribe()
            at.receiver.replies += [200, 500]
            first, second, third = at.publish(made, count=3)
            assert [position(await at.receiver.next()) for _ in range(2)] == [
                format_position(first),
                format_position(second),
            ]
            for _ in range(2):
                assert await at.alarm.pauses() == [WEBHOOK_PAUSE_FIRST]
                assert at.receiver.calls.empty()
                at.alarm.advance(WEBHOOK_PAUSE_FIRST)
            assert position(await at.receiver.next()) == format_position(third)
            assert [each["position"] for each in await at.letters(made)] == [format_position(second)]
            await at.until(lambda: at.books.progress()[made["id"]].position == third)

    run(story())


def test_one_that_is_told_nothing_still_notes_how_far_it_is() -> None:
    async def story() -> None:
        async with scene() as at:
            made = await at.subscribe()
            await at.until(lambda: len(at.at.edge.scheduler))
            at.at.append(1, 2, 3)
            at.at.match([])
            await at.until(lambda: at.at.edge.matches.topic.settled == at.at.twin.log.head())
            # It may not wait for news yet when the edge asks it the first time.
            while at.books.progress().get(made["id"]) != WebhookProgress(at.at.twin.log.head()):
                at.clock.advance(WEBHOOK_PROGRESS_SECONDS)
                await at.call("GET", "/hooks")

    run(story())


class Two(Authenticator):
    """Knows two who may subscribe, by their names."""

    async def known(self, credential: str) -> Principal | None:
        return Principal.granted(credential, ["subscribe:*"])


def test_what_was_parked_is_there_for_its_owner_alone() -> None:
    async def story() -> None:
        async with scene(change=lambda parts: replace(parts, authenticators=(Two(),))) as at:
            wish = {"sparql": "ASK { ?s ?p ?o }", "webhook": {"url": at.receiver.url}}
            one, other = ({"Authorization": f"Bearer {name}"} for name in ("one", "other"))
            made = await at.call("POST", "/subscriptions", 201, json=wish, headers=one)
            path = f"/subscriptions/{made['id']}"
            assert (await at.call("GET", f"{path}/dead-letters", headers=one))["letters"] == []
            for method, each in (("GET", "dead-letters"), ("DELETE", "dead-letters"), ("POST", "replay")):
                assert (await at.at.problem(method, f"{path}/{each}", headers=other))["status"] == 404
            assert (await at.at.problem("GET", "/hooks", headers=one))["status"] == 403

    run(story())


def test_a_call_goes_on_with_the_trace_of_its_event() -> None:
    async def story() -> None:
        async with scene(change=change) as at:
            made = await at.subscribe()
            headers = {"Content-Type": "text/turtle", "traceparent": PARENT}
            told = await at.call("POST", "/streams/test", 201, data=b"<urn:s> <urn:p> 1 .", headers=headers)
            at.receiver.replies += [500]
            at.at.match([(parse_position(told["first"]), parse_position(made["since"]), None)])
            await at.receiver.next()
            await at.alarm.pauses()
            at.alarm.advance(10)
            found.append((await at.receiver.next()).headers["traceparent"])
            at.publish(made)
            assert "traceparent" not in (await at.receiver.next()).headers

    found: list[str] = []
    with tracing() as (collector, change):
        run(story())
    spans = collector.trace(TRACE, {"publish", "call"})
    assert found == [f"00-{TRACE}-{spans['call'].id}-01"]
    assert spans["call"].span.parent_span_id.hex() == spans["publish"].id
    assert len([each for each in collector.spans if each.span.name == "call"]) == 2
