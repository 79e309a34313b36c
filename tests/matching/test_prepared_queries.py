"""Texts that differ only in constants are parsed once, and what comes out is what the parser would have said."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.grammar import Question, asks, selects
from tests.generated import sparql
from tests.matching.filters import generated
from triplewire.matching.filters import parse_form
from triplewire.matching.prepared_queries import PreparedShapes, lift_request
from triplewire.matching.shape_requests import EventSelector, QuerySkeleton, ShapeRequest, cut_request
from triplewire.matching.shapes import LiftedShape
from triplewire.model.errors import TriplewireError

EX = "PREFIX ex: <http://example.org/> "


class Counting:
    """Parses, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, asked: ShapeRequest) -> LiftedShape:
        self.count += 1
        return lift_request(asked)


def outcome(texts: PreparedShapes | None, asked: ShapeRequest) -> LiftedShape | str:
    """What is lifted, or what is said against it."""
    try:
        return lift_request(asked) if texts is None else texts.lift(asked)
    except TriplewireError as error:
        return str(error)


def agree(texts: PreparedShapes, *given: ShapeRequest) -> None:
    for asked in given:
        assert outcome(texts, asked) == outcome(None, asked), asked


@pytest.mark.parametrize(
    ("form", "first", "later"),
    [
        ("ASK {{ ?s ex:p <{}> }}", ["urn:a"], ["urn:b"]),
        ("ASK {{ ?s ex:p ex:{} }}", ["a"], ["b.c-d"]),
        ("ASK {{ ex:{0} ex:p ?x ; ex:q ?y }}", ["a"], ["b"]),
        ('ASK {{ ?s ex:p "{}" }}', ["a"], ["b ö <urn:x> {}"]),
        ('ASK {{ ?s ex:p "{}"@en }}', ["a"], ["b"]),
        ("ASK {{ ?s ex:p '{}' }}", ["a"], ["b"]),
        ("ASK {{ ?s ex:p ?v FILTER(?v > {} && ?v < -{}) }}", ["1", "2"], ["30", "4"]),
        ("ASK {{ ?s ex:p ?v FILTER(?v > {}) }}", ["1.5"], ["22.75"]),
        ("ASK {{ ?s ex:p ?v FILTER(?v > {}) }}", ["1e3"], ["2.5E-7"]),
        ("ASK {{ ?s ex:p ?v FILTER(xsd:integer(?v) IN ({}, {})) }}", ["1", "2"], ["3", "4"]),
        (
            'ASK {{ ?s ex:p ?v FILTER(?v > "{}"^^xsd:dateTime) }}',
            ["2026-01-01T00:00:00Z"],
            ["2025-11-30T12:00:00.5+01:00"],
        ),
        ('ASK {{ ?s ex:p ?v FILTER(?v > "{}"^^xsd:integer) }}', ["5"], ["77"]),
        ('ASK {{ ?s ex:p ?v FILTER(?v = ex:{} && REGEX(?l, "^a\\\\d")) }}', ["x"], ["y"]),
        ("ASK {{ ?s ex:{} ex:{} }}", ["p", "a"], ["p", "b"]),
        ("ASK {{ ?s ex:p ex:{} . ?t ex:q ex:{} }}", ["a", "a"], ["b", "b"]),
        ("CONSTRUCT {{ ?s ex:is ex:{} }} WHERE {{ ?s ex:p ex:{} }}", ["a", "b"], ["c", "d"]),
        ("SELECT ?s {{ ?s ex:p ex:{} OPTIONAL {{ ?s ex:q {} }} }}", ["a", "1"], ["b", "2"]),
    ],
)
def test_a_second_text_needs_no_parser(form: str, first: list[str], later: list[str]) -> None:
    parser = Counting()
    texts = PreparedShapes(parser)
    head = EX + "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    texts.lift(ShapeRequest(head + form.format(*first), True))
    before = parser.count
    agree(texts, ShapeRequest(head + form.format(*later), True))
    assert parser.count == before


