"""Queries: filters of one form are one shape, and what means the same is the same."""

from __future__ import annotations

from random import Random

from tests.matching.filters import generated
from tests.matching.filters.worlds import EX, constraint
from triplewire.matching.filters import document_query
from triplewire.matching.shapes import Shape, lift
from triplewire.sparql import Apply, Conjunction, Family, Param, Var


def shape(*constraints: object) -> Shape:
    return lift(document_query({"prefixes": {"ex": EX}, "filter": list(constraints)}), solutions=False).shape


def test_filters_that_differ_in_values_have_one_shape() -> None:
    assert shape(constraint("ex:a", "@>", "ex:b")) == shape(constraint("ex:a", "@>", "ex:c"))
    assert shape(constraint("ex:a", "#>/@>", ["ex:b"])) == shape(constraint("ex:a", "#>/@>", ["ex:c"]))
    assert shape(constraint("ex:a", "@*", ["ex:p", "ex:b"])) == shape(constraint("ex:a", "@*", ["ex:q", "ex:c"]))


def test_filters_that_differ_otherwise_have_not() -> None:
    base = constraint("ex:a", "@>", "ex:b")
    others = [
        constraint("ex:other", "@>", "ex:b"),
        constraint("ex:a", "@<", "ex:b"),
        constraint("ex:a", "@>", "ex:b", strict=True),
        constraint("ex:a", "@~", "ex:b"),
        constraint("ex:a", "@!~", "ex:b"),
        constraint("ex:a", "#>/@>", ["ex:b"]),
        constraint("ex:a", "#</@>", ["ex:b"]),
        constraint("ex:a", "#>/@>", ["ex:b", "ex:c"]),
    ]
    assert len({shape(each).key for each in (base, *others)}) == len(others) + 1


def test_order_and_repeats_do_not_matter() -> None:
    first, second, third = (
        constraint("ex:a", "<", 5),
        constraint("ex:a", "@>", "ex:b"),
        constraint("ex:b", "#=", [1]),
    )
    assert document_query({"prefixes": {"ex": EX}, "filter": [first, second, third]}) == document_query(
        {"prefixes": {"ex": EX}, "filter": [third, first, second, first]}
    )
    assert document_query({"prefixes": {"ex": EX}, "filters": [[first], [second]]}) == document_query(
        {"prefixes": {"ex": EX}, "filters": [[second], [first], [second]]}
    )


def test_constraints_on_single_values_are_a_conjunction() -> None:
    found = shape(constraint("ex:a", "@<", "ex:b"), constraint("ex:n", "=", 5)).query
    assert isinstance(found, Conjunction)
    assert found.filters == (
        Apply("=", (Var(".1"), Param(0, Family.EXACT))),
        Apply("below", (Param(1, Family.IRI), Var(".3"))),
    )


def test_a_shape_survives_being_stored() -> None:
    random = Random(1)
    for _ in range(50):
        made = lift(document_query(generated.document(random)), solutions=False).shape
        assert Shape.from_value(made.to_value()) == made


def test_equality_with_an_iri_or_a_string_is_a_constant_in_the_pattern() -> None:
    found = shape(constraint("ex:a", "=", "text")).query
    assert isinstance(found, Conjunction)
    assert (found.patterns[0].object, found.filters) == (Param(0), ())
    assert shape(constraint("ex:a", "=", {"@id": "ex:b"})).query == found
    assert shape(constraint("ex:a", "=", 5)).query != found
