"""Documents: what is taken, and what is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from tests.matching.filters.worlds import EX, constraint
from triplewire.matching.filters import (
    BAG_ELEMENTS,
    FILTER_CONSTRAINTS,
    FILTERS,
    RELATIONS,
    AttributeFilter,
    Constraint,
    parse_filters,
)
from triplewire.model.errors import InvalidField
from triplewire.model.terms import XSD

A = f"<{EX}a>"


def one(**fields: object) -> Constraint:
    document = {"prefixes": {"ex": EX}, "filter": [{"attribute": "ex:a", "op": "=", "value": 1, **fields}]}
    ((found,),) = (each.constraints for each in parse_filters(document))
    return found


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (5, f'"5"^^<{XSD}integer>'),
        (-5.5, f'"-5.5"^^<{XSD}double>'),
        (True, f'"true"^^<{XSD}boolean>'),
        ('a "text"\n', '"a \\"text\\"\\n"'),
        ({"@id": "ex:b"}, f"<{EX}b>"),
        ({"@id": "urn:b"}, "<urn:b>"),
        ({"@value": "b"}, '"b"'),
        ({"@value": "1", "@type": XSD + "byte"}, f'"1"^^<{XSD}byte>'),
        ({"@value": "b", "@language": "fr"}, '"b"@fr'),
    ],
)
def test_values_are_terms(value: object, term: str) -> None:
    assert one(value=value) == Constraint(A, RELATIONS["="], ((term,),))


def test_names_may_be_written_out_or_with_a_prefix() -> None:
    assert one(op="@>", value="ex:b") == one(op="@>", value=f"{EX}b") == one(op="@>", value={"@id": "ex:b"})
    assert one(attribute={"@id": "ex:a"}) == one(attribute=f"{EX}a")


def test_a_fact_is_a_property_and_a_term() -> None:
    assert one(op="@*", value=["ex:p", "ex:b"]).operands == ((f"<{EX}p>", f"<{EX}b>"),)
    assert one(op="@*", value=["ex:p", 5]).operands == ((f"<{EX}p>", f'"5"^^<{XSD}integer>'),)


def test_a_bag_has_an_operand_for_each_element_and_equality_unless_told_otherwise() -> None:
    assert one(op="#>", value=[1, 1]) == one(op="super_bag/equal", value=[1, 1])
    assert len(one(op="#>", value=[1, 1]).operands) == 2
    assert one(op="#<", value=[]).operands == ()


def test_strict_goes_with_the_relation_of_elements() -> None:
    assert one(op="#>/@>", value=["ex:b"], strict=True).relation == RELATIONS["@>"].strictly()
    assert one(op="@>", value="ex:b", strict=False).relation == RELATIONS["more_specific"]


def test_several_filters_stay_apart() -> None:
    made = constraint(f"{EX}a", "=", 1)
    assert parse_filters({"filters": [[made], []], "kind": "signal"}) == (AttributeFilter((one(),)), AttributeFilter())


@pytest.mark.parametrize(
    ("fields", "place", "said"),
    [
        ({"op": "=>"}, "filter[0].op", "'=>' is no operator; there are =, !="),
        ({"op": "#>/=>", "value": []}, "filter[0].op", "is no operator"),
        ({"op": "=/@>"}, "filter[0].op", "is no operator"),
        ({"op": "#>/#>", "value": []}, "filter[0].op", "is no operator"),
        ({"op": 5}, "filter[0].op", "is no operator"),
        ({"op": ["="]}, "filter[0].op", "is no operator"),
        ({"attribute": "a"}, "filter[0].attribute", "no absolute IRI"),
        ({"attribute": "no:a b"}, "filter[0].attribute", "there is no prefix 'no'"),
        ({"attribute": 5}, "filter[0].attribute", "must be an IRI"),
        ({"value": None}, "filter[0].value", "must be a string, a number"),
        ({"value": [1]}, "filter[0].value", "must be a string, a number"),
        ({"value": {"@value": 5}}, "filter[0].value", "must be a string, a number"),
        ({"value": {"@value": "5", "@index": "x"}}, "filter[0].value", "not one with @index"),
        ({"value": {"@value": "5", "@type": "x y"}}, "filter[0].value.@type", "no absolute IRI"),
        ({"value": {"@value": "5", "@language": "!"}}, "filter[0].value", "language"),
        ({"op": "<", "value": True}, "filter[0].value", "must be a number, a string, a date or a time"),
        ({"op": "<", "value": {"@id": "ex:a"}}, "filter[0].value", "must be a number"),
        ({"op": "<", "value": {"@value": "x", "@type": XSD + "date"}}, "filter[0].value", "must be a number"),
        ({"op": ">*", "value": 5}, "filter[0].value", "must be a string, not"),
        ({"op": "@>", "value": 5}, "filter[0].value", "must be an IRI"),
        ({"op": "@>", "value": "no iri"}, "filter[0].value", "no absolute IRI"),
        ({"op": "@*", "value": "ex:b"}, "filter[0].value", "must be a property and"),
        ({"op": "@*", "value": [5, "ex:b"]}, "filter[0].value[0]", "must be an IRI"),
        ({"op": "#>", "value": 5}, "filter[0].value", "must be a list"),
        ({"op": "#>", "value": [1, [2]]}, "filter[0].value[1]", "must be a string, a number"),
        ({"op": "#>", "value": [1] * (BAG_ELEMENTS + 1)}, "filter[0].value", "over the limit of 32"),
        ({"op": "#>/@>", "value": ["ex:b", 5]}, "filter[0].value[1]", "must be an IRI"),
        ({"strict": True}, "filter[0].strict", "= has no strict variant; @> and @< have"),
        ({"strict": "yes"}, "filter[0].strict", "must be true or false"),
        ({"strikt": True}, "filter[0]", "has no strikt; it has attribute, op, value, strict"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(fields: dict[str, object], place: str, said: str) -> None:
    with pytest.raises(InvalidField) as refused:
        one(**fields)
    assert refused.value.field == place
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ([], "filter"),
        ({}, "filter"),
        ({"filter": [], "filters": [[]]}, "filter"),
        ({"filter": {}}, "filter"),
        ({"filter": [5]}, "filter[0]"),
        ({"filter": [{"attribute": "urn:a", "op": "="}]}, "filter[0]"),
        ({"filters": []}, "filters"),
        ({"filters": [{}]}, "filters[0]"),
        ({"filters": [[], [constraint("urn:a", "?", 1)]]}, "filters[1][0].op"),
        ({"filters": [[]] * (FILTERS + 1)}, "filters"),
        ({"filter": [constraint("urn:a", "=", 1)] * (FILTER_CONSTRAINTS + 1)}, "filter"),
        ({"filter": [], "prefixes": ["ex"]}, "prefixes"),
        ({"filter": [], "prefixes": {"ex": 5}}, "prefixes"),
    ],
)
def test_so_is_the_frame_around_it(document: Any, place: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidField) as refused:
        parse_filters(document)
    assert refused.value.field == place
