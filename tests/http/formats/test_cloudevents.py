"""CloudEvents over real sockets, written and read with the `cloudevents` package."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from cloudevents.core.bindings import http
from cloudevents.core.bindings.http import HTTPMessage
from cloudevents.core.v1.event import CloudEvent

from tests.http.harness import House, house, run
from triplewire.model import Kind
from triplewire.testing.samples import event

BATCH = "application/cloudevents-batch+json"


def made(id: str = "1", **said: Any) -> CloudEvent:  # noqa: ANN401
    named = {"id": id, "source": "/roof", "type": "com.example.reading", "datacontenttype": "text/turtle"}
    data = said.pop("data", "<urn:s> <urn:p> 1 .")
    return CloudEvent({**named, **said}, data)


async def post(at: House, message: HTTPMessage, **headers: str) -> tuple[int, dict[str, Any]]:
    given = {**message.headers, **headers}
    async with at.session.post(at.url + "/streams/test", data=message.body, headers=given) as response:
        return response.status, orjson.loads(await response.read())


async def polled(at: House, path: str, accept: str) -> list[dict[str, Any]]:
    async with at.session.get(at.url + path, headers={"Accept": accept}) as response:
        assert (response.status, response.content_type) == (200, accept), await response.text()
        found: list[dict[str, Any]] = orjson.loads(await response.read())
    return found


@pytest.mark.parametrize("write", [http.to_binary_event, http.to_structured_event])
def test_one_is_published_once_and_heard_as_it_was(write: Any) -> None:  # noqa: ANN401
    async def scene() -> None:
        async with house() as at:
            given = made(subject="é x", traceparent="00-1-2-03")
            assert (await post(at, write(given)))[0] == 201
            assert (await post(at, write(given)))[1]["repeated"] == 1
            (told,) = await polled(at, "/streams/test?after=earliest&mode=poll", BATCH)
            found = http.from_structured_event(HTTPMessage({}, orjson.dumps(told)))
            wanted = {
                name: value for name, value in given.get_attributes().items() if name not in ("time", "datacontenttype")
            }
            assert wanted.items() <= found.get_attributes().items()
            assert (
                found.get_data()
                == '<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:cloudevents:/roof:1> .\n'
            )

    run(scene())


def test_of_a_batch_each_is_taken_or_refused_by_itself() -> None:
    async def scene() -> None:
        async with house() as at:
            batch = [http.to_structured_event(made(str(n))).body for n in range(3)]
            batch[1] = b'{"specversion": "1.0"}'
            message = HTTPMessage({"content-type": BATCH}, b"[" + b",".join(batch) + b"]")
            status, answer = await post(at, message)
            assert (status, answer["events"], answer["refusals"], answer["refused"][0]["item"]) == (201, 2, 1, 2)
            told = await polled(at, "/streams/test?after=earliest&mode=poll", BATCH)
            assert [each["id"] for each in told] == ["0", "2"]
            # What is heard can be published elsewhere as it is.
            again = HTTPMessage({"content-type": BATCH}, orjson.dumps(told))
            async with at.session.post(at.url + "/streams/other", data=again.body, headers=again.headers) as response:
                assert response.status == 201
            others = await polled(at, "/streams/other?after=earliest&mode=poll", BATCH)
            assert [(each["id"], each["source"], each["data"]) for each in others] == [
                (each["id"], each["source"], each["data"]) for each in told
            ]

    run(scene())


def test_binary_mode_carries_what_is_no_rdf() -> None:
    async def scene() -> None:
        async with house() as at:
            given = made(datacontenttype="application/octet-stream", data=b"\xff\x00")
            assert (await post(at, http.to_binary_event(given)))[0] == 201
            (told,) = await polled(at, "/streams/test?after=earliest&mode=poll", BATCH)
            assert http.from_structured_event(HTTPMessage({}, orjson.dumps(told))).get_data() == b"\xff\x00"

    run(scene())


def test_a_stream_is_a_cloud_event_a_line() -> None:
    async def scene() -> None:
        async with house() as at:
            async with at.session.get(at.url + "/streams/test?format=cloudevents") as response:
                first = orjson.loads(await response.content.readline())
                assert (first["type"], response.content_type) == (
                    "dev.triplewire.position",
                    "application/cloudevents+json",
                )
                at.append(1)
                found = http.from_structured_event(HTTPMessage({}, await response.content.readline()))
            assert (found.get_id(), found.get_source(), found.get_type()) == (
                event(1).id,
                "/streams/test",
                "dev.triplewire.event",
            )

    run(scene())


@pytest.mark.parametrize("kind", list(Kind))
def test_notifications_are_cloud_events_too(kind: Kind) -> None:
    async def scene() -> None:
        async with house() as at:
            since = at.subscribe(kind).since
            (position,) = at.append(1)
            at.match([(position, since, [0, 1] if kind is Kind.BINDINGS else None)])
            (told,) = await polled(at, "/subscriptions/s1/notifications?mode=poll", BATCH)
            found = http.from_structured_event(HTTPMessage({}, orjson.dumps(told))).get_attributes()
            assert (found["twsubscription"], found["twkind"]) == ("s1", kind.value)
            if kind is Kind.EVENT:
                assert found["id"] == event(1).id
            else:
                assert (found["subject"], found["source"]) == (event(1).id, "/subscriptions/s1")

    run(scene())


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"ce-id": "1", "ce-source": "/"}, "`type`"),
        ({"ce-id": "1", "ce-source": "/", "ce-type": "t", "Event-Id": "urn:e:1"}, "ce-id"),
        ({"ce-id": "%ff", "ce-source": "/", "ce-type": "t"}, "UTF-8"),
        ({"ce-id": "1", "ce-source": "/", "ce-type": "t", "ce-x-y": "1"}, "'x-y'"),
    ],
)
def test_what_is_wrong_with_headers_is_said(headers: dict[str, str], words: str) -> None:
    async def scene() -> None:
        async with house() as at:
            given = {"ce-specversion": "1.0", "Content-Type": "text/turtle", **headers}
            told = await at.problem("POST", "/streams/test", data=b"<urn:s> <urn:p> 1 .", headers=given)
            assert (told["status"], words in told["detail"]) == (400, True), told

    run(scene())


def test_a_batch_has_an_end() -> None:
    async def scene() -> None:
        async with house() as at:
            told = await at.problem("GET", "/streams/test", headers={"Accept": BATCH})
            assert (told["status"], "mode=poll" in told["detail"]) == (400, True)

    run(scene())
