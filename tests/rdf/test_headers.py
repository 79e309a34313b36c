"""Headers: what is said of events, as triples outside of their graphs."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import Event, EventHeaders, StreamEvent
from triplewire.model.errors import BadRequest, InputError, MalformedRdf
from triplewire.model.terms import TW
from triplewire.rdf import N_QUADS, TRIG, decode_addressed, encode_addressed
from triplewire.rdf.headers import NO_HEADER_VALUES, HeaderValues, format_headers, parse_headers

TEXTS = st.sampled_from([None, "roof", "urn:source:1", "Dach über é 𝄞", "a <b> c"])
TIMES = st.sampled_from([None, 0, 1, 1_700_000_000_123_456, -1, -62_135_596_800_000_000, 253_402_300_799_999_999])
SAID = st.builds(HeaderValues, TEXTS, TEXTS, TEXTS, TIMES, TIMES)


@given(SAID)
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_back(said: HeaderValues) -> None:
    text = format_headers("urn:e", said)
    quads = list(ox.parse(text.encode(), format=ox.RdfFormat.N_QUADS))
    assert len(quads) == sum(value is not None for value in vars(said).values())
    lines = [f"{quad.subject}\t{quad.predicate}\t{quad.object}" for quad in quads]
    assert parse_headers(lines).get("urn:e", NO_HEADER_VALUES) == said


def test_events_go_out_and_come_back_with_their_streams_and_headers() -> None:
    first = Event("urn:e1", '<urn:s>\t<urn:p>\t"a"\n<urn:s>\t<urn:p>\t<urn:e2>', EventHeaders("roof", "app", 5))
    second = Event("urn:e2", f'<urn:e1>\t<{TW}stream>\t"not a header"', EventHeaders(time=-1))
    body = encode_addressed([StreamEvent("home", first), StreamEvent("garden", second)])
    found = decode_addressed(body, N_QUADS)
    assert [(said.stream, event) for said, event in found] == [("home", first), ("garden", second)]


def test_the_order_of_headers_and_graphs_does_not_matter() -> None:
    body = f"""
        @prefix tw: <{TW}> .
        <urn:b> {{ <urn:s> <urn:p> 1 }}
        <urn:b> tw:stream "x" . <urn:a> tw:stream "y" ; tw:time "2026-11-15T08:30:00+01:00" .
        <urn:a> {{ <urn:s> <urn:p> 2 }}
    """
    (_, b), (said, a) = decode_addressed(body.encode(), TRIG)
    assert (b.id, a.id, said.stream) == ("urn:b", "urn:a", "y")
    assert a.headers.time == 1_794_727_800_000_000


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("<urn:s> <urn:p> 1 .", "outside of a graph"),
        (f"_:b <{TW}stream> 'x' .", "outside of a graph"),
        (f"<urn:e> <{TW}position> '1' .", "tw:stream, tw:source"),
        (f"<urn:e> <{TW}stream> <urn:x> .", "must be a literal"),
        (f"<urn:e> <{TW}stream> 'x', 'y' .", "given twice"),
        (f"<urn:e> <{TW}time> 'yesterday' .", "ISO 8601"),
        (f"<urn:e> <{TW}source> 'a\\\"b' .", "without quotes"),
        (f"<urn:e> <{TW}source> '{'x' * 1025}' .", "the limit is 1024"),
        (f"<urn:other> <{TW}stream> 'x' .", "no event of the body"),
        ("_:g { <urn:s> <urn:p> 1 }", "names no event"),
    ],
)
def test_what_is_no_header_is_named(lines: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        decode_addressed(f"<urn:e> {{ <urn:s> <urn:p> 1 }} {lines}".encode(), TRIG)


def test_headers_alone_are_no_events() -> None:
    with pytest.raises(InputError):
        decode_addressed(f"<urn:e> <{TW}stream> 'x' .".encode(), TRIG)
    with pytest.raises(MalformedRdf):
        decode_addressed(b"", TRIG)
