"""What was published is what is there, whatever the terms: the RDF library itself is the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rdf.terms import bodies, plain_bodies
from triplewire.model import Event
from triplewire.rdf import JSON_LD, N_QUADS, N_TRIPLES, RDF_XML, SYNTAXES, TRIG, TURTLE, Syntax, decode, encode
from triplewire.rdf.terms import SKOLEM_PREFIX

GIVEN = "http://e/default"
DEFAULT = ox.NamedNode(GIVEN)


def parsed(events: Sequence[Event]) -> list[ox.Quad]:
    """The events as the RDF library reads them back, by way of their quads."""
    lines = "".join(f"{q.subject} {q.predicate} {q.object} {q.graph} .\n" for event in events for q in event.quads)
    return list(ox.parse(lines.encode(), format=ox.RdfFormat.N_QUADS))


def named(quads: Sequence[ox.Quad]) -> list[ox.Quad]:
    """The same quads without repeats, the default graph under the id that the tests give it."""
    default = ox.DefaultGraph()
    moved = (
        ox.Quad(q.subject, q.predicate, q.object, DEFAULT if q.graph_name == default else q.graph_name) for q in quads
    )
    return list(dict.fromkeys(moved))


def by_graph(quads: Sequence[ox.Quad]) -> list[ox.Quad]:
    first = list(dict.fromkeys(q.graph_name for q in quads))
    return sorted(quads, key=lambda q: first.index(q.graph_name))


def canonical(quads: Sequence[ox.Quad]) -> ox.Dataset:
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def blank_again(quads: Sequence[ox.Quad]) -> list[ox.Quad]:
    """Skolem IRIs turned back into blank nodes, each event with its own."""

    def term(
        node: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple,
    ) -> ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple:
        if isinstance(node, ox.Triple):
            return ox.Triple(term(node.subject), node.predicate, term(node.object))  # type: ignore[arg-type]
        if isinstance(node, ox.NamedNode) and node.value.startswith(SKOLEM_PREFIX):
            return ox.BlankNode("s" + node.value.encode().hex())
        return node

    return [ox.Quad(term(q.subject), q.predicate, term(q.object), q.graph_name) for q in quads]  # type: ignore[arg-type]


def scoped(quads: Sequence[ox.Quad]) -> list[ox.Quad]:
    """Blank nodes made local to their graph, which is what an event does to them."""

    def term(node: object, graph: object) -> ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple:
        if isinstance(node, ox.Triple):
            return ox.Triple(term(node.subject, graph), node.predicate, term(node.object, graph))  # type: ignore[arg-type]
        if isinstance(node, ox.BlankNode):
            return ox.BlankNode("s" + f"{graph} {node.value}".encode().hex())
        assert isinstance(node, ox.NamedNode | ox.Literal)
        return node

    return [
        ox.Quad(term(q.subject, q.graph_name), q.predicate, term(q.object, q.graph_name), q.graph_name)  # type: ignore[arg-type]
        for q in quads
    ]


def serialized(quads: Sequence[ox.Quad], syntax: Syntax) -> bytes:
    body = ox.serialize(quads, format=syntax.format)
    assert body is not None
    return body


@given(plain_bodies, st.sampled_from([N_QUADS, TRIG]))
@settings(max_examples=150, deadline=None)
def test_order_and_terms_come_through(quads: list[ox.Quad], syntax: Syntax) -> None:
    events = decode(serialized(quads, syntax), syntax, new_id=lambda: GIVEN)
    assert parsed(events) == by_graph(named(quads))


@given(bodies, st.sampled_from([N_QUADS, TRIG]))
@settings(max_examples=150, deadline=None)
def test_blank_nodes_come_through_as_nodes_of_their_event(quads: list[ox.Quad], syntax: Syntax) -> None:
    events = decode(serialized(quads, syntax), syntax, new_id=lambda: GIVEN)
    assert canonical(blank_again(parsed(events))) == canonical(scoped(named(quads)))


@given(bodies)
@settings(max_examples=100, deadline=None)
def test_text_has_three_terms_a_line_and_no_blank_node(quads: list[ox.Quad]) -> None:
    for event in decode(serialized(quads, N_QUADS), N_QUADS, new_id=lambda: GIVEN):
        rows = [line.split("\t") for line in event.text.split("\n")]
        assert all(len(row) == 3 for row in rows)
        assert len({tuple(row) for row in rows}) == len(rows)
        assert not any(term.startswith("_:") for row in rows for term in row)


@given(bodies, st.sampled_from([N_QUADS, TRIG]))
@settings(max_examples=100, deadline=None)
def test_events_written_and_read_again_are_the_same(quads: list[ox.Quad], syntax: Syntax) -> None:
    events = decode(serialized(quads, N_QUADS), N_QUADS, new_id=lambda: GIVEN)
    again = decode(encode(events, syntax), syntax)
    assert [(event.id, event.text) for event in again] == [(event.id, event.text) for event in events]


@given(bodies, st.sampled_from([N_TRIPLES, TURTLE]))
@settings(max_examples=100, deadline=None)
def test_triple_formats_write_the_union(quads: list[ox.Quad], syntax: Syntax) -> None:
    events = decode(serialized(quads, N_QUADS), N_QUADS, new_id=lambda: GIVEN)
    (union,) = decode(encode(events, syntax), syntax)
    assert union.text.split("\n") == list(dict.fromkeys(line for event in events for line in event.text.split("\n")))


SIMPLE = b"""
<http://e/s> <http://e/p> "a \\" < & > \\u2028", 1, 1.5, true, "x"@en, <http://e/o> ; a <http://e/C> .
<http://e/g> { <http://e/s> <http://e/p> [ <http://e/q> (1 2) ] . <http://e/s2> <http://e/p> "line\\nbreak" }
"""


@pytest.mark.parametrize("syntax", SYNTAXES, ids=lambda syntax: syntax.name)
def test_every_syntax_carries_the_same_triples(syntax: Syntax) -> None:
    events = decode(SIMPLE, TRIG)
    again = decode(encode(events, syntax), syntax)
    lines = sorted(line for event in events for line in event.text.split("\n"))
    assert sorted(line for event in again for line in event.text.split("\n")) == lines
    if syntax.graphs:
        assert {event.id for event in again} == {event.id for event in events}


@given(plain_bodies)
@settings(max_examples=60, deadline=None)
def test_json_ld_keeps_plain_terms(quads: list[ox.Quad]) -> None:
    events = decode(serialized(quads, N_QUADS), N_QUADS, new_id=lambda: GIVEN)
    again = decode(encode(events, JSON_LD), JSON_LD)
    assert {(e.id, line) for e in again for line in e.text.split("\n")} == {
        (e.id, line) for e in events for line in e.text.split("\n")
    }


def test_rdf_xml_is_read_by_the_library_as_the_same_triples() -> None:
    events = decode(SIMPLE, TRIG)
    read = set(map(str, ox.parse(encode(events, RDF_XML), format=ox.RdfFormat.RDF_XML)))
    assert read == {f"{q.subject} {q.predicate} {q.object}" for event in events for q in event.quads}
