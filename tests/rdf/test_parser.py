"""Bodies become events: the cases are data, the oracle is the RDF library's own reading of the same body."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from triplewire import rdf
from triplewire.model import EventHeaders, errors
from triplewire.rdf import N_QUADS, TRIG, TURTLE, decode, find_syntax, parser
from triplewire.rdf.checks import EXPANDED_BYTES

CASES = Path(__file__).parent / "cases"


def cases(name: str) -> list[Any]:
    read = tomllib.loads((CASES / name).read_text())["case"]
    return [pytest.param(case, id=case["name"]) for case in read]


def body_of(case: dict[str, Any]) -> bytes:
    times = case.get("times", 0)
    parts = case.get("head", ""), case.get("open", "") * times, case["body"]
    return "".join((*parts, case.get("close", "") * times, case.get("tail", ""))).encode()


def ids_in_order() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"urn:new:{next(numbers)}"


def options(case: dict[str, Any]) -> dict[str, Any]:
    return {name: case[name] for name in ("event_id", "base_iri") if name in case}


@pytest.mark.parametrize("case", cases("good.toml"))
def test_a_body_becomes_events(case: dict[str, Any]) -> None:
    events = decode(body_of(case), find_syntax(case["syntax"]), new_id=ids_in_order(), **options(case))
    expected = [(event["id"], [line.replace("⇥", "\t") for line in event["lines"]]) for event in case["event"]]
    assert [(event.id, event.text.split("\n")) for event in events] == expected


@pytest.mark.parametrize("case", cases("bad.toml"))
def test_a_bad_body_is_refused_with_reason_and_place(case: dict[str, Any]) -> None:
    with pytest.raises(errors.InputError) as caught:
        decode(body_of(case), find_syntax(case["syntax"]), **options(case))
    assert type(caught.value).__name__ == case["error"]
    assert case["says"] in str(caught.value)
    assert len(str(caught.value)) < 300
    if "place" in case:
        assert caught.value.place == errors.TextPosition(*case["place"])


def test_bytes_that_are_no_text_are_refused_with_their_place() -> None:
    with pytest.raises(errors.MalformedRdf, match="UTF-8") as caught:
        decode(b'<http://e/s> <http://e/p> 1 .\n<http://e/s> <http://e/p> "\xff" .', TURTLE)
    assert caught.value.place is not None
    assert caught.value.place.line == 2


def test_a_byte_order_mark_is_no_part_of_the_body() -> None:
    (event,) = decode(b"\xef\xbb\xbf<http://e/s> <http://e/p> <http://e/o> .", TURTLE)
    assert event.text == "<http://e/s>\t<http://e/p>\t<http://e/o>"


def test_an_event_over_the_limit_is_refused_by_name() -> None:
    numbers = ",".join(map(str, range(parser.EVENT_QUADS + 1)))
    with pytest.raises(errors.InputError, match=f"http://e/g has .* over the limit of {parser.EVENT_QUADS}"):
        decode(f"<http://e/g> {{ <http://e/s> <http://e/p> {numbers} }}".encode(), TRIG)


def test_an_event_at_the_limit_is_taken_and_repeats_do_not_count() -> None:
    numbers = ",".join(str(number % parser.EVENT_QUADS) for number in range(parser.EVENT_QUADS + 10))
    (event,) = decode(f"<http://e/s> <http://e/p> {numbers} .".encode(), TURTLE)
    assert len(event.quads) == parser.EVENT_QUADS


def test_a_short_body_that_prefixes_make_long_is_refused() -> None:
    body = f"@prefix e: <http://e/{'x' * 100_000}> . e:s e:p {','.join(f'e:{n}' for n in range(400))} ."
    with pytest.raises(errors.BodyTooLarge, match=str(EXPANDED_BYTES)):
        decode(body.encode(), TURTLE)


def test_many_events_that_alternate_keep_their_order() -> None:
    lines = [f'<http://e/s> <http://e/p> "{n}" <http://e/g{n % 7}> .' for n in range(25_000)]
    events = decode("\n".join(lines).encode(), N_QUADS)
    assert [event.id for event in events] == [f"http://e/g{n}" for n in range(7)]
    for number, event in enumerate(events):
        assert [quad.object for quad in event.quads] == [f'"{n}"' for n in range(number, 25_000, 7)]


def test_headers_are_kept_and_the_syntax_is_told() -> None:
    headers = EventHeaders(source="http://e/me", time=7, extensions={"a": "b"})
    (event,) = decode(b"<http://e/s> <http://e/p> 1 .", TURTLE, headers)
    assert event.headers == EventHeaders(source="http://e/me", time=7, syntax="text/turtle", extensions={"a": "b"})


def test_new_ids_are_new() -> None:
    events = [decode(b"<http://e/s> <http://e/p> 1 .", TURTLE)[0] for _ in range(2)]
    assert events[0].id != events[1].id
    assert all(rdf.check_id(event.id).startswith("urn:uuid:") for event in events)
