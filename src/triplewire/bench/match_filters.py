"""Filters as templates, each with a second opinion: plain Python that says whether it holds for an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import permutations
from typing import Any

import orjson

from triplewire.bench.match_templates import SLOT, Template, mark, slotted
from triplewire.matching.filters import document_query
from triplewire.matching.prepared_queries import lift_request
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.matching.shapes import Shape
from triplewire.model import Kind
from triplewire.model.terms import plain

Objects = Mapping[str, Sequence[str]]
"""The objects of each predicate of an event, as terms."""
Holds = Callable[[Sequence[str], Objects], bool]


@dataclass(frozen=True)
class Filtered(Template):
    """A filter as JSON. Its slots stand for what terms are without their signs: addresses and lexical forms."""

    holds: Holds = lambda _terms, _objects: False
    plain: bool = False

    def fields(self, terms: Sequence[str]) -> dict[str, Any]:
        return {"sparql": None, "filter": SLOT.sub(lambda found: plain(terms[int(found[2])]), self.text)}

    def asked(self, terms: Sequence[str]) -> ShapeRequest:
        document = orjson.loads(self.fields(terms)["filter"])
        return ShapeRequest(None, self.kind is Kind.BINDINGS, query=document_query(document))

    @cached_property
    def _lifted(self) -> tuple[Shape, tuple[int | str, ...]]:
        marks = {int(place): mark(kind, place) for kind, place in SLOT.findall(self.text)}
        lifted = lift_request(self.asked([marks[place] for place in sorted(marks)]))
        return lifted.shape, slotted(lifted.constants, {term: place for place, term in marks.items()}, self.text)


def paired(
    bag: str, related: Callable[[Decimal, Decimal], bool], values: Sequence[str], elements: Sequence[str]
) -> bool:
    """A bag operator on numbers, by trying all ways to pair."""
    left, right = ([Decimal(plain(each)) for each in terms] for terms in (values, elements))
    if not left or {"#=": len(left) != len(right), "#<": len(left) > len(right), "#>": len(left) < len(right)}[bag]:
        return False
    if bag == "#>":
        ways = (zip(chosen, right, strict=True) for chosen in permutations(left, len(right)))
    else:
        ways = (zip(left, chosen, strict=True) for chosen in permutations(right, len(left)))
    return any(all(related(value, element) for value, element in way) for way in ways)
