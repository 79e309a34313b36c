"""What clients are told, in each format, read with parsers that are not ours where there are any."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from aiohttp import ClientResponse

from tests.http.harness import House, body, house, run
from triplewire.http.delivery.options import FORMATS, choose_format
from triplewire.http.formats.sse import WEBSOCKET, frame_text
from triplewire.model import Kind, format_position
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf.ztreamy import ZtreamySplitter, parse_item
from triplewire.testing.samples import event

N_QUADS, TRIG, ZTREAMY, LINES = (
    "application/n-quads",
    "application/trig",
    "application/ztreamy-stream",
    "application/x-ndjson",
)
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"


async def read(response: ClientResponse, until: bytes) -> bytes:
    found = b""
    while until not in found:
        found += await response.content.readany()
    return found


async def told(at: House, path: str, accept: str, until: bytes) -> bytes:
    async with at.session.get(at.url + path, headers={"Accept": accept}) as response:
        assert (response.status, response.content_type) == (200, accept)
        return await read(response, until)


def quads(text: bytes, media_type: str) -> set[str]:
    """The statements in named graphs, and those that are not about an event's headers."""
    format = ox.RdfFormat.from_media_type(media_type)
    assert format is not None
    # What follows the last whole message is not there yet.
    whole = text[: text.rindex(b"\n\n") + 2]
    return {str(each) for each in ox.parse(whole, format=format) if "triplewire" not in each.predicate.value}


@pytest.mark.parametrize("media_type", [N_QUADS, TRIG])
def test_a_stream_is_an_rdf_document_without_an_end(media_type: str) -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1, 2)
            text = await told(
                at,
                "/streams/test?after=earliest",
                media_type,
                b"event/2> .\n\n" if media_type == N_QUADS else b"}\n\n# event",
            )
            text += b"\n\n" if media_type == TRIG else b""
            wanted = {str(each) for each in ox.parse(body(event(1), event(2)), format=ox.RdfFormat.N_QUADS)}
            found = quads(text, media_type)
            assert found <= wanted
            assert len(found) >= len(wanted) / 2
            assert b'# event {"position":"%b"}\n' % format_position(1).encode() in text
            assert b'# position {"position":"%b","missed":false}\n' % format_position(0).encode() in text

    run(scene())


def test_items_are_told_with_their_headers_and_their_positions() -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1)
            text = await told(at, "/streams/test?after=earliest", ZTREAMY, b"#double> .\n")
            items = [parse_item(each.data) for each in ZtreamySplitter().feed(text)]
            assert [each.headers.extensions.get("Notice") for each in items] == ["position", None]
            last = items[-1]
            assert (last.event_id, last.headers.extensions) == (event(1).id, {"Position": format_position(1)})
            assert len(list(ox.parse(last.body, format=ox.RdfFormat.TURTLE))) == 2

    run(scene())


@pytest.mark.parametrize("media_type", [N_QUADS, TRIG, ZTREAMY, LINES])
@pytest.mark.parametrize("kind", list(Kind))
def test_notifications_are_told_in_every_format(kind: Kind, media_type: str) -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe(kind)
            (first, second) = at.append(7, 8)
            rows = [0, 1] if kind is Kind.BINDINGS else None
            at.match([(first, made.since, rows), (second, made.since, rows)])
            text = await told(at, "/subscriptions/s1/notifications", media_type, format_position(second).encode())
            assert b"s1" in text
            assert format_position(first).encode() in text
            if media_type in (N_QUADS, TRIG):
                whole = text[: text.index(format_position(second).encode())].rpartition(b"\n")[0] + b"\n\n"
                found = "".join(quads(whole, media_type))
                assert ("observation/7" in found) == (kind is not Kind.SIGNAL)
                assert (RS in found) == (kind is Kind.BINDINGS)

    run(scene())


def test_what_a_client_does_not_take_is_answered_with_what_there_is() -> None:
    async def scene() -> None:
        async with house() as at:
            problem = await at.problem("GET", "/streams/test", headers={"Accept": "image/png"})
            assert problem["status"] == 406
            assert {each.media_type for each in FORMATS} <= set(problem["known"])
            assert "ndjson" in (await at.problem("GET", "/streams/test?format=png"))["detail"]
            assert "linger" in (await at.problem("GET", "/streams/test?linger=never"))["detail"]

    run(scene())


def test_a_format_is_chosen_by_name_or_by_what_is_liked() -> None:
    assert choose_format(None).name == "sse"
    assert choose_format("*/*").name == "sse"
    assert choose_format("text/html, application/trig;q=0.9, */*;q=0.1").name == "trig"
    assert choose_format("text/event-stream", "ndjson").name == "ndjson"
    with pytest.raises(NotAcceptable):
        choose_format("text/html")
    with pytest.raises(BadRequest, match="sse, ndjson"):
        choose_format(None, "html")


@pytest.mark.parametrize(("size", "head"), [(5, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10)])
def test_a_message_of_a_socket_says_how_long_it_is(size: int, head: int) -> None:
    framed = frame_text(b"x" * size)
    assert len(framed) == size + head
    assert framed[0] == 0x81
    assert WEBSOCKET.notice("gap", asked="0")[2:] == b'{"type":"gap","asked":"0"}'
