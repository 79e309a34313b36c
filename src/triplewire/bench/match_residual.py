"""The workload `residual`: questions about one event that no index decides. Each names one key, so that an index can
say for which events they are worth asking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from operator import gt, lt

import orjson

from triplewire.bench.match_filters import Filtered, Objects, paired
from triplewire.bench.match_mixed import SKELETONS, Constants
from triplewire.bench.match_skeletons import Reports, Skeleton
from triplewire.bench.match_templates import Question, Template
from triplewire.model import Kind
from triplewire.model.terms import XSD, literal

Writing = Callable[[Skeleton], str]


def _above(its: Skeleton) -> str:
    return f"{its.patterns('value', key='$i0')} FILTER(?v > $n1)"


def _value(its: Skeleton) -> str:
    """The value alone, on whatever the rest has found."""
    return its.pattern("value", key="$i0")


TEXTS: Sequence[Writing] = (
    lambda its: (
        f"SELECT * {{ {its.patterns('label', 'value', key='$i0')} "
        f'FILTER(REGEX(STR(?l), "^.*{its.number % 5}[0-9]?-unit$")) FILTER(?v > $n1) }}'
    ),
    lambda its: (
        f"SELECT * {{ {its.patterns(key='$i0')} OPTIONAL {{ {_value(its)} FILTER(?v > $n1) }} FILTER(!BOUND(?v)) }}"
    ),
    lambda its: f"SELECT * {{ {its.patterns(key='$i0')} FILTER NOT EXISTS {{ {_value(its)} FILTER(?v > $n1) }} }}",
    lambda its: (
        f"SELECT ?o (MAX(?v) AS ?most) {{ {its.patterns('value', key='$i0')} }} GROUP BY ?o HAVING (MAX(?v) > $n1)"
    ),
    lambda its: f"SELECT * {{ {its.patterns('time', key='$i0')} MINUS {{ {_above(its)} }} }}",
    lambda its: f"SELECT * {{ {{ {_above(its)} }} UNION {{ {its.patterns('label', key='$i0')} FILTER(isIRI(?l)) }} }}",
    lambda its: f"SELECT * {{ {its.patterns(key='$i0')} FILTER EXISTS {{ {_value(its)} FILTER(?v > $n1) }} }}",
    lambda its: f"SELECT (AVG(?v) AS ?mean) {{ {its.patterns('value', key='$i0')} }} HAVING (AVG(?v) > $n1)",
)
"""Regular expression, `OPTIONAL`, `NOT EXISTS`, a maximum, `MINUS`, `UNION`, `EXISTS` and a mean."""

_LOW = "0.500000"
BAGS: Sequence[tuple[str, Callable[[Decimal, Decimal], bool], Sequence[str]]] = (
    ("#=/>", gt, ("$n1",)),
    ("#</<", lt, ("$n1", _LOW)),
)
"""Bags of values: the operator, what it means, and the elements."""


def _bag(its: Skeleton, op: str, related: Callable[[Decimal, Decimal], bool], elements: Sequence[str]) -> Filtered:
    """A key, and a bag of the values."""
    key, value = its.predicate("key"), its.predicate("value")
    operands = [{"@value": each, "@type": f"{XSD}decimal"} for each in elements]
    asked = [
        {"attribute": key[1:-1], "op": "=", "value": {"@id": "$i0"}},
        {"attribute": value[1:-1], "op": op, "value": operands},
    ]

    def holds(terms: Sequence[str], objects: Objects) -> bool:
        wanted = [terms[1] if each == "$n1" else literal(each, f"{XSD}decimal") for each in elements]
        return terms[0] in objects.get(key, ()) and paired(op[:2], related, objects.get(value, ()), wanted)

    return Filtered(orjson.dumps({"filter": asked}).decode(), holds=holds)


PASSING = 0.47
"""How many times as often as an event has one given key a subscription matches, in the mean over the structures."""


@cache
def _templates() -> Sequence[Template]:
    return [each for number in range(SKELETONS) for each in _of(Skeleton(number))]


def _of(its: Skeleton) -> Iterator[Template]:
    kinds = tuple(Kind)
    for place, text in enumerate(TEXTS):
        yield Template(text(its), kinds[(its.number + place) % len(kinds)], plain=False)
    for bag in BAGS:
        yield _bag(its, *bag)


@dataclass(frozen=True)
class Residual:
    """Subscriptions of every structure in turn."""

    reports: Reports

    @property
    def templates(self) -> Sequence[Template]:
        return _templates()

    def question(self, number: int) -> Question:
        constants = Constants(number, self.reports.keys)
        return Question(self.templates[number % len(self.templates)], (constants.key(), constants.value()))

    def event(self, number: int) -> tuple[str, str]:
        return self.reports.event(number)


def residual(subscriptions: int, matches: float) -> Residual:
    return Residual(Reports.of(SKELETONS, matches / subscriptions, PASSING))
