"""The workload `residual`: questions about one event that no index decides. Each names one key, so that an index can
say for which events they are worth asking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from triplewire.bench.match_mixed import SKELETONS, Constants
from triplewire.bench.match_skeletons import Reports, Skeleton
from triplewire.bench.match_templates import Question, Template
from triplewire.model import Kind

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
    lambda its: f'SELECT * {{ {_above(its)} . {its.pattern("label", key="$i0")} FILTER(CONTAINS(STR(?l), "unit")) }}',
    lambda its: f"SELECT * {{ {its.patterns(key='$i0')} FILTER EXISTS {{ {_value(its)} FILTER(?v > $n1) }} }}",
    lambda its: f"SELECT * {{ {its.patterns('value', key='$i0')} FILTER(?v * 2 > $n1 + ?v) }}",
    lambda its: f"SELECT (AVG(?v) AS ?mean) {{ {its.patterns('value', key='$i0')} }} HAVING (AVG(?v) > $n1)",
)
"""Regular expression, `OPTIONAL`, `NOT EXISTS`, a maximum, `MINUS`, `UNION`, a part of a string, `EXISTS`, arithmetic
and a mean."""

PASSING = 0.47
"""How many times as often as an event has one given key a subscription matches, in the mean over the structures."""


@cache
def _templates() -> Sequence[Template]:
    kinds = tuple(Kind)
    return [
        Template(text(Skeleton(number)), kinds[(number + place) % len(kinds)], plain=False)
        for number in range(SKELETONS)
        for place, text in enumerate(TEXTS)
    ]


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
