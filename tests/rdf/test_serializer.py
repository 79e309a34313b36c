"""Events become bodies, and what a syntax cannot write is said."""

from __future__ import annotations

import pytest

from triplewire.model import Event
from triplewire.model.errors import BadRequest
from triplewire.rdf import JSON_LD, N_QUADS, N_TRIPLES, RDF_XML, TRIG, TURTLE, Syntax, encode, to_nquads, to_ntriples

ONE = Event("http://e/1", '<http://e/s>\t<http://e/p>\t"a b"\n<http://e/s>\t<http://e/p>\t<http://e/o>')
TWO = Event("http://e/2", '<http://e/s>\t<http://e/p>\t"a b"')


def test_text_as_quads() -> None:
    assert to_nquads(ONE.id, ONE.text) == (
        '<http://e/s> <http://e/p> "a b" <http://e/1> .\n<http://e/s> <http://e/p> <http://e/o> <http://e/1> .\n'
    )


def test_text_as_triples() -> None:
    assert to_ntriples(ONE.text) == '<http://e/s> <http://e/p> "a b" .\n<http://e/s> <http://e/p> <http://e/o> .\n'


def test_graph_formats_keep_events_apart() -> None:
    assert encode([ONE, TWO], N_QUADS) == (to_nquads(ONE.id, ONE.text) + to_nquads(TWO.id, TWO.text)).encode()


def test_triple_formats_join_them() -> None:
    assert encode([ONE, TWO], N_TRIPLES) == to_ntriples(ONE.text).encode()


@pytest.mark.parametrize("syntax", [N_QUADS, N_TRIPLES, TRIG, TURTLE], ids=lambda syntax: syntax.name)
def test_no_events_are_an_empty_body(syntax: Syntax) -> None:
    assert encode([], syntax) == b""


@pytest.mark.parametrize(
    ("syntax", "line"),
    [
        pytest.param(RDF_XML, '<http://e/s>\t<http://e/1>\t"x"', id="a predicate without a local name in RDF/XML"),
        pytest.param(RDF_XML, '<http://e/s>\t<http://e/p>\t"\\u0001"', id="a control character in RDF/XML"),
        pytest.param(JSON_LD, '<a:s>\t<a:p>\t<<( <a:s> <a:p> "x" )>>', id="a triple term in JSON-LD"),
    ],
)
def test_what_a_syntax_cannot_write_is_said(syntax: Syntax, line: str) -> None:
    with pytest.raises(BadRequest, match=f"{syntax.name} cannot write"):
        encode([Event("http://e/1", line)], syntax)
