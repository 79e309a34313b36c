"""Ztreamy items: written and read back, torn at any byte, and hostile ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import EventHeaders
from triplewire.model.errors import BadRequest, InputError
from triplewire.model.events import OpaquePayload
from triplewire.rdf import TURTLE, decode
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.headers import check_extension
from triplewire.rdf.ztreamy import ITEM_HEAD_BYTES, ZtreamySplitter, encode_event_item, encode_item, parse_item

FIGURE = b"""\
Event-Id: 1100254f-f4ba-49aa-8c47-605e3110169e
Source-Id: 83a4c888-c395-4bb7-a635-c5b864d6bd06
Syntax: text/turtle
Application-Id: identi.ca dataset
Timestamp: 2012-10-25T13:31:24+02:00
Body-Length: 38

<urn:notice> <urn:creator> <urn:user>."""

TEXTS = st.sampled_from([None, "roof", "urn:source:1", "Dach über é 𝄞", "a: b; c"])
EXTENSIONS = st.dictionaries(
    st.sampled_from(["X-One", "Relay-Path", "geo", "X.2"]), st.sampled_from(["", "a", 'b "c" \\', "é, è", "x: y"])
)
HEADERS = st.builds(
    EventHeaders,
    source=TEXTS,
    application=TEXTS,
    time=st.sampled_from([None, 0, 1_351_164_684_000_000, 1_700_000_000_123_456]),
    syntax=st.sampled_from(["text/turtle", "text/csv", "application/octet-stream", "text/plain; charset=utf-8"]),
    extensions=EXTENSIONS,
)
BODIES = st.sampled_from(
    [b"", b"a", b"\r\n\r\n", b"\n\nEvent-Id: urn:x\nBody-Length: 3\n\nabc", b"\0\xff\xfe", b"x" * 300]
)
ITEMS = st.lists(st.tuples(st.sampled_from(["urn:a", "http://e/1", "urn:é"]), HEADERS, BODIES), max_size=4)


def cut(*pieces: bytes) -> list[bytes]:
    cutter = ZtreamySplitter()
    found = [item.data for piece in pieces for item in cutter.feed(piece)]
    return found + [item.data for item in cutter.end()]


@given(ITEMS, st.lists(st.integers(0, 3000), max_size=6), st.sampled_from([b"", b"\n", b"\r\n\r\n"]))
@settings(max_examples=120, deadline=None)
def test_items_are_read_back_wherever_they_are_torn(
    items: list[tuple[str, EventHeaders, bytes]], tears: list[int], between: bytes
) -> None:
    written = [encode_item(*item) for item in items]
    stream = between.join(written)
    places = [0, *sorted(min(tear, len(stream)) for tear in tears), len(stream)]
    found = cut(*(stream[start:end] for start, end in pairwise(places)))
    assert found == written
    assert [(item.event_id, item.headers, item.body) for item in map(parse_item, found)] == items


def test_an_item_torn_at_each_byte_is_whole_with_its_last() -> None:
    for end in range(len(FIGURE) + 1):
        cutter = ZtreamySplitter()
        assert [cut.data for cut in cutter.feed(FIGURE[:end])] == ([FIGURE] if end == len(FIGURE) else [])
        assert [cut.data for cut in cutter.feed(FIGURE[end:])] == ([FIGURE] if end < len(FIGURE) else [])


def test_the_item_of_the_paper() -> None:
    (data,) = cut(FIGURE)
    item = parse_item(data)
    assert item.event_id == "urn:uuid:1100254f-f4ba-49aa-8c47-605e3110169e"
    assert item.headers == EventHeaders(
        "83a4c888-c395-4bb7-a635-c5b864d6bd06", "identi.ca dataset", 1_351_164_684_000_000, "text/turtle"
    )
    assert len(decode(item.body, TURTLE)) == 1


def test_an_event_goes_out_as_turtle_and_comes_back() -> None:
    text = '<urn:s>\t<urn:p>\t"a\\nb"\n<urn:s>\t<urn:p>\t<<( <urn:s> <urn:p> "x"@en )>>'
    item = parse_item(encode_event_item("urn:e", text, EventHeaders("roof", extensions={"X-A": "1"})))
    assert item.headers == EventHeaders("roof", syntax="text/turtle", extensions={"X-A": "1"})
    (event,) = decode(item.body, TURTLE, event_id=item.event_id)
    assert (event.id, event.text) == ("urn:e", text)


def test_what_is_carried_goes_out_as_it_came() -> None:
    text = OpaquePayload("image/png", b"\x89PNG\r\n\r\n\0").text("urn:e")
    item = parse_item(encode_event_item("urn:e", text, EventHeaders(syntax="image/png")))
    assert (item.headers.syntax, item.body) == ("image/png", b"\x89PNG\r\n\r\n\0")


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"Event-Id: urn:a\n\n", "one header Body-Length, a number of bytes; it has 0"),
        (b"Body-Length: 3\nbody-length: 4\n\n", "it has 2"),
        (b"Body-Length: -1\n\n", "not '-1'"),
        (b"Body-Length: +1\n\n", "not '\\+1'"),
        (b"Body-Length: 1_0\n\n", "not '1_0'"),
        (b"Body-Length: \xd9\xa3\n\n", "not"),
        (b"Body-Length: 0x10\n\n", "not '0x10'"),
        (b"Body-Length: 99999999999\n\n", "larger than the limit"),
        (b"Body-Length: 9999999999999999999999999\n\n", "not '9"),
        (b"Body-Length: %d\n\n" % (BODY_BYTES + 1), "larger than the limit"),
        (b"a" * (ITEM_HEAD_BYTES + 1), "the head of an item is larger"),
    ],
)
def test_an_item_whose_end_cannot_be_told_ends_all(head: bytes, words: str) -> None:
    cutter = ZtreamySplitter()
    assert [cut.data for cut in cutter.feed(FIGURE)] == [FIGURE]
    with pytest.raises(InputError, match=words):
        list(cutter.feed(head + FIGURE))


def test_an_item_that_ends_in_the_middle() -> None:
    with pytest.raises(BadRequest, match="ends in the middle"):
        cut(FIGURE + FIGURE[:-1])


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"Event-Id: not an id", "not an event id"),
        (b"Source-Id: a\0b", "printable"),
        (b"Source-Id: a\rX-Admin: yes", "printable"),
        (b"X-Note: a\rX-Admin: yes", "printable"),
        (b"X-Note: a\xc2\x85b", "printable"),
        (b"X-Note: \xff", "UTF-8"),
        (b" X-Note: folded", "is not a header"),
        (b"X Note: a", "is not a header"),
        (b"X-Note", "is not a header"),
        (b"X-Note: a\nx-note: b", "given twice"),
        (b"Timestamp: yesterday", "ISO 8601"),
        (b"X-Long: " + b"x" * 2000, "at most 1024 characters"),
        (b"\n".join(b"X-%d: 1" % number for number in range(40)), "the limit is 32"),
    ],
)
def test_headers_that_cannot_be_are_refused(header: bytes, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        parse_item(b"Syntax: text/turtle\n" + header + b"\nBody-Length: 0\n\n")


@pytest.mark.parametrize("syntax", [b"", b"turtle", b"text/turtle\rX: y", b"text/", b"text/a b", b'a/b; c="d"'])
def test_a_syntax_is_a_media_type(syntax: bytes) -> None:
    with pytest.raises(BadRequest, match="media type of the body"):
        parse_item(b"Syntax: " + syntax + b"\nBody-Length: 0\n\n")


@pytest.mark.parametrize("name", ["", "a b", "a:b", "Body-Length", "event-id", "a\r\nb", "é", "x" * 200])
def test_a_header_of_ones_own_is_not_one_of_ours(name: str) -> None:
    with pytest.raises(BadRequest, match="not a name for an extension header"):
        check_extension(name, "a")
