"""Shapes and what conforms to them: cases in the manner of the W3C's, each with how many violations there are."""

from __future__ import annotations

import pytest

from triplewire.model.errors import BodyTooLarge, InputError, MalformedRdf, Unsupported
from triplewire.rdf import JSON_LD, TURTLE, decode
from triplewire.rdf.shacl import SHAPES_BYTES, parse_shapes
from triplewire.rdf.shacl_worker import ShapeValidator

PREFIXES = """
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <http://example.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
READING = "ex:S a sh:NodeShape ; sh:targetClass ex:Reading ; "

CASES = {
    "minCount": (READING + "sh:property [ sh:path ex:v ; sh:minCount 1 ]", "ex:r a ex:Reading", 1),
    "maxCount": (READING + "sh:property [ sh:path ex:v ; sh:maxCount 1 ]", "ex:r a ex:Reading ; ex:v 1, 2", 1),
    "datatype": (
        READING + "sh:property [ sh:path ex:v ; sh:datatype xsd:integer ]",
        "ex:r a ex:Reading ; ex:v 1, 'x'", 1,
    ),
    "ill-typed": (
        READING + "sh:property [ sh:path ex:v ; sh:datatype xsd:integer ]",
        "ex:r a ex:Reading ; ex:v 'x'^^xsd:integer", 1,
    ),
    "range": (
        READING + "sh:property [ sh:path ex:v ; sh:minInclusive 0 ; sh:maxExclusive 10 ]",
        "ex:r a ex:Reading ; ex:v -1, 0, 9.5, 10", 2,
    ),
    "pattern": (
        READING + "sh:property [ sh:path ex:v ; sh:pattern '^a+$' ]",
        "ex:r a ex:Reading ; ex:v 'aa', 'b'", 1,
    ),
    "length": (READING + "sh:property [ sh:path ex:v ; sh:maxLength 2 ]", "ex:r a ex:Reading ; ex:v 'aa', 'bbb'", 1),
    "in": (READING + "sh:property [ sh:path ex:v ; sh:in ( 1 2 ) ]", "ex:r a ex:Reading ; ex:v 1, 3", 1),
    "class": (
        READING + "sh:property [ sh:path ex:s ; sh:class ex:Sensor ]",
        "ex:r a ex:Reading ; ex:s ex:a . ex:a a ex:Other", 1,
    ),
    "nodeKind": (
        READING + "sh:property [ sh:path ex:s ; sh:nodeKind sh:BlankNode ]",
        "ex:r a ex:Reading ; ex:s [], ex:a", 1,
    ),
    "path": (
        READING + "sh:property [ sh:path ( ex:s ex:t ) ; sh:minCount 1 ]", "ex:r a ex:Reading ; ex:s [ ex:t 1 ]", 0,
    ),
    "inverse": (
        READING + "sh:property [ sh:path [ sh:inversePath ex:of ] ; sh:minCount 1 ]",
        "ex:r a ex:Reading . ex:x ex:of ex:r", 0,
    ),
    "or": (
        READING + "sh:or ( [ sh:property [ sh:path ex:v ; sh:minCount 1 ] ] "
        "[ sh:property [ sh:path ex:w ; sh:minCount 1 ] ] )",
        "ex:r a ex:Reading . ex:q a ex:Reading ; ex:w 1", 1,
    ),
    "not": (READING + "sh:not [ sh:property [ sh:path ex:v ; sh:hasValue 1 ] ]", "ex:r a ex:Reading ; ex:v 1", 1),
    "node": (READING + "sh:property [ sh:path ex:s ; sh:node ex:T ] . "
             "ex:T a sh:NodeShape ; sh:property [ sh:path ex:n ; sh:minCount 1 ]",
             "ex:r a ex:Reading ; ex:s ex:a", 1),
    "closed": (READING + "sh:closed true ; "
               "sh:ignoredProperties ( <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ) ; "
               "sh:property [ sh:path ex:v ]", "ex:r a ex:Reading ; ex:v 1 ; ex:w 2", 1),
    "qualified": (READING + "sh:property [ sh:path ex:s ; "
                  "sh:qualifiedValueShape [ sh:class ex:A ] ; sh:qualifiedMinCount 2 ]",
                  "ex:r a ex:Reading ; ex:s ex:a, ex:b . ex:a a ex:A", 1),
    "uniqueLang": (
        READING + "sh:property [ sh:path ex:v ; sh:uniqueLang true ]",
        "ex:r a ex:Reading ; ex:v 'a'@en, 'b'@en", 1,
    ),
    "targetSubjectsOf": ("ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:v ; sh:class ex:Reading", "ex:r ex:v 1", 1),
    "deactivated": (
        READING + "sh:deactivated true ; sh:property [ sh:path ex:v ; sh:minCount 1 ]",
        "ex:r a ex:Reading", 0,
    ),
    "no target": (READING + "sh:property [ sh:path ex:v ; sh:minCount 1 ]", "ex:r a ex:Other", 0),
    "warning": (
        READING + "sh:property [ sh:path ex:v ; sh:minCount 1 ; sh:severity sh:Warning ]",
        "ex:r a ex:Reading", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_events_are_judged(name: str) -> None:
    shapes, data, violations = CASES[name]
    judge = ShapeValidator()
    judge.load("s", parse_shapes(f"{PREFIXES}{shapes} .".encode(), TURTLE))
    (event,) = decode(f"{PREFIXES}{data} .".encode(), TURTLE)
    for _ in range(2):  # what was compiled is used again
        found = judge.validate("s", event.text)
        assert (0 if found is None else found["violations"]) == violations
    if found is not None:
        assert "ValidationReport" in found["report"]
        assert {"focus", "constraint", "severity"} <= set(found["results"][0])


def test_shapes_may_be_json_ld() -> None:
    text = b'{"@id": "http://example.org/S", "@type": "http://www.w3.org/ns/shacl#NodeShape"}'
    assert parse_shapes(text, JSON_LD).count("\n") == 0


def test_triple_terms_are_left_out() -> None:
    judge = ShapeValidator()
    judge.load("s", parse_shapes(f"{PREFIXES}{READING}sh:property [ sh:path ex:v ; sh:maxCount 0 ] .".encode(), TURTLE))
    (event,) = decode(
        b"<urn:r> a <http://example.org/Reading> ; <http://example.org/v> <<( <a:> <a:> <a:> )>> .", TURTLE
    )
    assert judge.validate("s", event.text) is None


@pytest.mark.parametrize(
    ("shapes", "error"),
    [
        ("ex:S", MalformedRdf),
        ("ex:a ex:b ex:c .", InputError),
        (READING + "sh:sparql [ sh:select 'SELECT $this { }' ] .", Unsupported),
        (READING + "sh:target [ sh:select 'SELECT ?this { }' ] .", Unsupported),
        (READING + "sh:rule [ a sh:TripleRule ] .", Unsupported),
        (READING + "sh:js [ sh:jsFunctionName 'f' ] .", Unsupported),
        (READING + "sh:property [ sh:path ex:v ; sh:node ex:S ] .", Unsupported),
        ("ex:A a sh:NodeShape ; sh:and ( ex:B ) . ex:B a sh:NodeShape ; sh:not ex:A .", Unsupported),
        ("".join(f"ex:s{n} a sh:NodeShape . " for n in range(20_001)), InputError),
        ("#" + "x" * SHAPES_BYTES, BodyTooLarge),
    ],
    ids=["malformed", "no shapes", "sparql", "target", "rule", "js", "itself", "circle", "many", "large"],
)
def test_what_may_not_be_let_loose_is_refused(shapes: str, error: type[InputError]) -> None:
    """The threat: shapes that run programs, or do not end."""
    with pytest.raises(error):
        parse_shapes((PREFIXES + shapes).encode(), TURTLE)


@pytest.mark.parametrize(
    "shapes",
    [
        "sh:property [ sh:minCount 1 ]",
        "sh:property [ sh:path 5 ; sh:minCount 1 ]",
        "sh:property [ sh:path ex:v ; sh:minCount 'many' ]",
    ],
)
def test_shapes_that_make_no_sense_are_refused(shapes: str) -> None:
    with pytest.raises(InputError, match="not valid"):
        ShapeValidator().load("s", parse_shapes(f"{PREFIXES}{READING}{shapes} .".encode(), TURTLE))
