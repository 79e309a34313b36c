"""Blank nodes become IRIs that are the same inside an event and nowhere else."""

from __future__ import annotations

import re

import pytest

from triplewire.model.clock import ManualClock
from triplewire.rdf import N_QUADS, TRIG, TURTLE, decode
from triplewire.rdf.terms import SKOLEM_PREFIX, IdGenerator

TWO_EVENTS = b"""
<http://e/g> { _:a <http://e/p> _:b . _:b <http://e/p> _:a }
<http://e/h> { _:a <http://e/p> "_:a" }
"""


def skolems(text: str) -> list[str]:
    return re.findall(rf"<{SKOLEM_PREFIX}[^>]*>", text)


def test_a_label_is_one_node_inside_an_event() -> None:
    event = decode(TWO_EVENTS, TRIG)[0]
    a, b, b_again, a_again = skolems(event.text)
    assert (a, b) == (a_again, b_again)
    assert a != b


def test_a_label_is_another_node_in_another_event() -> None:
    first, second = decode(TWO_EVENTS, TRIG)
    assert not set(skolems(first.text)) & set(skolems(second.text))


@pytest.mark.parametrize(
    "body",
    [
        "<http://e/s> <http://e/p> [ <http://e/q> [] ; <http://e/r> _:a ], _:a .",
        "_:a <http://e/p> _:b . _:b <http://e/p> <<( _:c <http://e/p> [] )>> .",
        "<http://e/s> <http://e/p> ( [] 1 _:x ) .",
    ],
)
def test_an_event_that_comes_again_has_the_same_nodes_whatever_their_labels(body: str) -> None:
    (first,) = decode(body.encode(), TURTLE, event_id="urn:e")
    (again,) = decode(body.replace("_:a", "_:z").encode(), TURTLE, event_id="urn:e")
    (other,) = decode(body.encode(), TURTLE, event_id="urn:f")
    assert first == again
    assert skolems(first.text)
    assert not set(skolems(first.text)) & set(skolems(other.text))


def test_nodes_sort_as_their_events_came() -> None:
    first, second = (IdGenerator(ManualClock(at)).new for at in (1_000_000_000, 1_000_001_000))
    body = b"[] <http://e/p> 1 ."
    nodes = [skolems(decode(body, TURTLE, new_id=each)[0].text)[0] for each in (second, first)]
    assert nodes[0] > nodes[1]


def test_literals_and_iris_that_look_like_blank_nodes_stay() -> None:
    body = b'_:x <http://e/_:p> "_:x" .\n_:x <http://e/p> "a _:x b"@en .'
    (event,) = decode(body, N_QUADS)
    assert [quad.predicate for quad in event.quads] == ["<http://e/_:p>", "<http://e/p>"]
    assert [quad.object for quad in event.quads] == ['"_:x"', '"a _:x b"@en']


def test_blank_nodes_in_triple_terms_are_the_same_nodes() -> None:
    body = b'_:x <http://e/p> <<( _:x <http://e/p> <<( _:y <http://e/p> "_:x \\" _:y" )>> )>> .'
    (event,) = decode(body, N_QUADS)
    (x, x_again, y) = skolems(event.text)
    assert x == x_again
    assert event.quads[0].object == f'<<( {x} <http://e/p> <<( {y} <http://e/p> "_:x \\" _:y" )>> )>>'


def test_labels_beyond_ascii_make_iris_that_parse_and_differ() -> None:
    body = "_:é.1 <http://e/p> _:e\u00b71 , _:ﷰ\ufffd .".encode()
    (event,) = decode(body, TRIG)
    assert len(set(skolems(event.text))) == 3
    assert event.text.isascii()