@pytest.mark.parametrize(
    "pair",
    [
        ("ASK { ?s ex:p ex:a }", "ASK { ?s ex:q ex:a }"),
        ("SELECT * { ?s ex:p ex:a } LIMIT 5", "SELECT * { ?s ex:p ex:a } LIMIT 6"),
        ('ASK { ?s ex:p ?v FILTER REGEX(?v, "a") }', 'ASK { ?s ex:p ?v FILTER REGEX(?v, "b") }'),
        ("ASK { ?s ex:p ?v VALUES ?v { 1 2 } }", "ASK { ?s ex:p ?v VALUES ?v { 1 3 } }"),
        ("ASK { ?s ex:p/ex:q* ?v }", "ASK { ?s ex:p/ex:r* ?v }"),
        ("PREFIX e: <urn:a:> ASK { ?s ex:p e:x }", "PREFIX e: <urn:b:> ASK { ?s ex:p e:x }"),
        ("ASK { ?s ex:p ?v FILTER(?v > 5) }", "ASK { ?s ex:p ?v FILTER(?v > 5.0) }"),
        ("ASK { ?s a ex:a . ?s ex:p ex:b }", "ASK { ?s ex:r ex:a . ?s ex:p ex:b }"),
        ('ASK { ?s ex:p ?v FILTER(?v = "5"^^ex:int) }', 'ASK { ?s ex:p ?v FILTER(?v = "5"^^ex:odd) }'),
        (
            'ASK { ?s ex:p ?v FILTER(?v = "5"^^<http://www.w3.org/2001/XMLSchema#integer>) }',
            'ASK { ?s ex:p ?v FILTER(?v = "five"^^<http://www.w3.org/2001/XMLSchema#integer>) }',
        ),
        (
            "SELECT (SUM(?v + 1) AS ?a) { ?s ex:p ?v } HAVING (SUM(?v + 1) > 9)",
            "SELECT (SUM(?v + 1) AS ?a) { ?s ex:p ?v } HAVING (SUM(?v + 2) > 9)",
        ),
        ("BASE <http://b/x/> ASK { ?s ex:p <http://a/b/c> }", "BASE <http://b/x/> ASK { ?s ex:p <http://a/b/../c> }"),
        ("ASK { ?s ex:p <urn:a> }", "ASK { ?s ex:p <a> }"),
        ("ASK { ?s ex:p <http://a:80/> }", "ASK { ?s ex:p <http://a:8x/> }"),
        ("ASK { ?s ex:p 'x'@de-1996 }", "ASK { ?s ex:p 'x'@de-199612345 }"),
        ("ASK { ?s ex:p 'a' } # it's 5", "ASK { ?s ex:p 'b' } # it's 6"),
        ("ASK { ?s ex:p ?a, ?b FILTER(?a<ex:b&&?b>ex:c) }", "ASK { ?s ex:p ?a, ?b FILTER(?a<ex:d&&?b>ex:c) }"),
        ("ASK { ?s ex:p ex:a ; ex:q 1 }", "ASK { ?s ex:p ex:a ; ex:q \\u0031 }"),
        ("ASK { ?s ex:p ex:a . ?t ex:p ex:b }", "ASK { ?s ex:p ex:a . ?t ex:p <http://example.org/a> }"),
    ],
)
def test_where_more_than_constants_differ_the_parser_decides(pair: tuple[str, str]) -> None:
    for solutions in (True, False):
        texts = PreparedShapes()
        agree(texts, *(ShapeRequest(EX + each, solutions) for each in (*pair, *pair)))


@pytest.mark.parametrize("field", ["stream", "source", "application", "vocabulary"])
def test_what_narrows_is_a_parameter_too(field: str) -> None:
    parser = Counting()
    texts = PreparedShapes(parser)
    for text in (None, "SELECT ?s { ?s <urn:p> 5 }", "SELECT (COUNT(*) AS ?n) { ?s <urn:p> 5 }"):
        texts.lift(ShapeRequest(text, True, EventSelector(**{field: ("a", "b")})))
        before = parser.count
        agree(texts, ShapeRequest(text, True, EventSelector(**{field: ("c", "d")})))
        assert parser.count == before
        agree(
            texts,
            *(ShapeRequest(text, True, EventSelector(**{field: each})) for each in [("c", "c"), ("c\n",), (), ("e",)]),
        )


