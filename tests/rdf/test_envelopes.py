"""Items in one body: lines of JSON, quads without an end, and what is told apart in a broken document."""

from __future__ import annotations

from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import Event, EventHeaders
from triplewire.model.errors import InputError
from triplewire.model.events import parse_payload
from triplewire.rdf import N_QUADS, TRIG, decode, new_id, to_nquads
from triplewire.rdf.envelopes import NDJSON, QUADS, ZTREAMY, Envelope
from triplewire.rdf.splitting import QuadSplitter, split_events
from triplewire.rdf.ztreamy import encode_event_item, encode_item
from triplewire.testing import event


def read(wrapping: Envelope, *pieces: bytes, headers: EventHeaders | None = None) -> list[Event]:
    cutter = wrapping.cutter()
    cuts = [cut for piece in pieces for cut in cutter.feed(piece)] + list(cutter.end())
    return [each for cut in cuts for each in wrapping.read(cut.data, headers or EventHeaders(), new_id)]


def line(**said: object) -> bytes:
    return orjson.dumps(said) + b"\n"


def test_what_lines_of_json_tell_can_be_published_again() -> None:
    sent = event(1)
    told = line(
        type="event", position="0000000000000007", stream="a", event=sent.id, time="2026-11-15T08:30:00Z",
        source="roof", application=None, headers={"X-One": "1"}, format="application/n-quads",
        body=to_nquads(sent.id, sent.text),
    )  # fmt: skip
    (found,) = read(NDJSON, line(type="position", position="0000000000000000"), told, b"\n\n")
    assert (found.id, found.text) == (sent.id, sent.text)
    assert found.headers == EventHeaders("roof", None, 1_794_731_400_000_000, "application/n-quads", {"X-One": "1"})


def test_what_items_tell_can_be_published_again() -> None:
    sent = event(1)
    notice = encode_item("urn:n", EventHeaders(syntax="application/json", extensions={"Notice": "position"}), b"{}")
    told = encode_event_item(
        sent.id, sent.text, EventHeaders("roof", extensions={"Position": "0000000000000007", "X-One": "1"})
    )
    (found,) = read(ZTREAMY, notice + told)
    assert (found.id, found.text) == (sent.id, sent.text)
    assert found.headers == EventHeaders("roof", syntax="text/turtle", extensions={"X-One": "1"})


def test_a_line_may_be_json_ld_turtle_or_no_rdf() -> None:
    found = read(
        NDJSON,
        b'{"@id": "urn:s", "urn:p": 1}\n[{"@id": "urn:e", "@graph": [{"@id": "urn:s", "urn:p": 2}]}]\n',
        line(event="urn:t", format="text/turtle", body="<urn:s> <urn:p> 3 ."),
        line(event="1100254f-f4ba-49aa-8c47-605e3110169e", format="text/csv", body="a,b"),
        headers=EventHeaders("all", "app", 5),
    )
    assert [each.id for each in found[1:]] == ["urn:e", "urn:t", "urn:uuid:1100254f-f4ba-49aa-8c47-605e3110169e"]
    assert {(each.headers.source, each.headers.application, each.headers.time) for each in found} == {("all", "app", 5)}
    cargo = parse_payload(found[3].id, found[3].text)
    assert cargo is not None
    assert (cargo.media_type, cargo.body, found[3].headers.syntax) == ("text/csv", b"a,b", "text/csv")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "is not JSON"),
        (b"[" * 5000, "is not JSON"),
        (b'"text"', "JSON-LD"),
        (b'{"a": 1}', "holds no quads"),
        (b'{"body": 1}', "`body` is a string"),
        (b'{"body": "", "event": 7}', "`event` is a string"),
        (
            b'{"body": "<urn:s> <urn:p> 1 .", "format": "text/turtle", "headers": {"a\\r\\nb": "c"}}',
            "not a name for an extension header",
        ),
        (b'{"body": "<urn:s> <urn:p> 1 .", "format": "text/turtle", "headers": {"a": "b\\nc"}}', "printable"),
        (b'{"body": "<urn:s> <urn:p> 1 .", "format": "text/turtle", "headers": {"Body-Length": "1"}}', "not a name"),
        (b'{"body": "a", "format": "text/csv\\r\\nX: y"}', "media type"),
        (b'{"body": "<urn:s> <urn:p> 1 .", "format": "text/turtle", "source": "a\\u0000b"}', "printable"),
        (b'{"body": "a", "format": "text/csv", "event": "not an id"}', "not an event id"),
        (b'{"body": "a", "format": "text/csv", "time": "soon"}', "ISO 8601"),
    ],
)
def test_lines_that_cannot_be_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        NDJSON.read(data, EventHeaders(), new_id)


