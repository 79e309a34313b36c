"""The workloads `mixed`, `distinct` and `everything`: ten structures for each skeleton of events, with equality, `IN`,
ranges of numbers and times, prefixes, tests of what a term is, and streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from triplewire.bench.match_draws import draw, fraction
from triplewire.bench.match_skeletons import (
    STREAMS,
    Reports,
    Skeleton,
    key_term,
    label_term,
    number_term,
    time_term,
)
from triplewire.bench.match_templates import Question, Template
from triplewire.model import Kind
from triplewire.model.terms import XSD

SKELETONS = 10
ACCEPTING = 20
"""One subscription in so many of `everything` accepts every event."""

_FIRST, _SECOND = 42, 43
_HUNDRED = 100_000_000
_TESTS = ("isIRI(?l)", "isLiteral(?l)", 'LANG(?l) = "fr"', f"DATATYPE(?v) = <{XSD}decimal>")

ALL = Template("SELECT * { ?s ?p ?o }")


@dataclass(frozen=True)
class Constants:
    """What the subscription of a number draws its terms from."""

    number: int
    keys: int

    def key(self, turn: int = 0) -> str:
        return key_term((draw(_FIRST, self.number) + turn) % self.keys)

    def millionths(self) -> int:
        return draw(_SECOND, self.number) % _HUNDRED

    def value(self) -> str:
        return number_term(self.millionths())

    def second(self) -> str:
        return time_term(draw(_SECOND, self.number) % 86_400)

    def label(self) -> int:
        return draw(_SECOND, self.number) % self.keys


Structure = tuple[Callable[[Skeleton], str], Callable[[Constants], tuple[str, ...]]]
"""How to write a text for a skeleton, and the terms that fill its slots."""


def _alone(constants: Constants) -> tuple[str, ...]:
    return (constants.key(),)


def _with_value(constants: Constants) -> tuple[str, ...]:
    return constants.key(), constants.value()


def _with_half(constants: Constants) -> tuple[str, ...]:
    """An interval that is half of all there are."""
    low = constants.millionths() // 2
    return constants.key(), number_term(low), number_term(low + _HUNDRED // 2)


def _with_keys(constants: Constants) -> tuple[str, ...]:
    return constants.key(), constants.key(1), constants.value()


def _with_time(constants: Constants) -> tuple[str, ...]:
    return constants.key(), constants.second()


def _high(constants: Constants) -> tuple[str, ...]:
    """A threshold that values pass as seldom as they have a key and pass a filter."""
    above = fraction(draw(_SECOND, constants.number)) * _HUNDRED / constants.keys
    return (number_term(_HUNDRED - round(above)),)


def _with_stream(constants: Constants) -> tuple[str, ...]:
    return constants.key(), f'"{STREAMS[constants.millionths() % len(STREAMS)]}"'


STRUCTURES: Sequence[Structure] = (
    (lambda its: its.patterns("value", "time", "class", key="$i0"), _alone),
    (lambda its: f"{its.patterns('value', key='$i0')} FILTER(?v > $n1)", _with_value),
    (lambda its: f"{its.patterns('value', key='$i0')} FILTER(?v >= $n1 && ?v < $n2)", _with_half),
    (lambda its: f"{its.patterns('value')} FILTER(?s IN ($i0, $i1)) FILTER(?v < $n2)", _with_keys),
    (lambda its: f"{its.patterns('time', key='$i0')} FILTER(?t >= $t1)", _with_time),
    (lambda its: f"{its.patterns('label')} FILTER(STRSTARTS(?l, $s0))", lambda its: (f'"{its.label():06}"',)),
    (lambda its: its.patterns("label", "time", label="$s0"), lambda its: (label_term(its.label(), 0),)),
    (lambda its: f"{its.patterns('label', 'value', key='$i0')} FILTER({_TESTS[its.number % 4]})", _alone),
    (lambda its: f"{its.patterns('value')} FILTER(?v > $n0)", _high),
    (lambda its: its.patterns("class", "time", key="$i0"), _with_stream),
)
PASSING = 0.6
"""How many times as often as an event has one given key a subscription matches, in the mean over the structures."""
STREAMED = 9
"""Which of them listens to one stream."""


@cache
def templates(skeletons: int) -> Sequence[Template]:
    """Ten for each skeleton, asked for in all three ways."""
    return [*_templates(skeletons)]


def _templates(skeletons: int) -> Iterator[Template]:
    kinds = tuple(Kind)
    for number in range(skeletons):
        for place, (text, _) in enumerate(STRUCTURES):
            kind = kinds[(number + place) % len(kinds)]
            yield Template(f"SELECT * {{ {text(Skeleton(number))} }}", kind, streamed=place == STREAMED)


@dataclass(frozen=True)
class Mixed:
    """Subscriptions of every structure in turn."""

    reports: Reports

    @classmethod
    def of(cls, subscriptions: int, matches: float) -> Mixed:
        return cls(Reports.of(SKELETONS, matches / subscriptions, PASSING))

    @property
    def templates(self) -> Sequence[Template]:
        return templates(self.reports.skeletons)

    def question(self, number: int) -> Question:
        made = self.templates
        place = number % len(made)
        _, terms = STRUCTURES[place % len(STRUCTURES)]
        return Question(made[place], terms(Constants(number, self.reports.keys)))

    def event(self, number: int) -> tuple[str, str]:
        return self.reports.event(number)


def distinct(subscriptions: int, matches: float) -> Mixed:
    """As many skeletons as it takes for every subscription to have a structure of its own."""
    return Mixed(Reports.of(-(-subscriptions // len(STRUCTURES)), matches / subscriptions, PASSING))


@dataclass(frozen=True)
class Everything:
    """`mixed`, but for those that accept every event."""

    others: Mixed

    @classmethod
    def of(cls, subscriptions: int, matches: float) -> Everything:
        return cls(Mixed.of(subscriptions, matches))

    @property
    def templates(self) -> Sequence[Template]:
        return (*self.others.templates, ALL)

    def question(self, number: int) -> Question:
        # One further in every round of structures, so that none of them is left out.
        turn = number + number // len(self.others.templates)
        return Question(ALL, ()) if turn % ACCEPTING == 0 else self.others.question(number)

    def event(self, number: int) -> tuple[str, str]:
        return self.others.event(number)
