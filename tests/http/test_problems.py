"""Bad input gets a problem document and loses nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from yarl import URL

from tests.http.harness import House, body, house, run
from triplewire.http.app import EdgeParts
from triplewire.http.problems import respond_to_error
from triplewire.model import errors
from triplewire.model.events import STREAM_NAME_CHARACTERS
from triplewire.rdf import SYNTAXES
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.envelopes import ENVELOPES
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.storage.log.group_commit import GroupCommit
from triplewire.testing import Fault, FaultyLog
from triplewire.testing.samples import event

TURTLE = {"Content-Type": "text/turtle"}
GOOD = b"<urn:a> <urn:b> <urn:c> ."


async def refused(at: House, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """The problem of a publish, after which the log must be as it was."""
    before = at.twin.log.head()
    found = await at.problem("POST", options.pop("path", "/streams/test"), **options)
    assert at.twin.log.head() == before
    return found


def test_malformed_rdf_is_400_with_line_and_column() -> None:
    async def scene() -> None:
        async with house() as at:
            found = await refused(at, data=b"<urn:a> <urn:b> <urn:c> .\n<urn:a> oops .", headers=TURTLE)
            assert (found["status"], found["line"]) == (400, 2)
            assert found["column"] > 1
            assert found["type"].endswith("/MalformedRdf")

    run(scene())


def test_a_good_event_before_a_bad_one_is_not_taken_either() -> None:
    async def scene() -> None:
        async with house() as at:
            headers = {"Content-Type": "application/n-quads"}
            found = await refused(at, data=body(event(1), event(2)) + b"oops", headers=headers)
            assert found["status"] == 400

    run(scene())


@pytest.mark.parametrize("content_type", ["application/pdf", "text/plain; charset=utf-8"])
def test_an_unknown_media_type_is_415_with_those_that_are_known(content_type: str) -> None:
    async def scene() -> None:
        async with house() as at:
            found = await refused(at, data=GOOD, headers={"Content-Type": content_type})
            assert found["status"] == 415
            known = [each.media_type for each in SYNTAXES] + [each.media_type for each in ENVELOPES]
            assert found["known"] == known

    run(scene())


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_413(chunked: bool) -> None:
    async def scene() -> None:
        async with house() as at:
            big = BytesIO(b"#" * (BODY_BYTES + 1))
            found = await refused(at, data=big, headers=TURTLE, chunked=chunked or None)
            assert (found["status"], found["limit"]) == (413, BODY_BYTES)

    run(scene())


@pytest.mark.parametrize(
    ("headers", "word"),
    [
        ({"Event-Id": "no iri"}, "absolute IRI"),
        ({"Event-Id": "urn:" + "x" * HEADER_CHARACTERS}, "Event-Id"),
        ({"Source-Id": 'a"b'}, "Source-Id"),
        ({"Source-Id": "a\\b"}, "Source-Id"),
        ({"Application-Id": "a\tb"}, "Application-Id"),
        ({"Application-Id": "a\u200bb"}, "Application-Id"),
        ({"Source-Id": ""}, "Source-Id"),
        ({"Timestamp": "yesterday"}, "ISO 8601"),
    ],
)
def test_a_bad_header_is_400_and_is_named(headers: Mapping[str, str], word: str) -> None:
    async def scene() -> None:
        async with house() as at:
            found = await refused(at, data=GOOD, headers=TURTLE | dict(headers))
            assert found["status"] == 400
            assert word in found["detail"]

    run(scene())


@pytest.mark.parametrize("name", ["-first", "a%20b", "a%2Fb", "%C3%A9", "a" * (STREAM_NAME_CHARACTERS + 1)])
def test_a_bad_stream_name_is_400(name: str) -> None:
    async def scene() -> None:
        async with house() as at:
            address = URL(f"{at.url}/streams/{name}", encoded=True)
            async with at.session.post(address, data=GOOD, headers=TURTLE) as response:
                assert response.status == 400
            async with at.session.get(address) as response:
                assert response.status == 400

    run(scene())


def test_a_full_disk_is_507_and_the_event_is_not_acknowledged() -> None:
    async def scene() -> None:
        def full(parts: EdgeParts) -> EdgeParts:
            return replace(parts, commits=GroupCommit(FaultyLog(parts.log, [Fault.FULL])))

        async with house(change=full) as at:
            assert (await refused(at, data=GOOD, headers=TURTLE))["status"] == 507
            async with at.session.post(at.url + "/streams/test", data=GOOD, headers=TURTLE) as response:
                assert response.status == 201

    run(scene())


def test_a_log_that_is_away_is_503_with_retry_after() -> None:
    async def scene() -> None:
        def away(parts: EdgeParts) -> EdgeParts:
            return replace(parts, commits=GroupCommit(FaultyLog(parts.log, [Fault.AWAY])))

        async with (
            house(change=away) as at,
            at.session.post(at.url + "/streams/test", data=GOOD, headers=TURTLE) as response,
        ):
            assert (response.status, response.headers["Retry-After"]) == (503, "1")

    run(scene())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("PUT", "/streams/test", 405),
        ("GET", "/subscriptions/unknown/notifications", 404),
        ("GET", "/streams/test?after=soon", 400),
        ("GET", "/sparql?query=", 400),
    ],
)
def test_every_refusal_is_a_problem_document(method: str, path: str, status: int) -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await at.problem(method, path))["status"] == status

    run(scene())


def test_a_wrong_method_is_told_the_right_ones() -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await at.problem("PUT", "/streams/test"))["known"] == ["GET", "HEAD", "POST"]

    run(scene())


class Broken:
    """Commits that fail in a way that nobody foresaw."""

    async def append(self, publication: object) -> range:
        raise ZeroDivisionError("secret")

    async def append_each(self, publications: object) -> list[Sequence[int]]:
        raise ZeroDivisionError("secret")


def test_an_unforeseen_error_is_500_and_says_nothing_of_the_inside() -> None:
    async def scene() -> None:
        async with house(change=lambda parts: replace(parts, commits=Broken())) as at:
            found = await refused(at, data=GOOD, headers=TURTLE)
            assert found["status"] == 500
            assert "secret" not in str(found)
            assert "ZeroDivision" not in str(found)

    run(scene())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.SparqlSyntax("x", place=errors.TextPosition(1, 2)), 400),
        (errors.Unsupported("MINUS", place=errors.TextPosition(3, 4)), 422),
        (errors.QueryLimit("x"), 503),
        (errors.AnswerTooLarge("x"), 413),
        (errors.NotAcceptable("x", ("y",)), 406),
        (errors.Unavailable("x"), 503),
        (errors.StorageFull("x"), 507),
        (errors.NotFound("x"), 404),
        (errors.Gone("x"), 410),
        (errors.BadRequest("x"), 400),
    ],
)
def test_the_exception_tree_decides_the_status(error: errors.TriplewireError, status: int) -> None:
    assert respond_to_error(error).status == status
