"""Threat: a body made to hurt. Whatever the bytes, the answer is events or an InputError, never another exception."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model.errors import InputError
from triplewire.rdf import SYNTAXES, TRIG, Syntax, decode, encode

EVENTS = decode(
    b"""<http://e/g> { <http://e/s> <http://e/p> "x\\n\\"", 1.5, "y"@en, [ <http://e/q> (1 2) ] }
<http://e/h> { <http://e/s> a <http://e/C> ; <http://e/p> <http://e/o> }""",
    TRIG,
)
BODIES = {syntax: encode(EVENTS, syntax) for syntax in SYNTAXES}
JUNK = st.sampled_from(
    [
        b"<<(",
        b")>>",
        b'"',
        b"'''",
        b"\\u",
        b"\x00",
        b"\xff",
        b"_:",
        b"@",
        b"{",
        b"}",
        b"[",
        b"&",
        b"<!--",
        b"#",
        b"\n",
        b".",
    ]
)


@given(st.sampled_from(SYNTAXES), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.1), JUNK), min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_a_damaged_body_is_read_or_refused(syntax: Syntax, damages: list[tuple[float, float, bytes]]) -> None:
    body = BODIES[syntax]
    for where, width, junk in damages:
        start = int(where * len(body))
        body = body[:start] + junk + body[start + int(width * len(body)) :]
    lines: list[str] = []
    place = None
    try:
        lines = [line for event in decode(body, syntax) for line in event.text.split("\n")]
    except InputError as error:
        place = error.place
    assert place is None or place.line <= body.count(b"\n") + 1
    assert all(line.count("\t") == 2 for line in lines)


@given(st.binary(max_size=200), st.sampled_from(SYNTAXES))
@settings(max_examples=200, deadline=None)
def test_noise_is_read_or_refused(body: bytes, syntax: Syntax) -> None:
    try:
        decode(body, syntax)
    except InputError:
        return


@pytest.mark.parametrize("syntax", SYNTAXES, ids=lambda syntax: syntax.name)
def test_a_body_in_another_syntax_is_refused(syntax: Syntax) -> None:
    """Threat: a wrong Content-Type that is taken for something else than what was meant."""
    other = b"this: is [neither], <one> nor {the} other"
    with pytest.raises(InputError, match=f"not {syntax.name}"):
        decode(other, syntax)