EVENTS = st.lists(st.integers(1, 9), max_size=6, unique=True)


@given(EVENTS, st.lists(st.integers(0, 2000), max_size=5), st.sampled_from(["", "\n", "# a comment\n", "\n \n"]))
@settings(max_examples=80, deadline=None)
def test_quads_are_told_apart_wherever_they_are_torn(numbers: list[int], tears: list[int], between: str) -> None:
    sent = [event(number) for number in numbers]
    stream = between.join(to_nquads(each.id, each.text) for each in sent).encode()
    places = [0, *sorted(min(tear, len(stream)) for tear in tears), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(places)]
    assert [(each.id, each.text) for each in read(QUADS, *pieces)] == [(each.id, each.text) for each in sent]


GOOD_A, GOOD_B = b'<urn:s> <urn:p> "a" <urn:a> .', b'<urn:s> <urn:p> "b" <urn:b> .'


@pytest.mark.parametrize(
    ("lines", "blocks"),
    [
        ([GOOD_A, b"<urn:s> <urn:p> oops <urn:a> .", GOOD_B], [(1, 2), (3, 1)]),
        ([GOOD_A, b"<urn:s> <urn:p> oops <urn:b> .", GOOD_B], [(1, 1), (2, 2)]),
        ([GOOD_A, b"broken", GOOD_B], [(1, 2), (2, 2)]),
        ([GOOD_A, b"broken", GOOD_A, GOOD_B], [(1, 3), (4, 1)]),
        ([GOOD_A, b"broken", b"", GOOD_B], [(1, 2), (4, 1)]),
        ([b"broken", GOOD_A, GOOD_B], [(1, 2), (3, 1)]),
        ([GOOD_A, b"", GOOD_A], [(1, 1), (3, 1)]),
        ([b'<urn:s> <urn:p> "a" .', b"<urn:s> <urn:p> <urn:a> .", GOOD_A], [(1, 2), (3, 1)]),
    ],
)
def test_a_broken_line_spoils_what_it_may_be_a_part_of(lines: list[bytes], blocks: list[tuple[int, int]]) -> None:
    cutter = QuadSplitter()
    cuts = [*cutter.feed(b"\n".join(lines)), *cutter.end()]
    assert [(cut.line, cut.data.count(b"\n") + 1) for cut in cuts] == blocks


def test_a_broken_document_is_told_apart_by_its_events() -> None:
    body = b"\n".join([GOOD_A, GOOD_B, b"<urn:s> <urn:p> oops <urn:a> .", b"<urn:s> <urn:p> <urn:b2> <urn:b> ."])
    first, second = split_events(body, N_QUADS)
    assert (first.line, second.line) == (1, 2)
    with pytest.raises(InputError, match="oops"):
        decode(first.data, N_QUADS)
    (found,) = decode(second.data, N_QUADS)
    assert len(found.quads) == 2


def test_graphs_of_trig_are_told_apart_with_their_prefixes() -> None:
    body = b"""@prefix : <urn:x:> .
:a { :s :p "1" . }
:b { :s :p oops }
GRAPH <urn:x:c> { :s :p "3" }
PREFIX : <urn:y:>
:a { :s :p "4" }
<urn:x:b> { <urn:s> <urn:p> "5" }"""
    found = dict[int, str | None]()
    for cut in split_events(body, TRIG):
        try:
            (event,) = decode(cut.data, TRIG)
            found[cut.line] = event.id
        except InputError:
            found[cut.line] = None
    assert found == {2: "urn:x:a", 3: None, 4: "urn:x:c", 6: "urn:y:a"}


@pytest.mark.parametrize(
    ("body", "syntax"),
    [
        (b"\n".join([GOOD_A, b"broken", GOOD_B]), N_QUADS),
        (GOOD_A + b"\n<urn:s> <urn:p> oops <urn:a> .", N_QUADS),
        (b"<urn:a> { <urn:s> <urn:p> oops }", TRIG),
        (b"<urn:a> { <urn:s> <urn:p> oops } <urn:s> <urn:p> 1 .", TRIG),
        (b"<urn:a> { <urn:s> <urn:p> _:g } _:g { <urn:s> <urn:p> oops }", TRIG),
        (b"<urn:a> { <urn:s> <urn:p> 1 } nope:b { <urn:s> <urn:p> oops }", TRIG),
    ],
)
def test_what_cannot_be_told_apart_is_not(body: bytes, syntax: object) -> None:
    assert split_events(body, syntax) == []  # type: ignore[arg-type]