def test_values_of_a_template_are_parameters_too() -> None:
    parser = Counting()
    texts = PreparedShapes(parser)
    text = "SELECT ?v { ?o <urn:by> $s ; <urn:at> $t ; <urn:value> ?v FILTER(?v > $v && $w = ?o) }"
    forms = [("<urn:{}>", '"a{}"'), ('"{}"^^<http://www.w3.org/2001/XMLSchema#integer>', "<http://a/{}>")]
    for one, other in forms:
        for number in range(5):
            terms = (f"<urn:s{number}>", other.format(number), '"7"', one.format(number))
            agree(texts, ShapeRequest(text, True, values=tuple(zip("stvw", terms, strict=True))))
    assert parser.count < 4 * len(forms)
    agree(texts, ShapeRequest(text, True, values=tuple(zip("stvw", ["<urn:s>"] * 4, strict=True))))
    agree(
        texts, ShapeRequest(text, True, values=tuple(zip("stvw", ['"\\n"', "<urn:s>", "<urn:s>", '""'], strict=True)))
    )


def test_what_cannot_be_is_said_each_time() -> None:
    texts = PreparedShapes()
    agree(texts, *[ShapeRequest("ASK { ?s <urn:p> }", False), ShapeRequest("ASK { ?s <urn:p> <x y> }", False)] * 2)


def test_a_bounded_number_is_remembered() -> None:
    parser = Counting()
    texts = PreparedShapes(parser, size=3)
    asked = [ShapeRequest(f"ASK {{ ?s <urn:{number}> 1 }}", False) for number in range(9)]
    for each in asked:
        texts.lift(each)
    before = parser.count
    for each in asked[-3:]:
        texts.lift(each)
    assert parser.count == before
    texts.lift(asked[0])
    assert parser.count > before


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_generated_texts_come_out_as_the_parser_has_them(seed: int, solutions: bool) -> None:
    random, texts = Random(seed), PreparedShapes()
    agree(texts, *(ShapeRequest(sparql(random), solutions) for _ in range(30)))


@settings(max_examples=60, deadline=None)
@given(st.lists(selects() | asks(), min_size=1, max_size=2), st.randoms(use_true_random=False))
def test_any_query_whose_constants_are_swapped_comes_out_as_the_parser_has_it(
    questions: list[Question], random: Random
) -> None:
    texts = PreparedShapes()
    for question in questions:
        pieces = cut_request(ShapeRequest(question.text, True))
        swapped = [random.choice(_of_kind(pieces, kind)) for kind in pieces.kinds]
        agree(texts, pieces.asked, pieces.refilled(swapped), pieces.changed(pieces.open), pieces.asked)


def _of_kind(pieces: QuerySkeleton, kind: str) -> list[str]:
    return [core for each, core in zip(pieces.kinds, pieces.cores, strict=True) if each == kind]


def of_filter(document: dict[str, Any]) -> ShapeRequest:
    form, terms = parse_form(document)
    return ShapeRequest(None, False, form=form, values=tuple(("", term) for term in terms))


def test_filters_that_differ_in_constants_are_lifted_once() -> None:
    counting = Counting()
    texts = PreparedShapes(counting)
    given = [
        of_filter({"filter": [constraint("ex:a", "=", f"x{at}"), constraint("ex:b", ">", at), bag(f"{at}", "y")]})
        for at in range(20)
    ]
    agree(texts, *given)
    assert counting.count <= 3


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_remembered_of_filters_is_what_they_mean(seed: int) -> None:
    random = Random(seed)
    texts = PreparedShapes()
    agree(texts, *(of_filter(generated.document(random)) for _ in range(12)))


def test_what_is_known_is_no_constant_like_others() -> None:
    seen = list[str]()

    def make(asked: ShapeRequest) -> LiftedShape:
        seen.append(asked.text or "")
        return lift_request(asked)

    texts = PreparedShapes(make, known=lambda end: "<urn:known>".endswith(end))
    for name in ("<urn:a>", "<urn:b>", "<urn:known>", "ex:known", "<urn:c>", "ex:n"):
        assert (
            texts.lift(ShapeRequest(f"PREFIX ex: <urn:> ASK {{ ?s ?p {name} }}", False))
            .constants[0]
            .startswith("<urn:")
        )
    real = dict.fromkeys(text.split()[-2] for text in seen if "tw-hole" not in text)
    assert [*real] == ["<urn:a>", "<urn:known>", "ex:known", "ex:n"]


def constraint(attribute: str, op: str, value: object) -> dict[str, object]:
    return {"attribute": attribute, "op": op, "value": value}


def bag(*texts: str) -> dict[str, object]:
    return constraint("ex:c", "#>/*<", [*texts])
