"""The workload `classes`: filters that ask for what is below a class, in an ontology of 10,000 of them.

The ontology is a tree with three classes below each, eight deep. Four in five subscriptions name a class of the lowest
level, the others one of the level above it. Most events are about a class further up, which has ancestors to look for,
too, and nobody who asks for them; the others are about one of the lowest, and match all who named it or its parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from triplewire.bench.match_draws import below, draw, fraction
from triplewire.bench.match_filters import Filtered, Objects
from triplewire.bench.match_templates import Question, Template
from triplewire.model.terms import RDF_TYPE, XSD

BASE = "http://bench.example/"
CLASSES = 10_000
DEEP = 8

_SUB_CLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
_ABOUT = f"<{BASE}about>"
_WHOLE: int = (3 ** (DEEP + 1) - 1) // 2
"""Classes of the whole tree; the few that are more hang beside others of the lowest level."""
_LOWEST: int = (3**DEEP - 1) // 2
_ABOVE: int = (3 ** (DEEP - 1) - 1) // 2
"""The first class of the lowest level, and of the one above it."""
_OFTEN = 0.8
_LIVELY = 0.1
"""The share of events that match something, where the lowest level has enough classes for that."""
_PARTNERS = _OFTEN + 3 * (1 - _OFTEN)
"""Matches of an event about the lowest level, times its classes, for each subscription."""
_SUBSCRIBED, _HIGH, _EVENTS, _CLASS, _READINGS = 51, 52, 53, 54, 55


def parent(number: int) -> int | None:
    """The class above; None for the one above all."""
    if number >= _WHOLE:
        return _ABOVE + number - _WHOLE
    return (number - 1) // 3 if number else None


def ontology() -> str:
    """As the registry holds it: a triple a line."""
    above = ((number, parent(number)) for number in range(CLASSES))
    return "\n".join(f"{_class(number)}\t{_SUB_CLASS}\t{_class(upper)}" for number, upper in above if upper is not None)


def _class(number: int) -> str:
    return f"<{BASE}class/{number}>"


@lru_cache(maxsize=CLASSES)
def upwards(term: str) -> frozenset[str]:
    """The class and all above it, by going up the tree."""
    return frozenset(map(_class, _up(int(term[1:-1].rpartition("/")[2]))))


def _up(number: int | None) -> Iterator[int]:
    while number is not None:
        yield number
        number = parent(number)


def _holds(terms: Sequence[str], objects: Objects) -> bool:
    return any(terms[0] in upwards(each) for each in objects.get(_ABOUT, ()))


BELOW = Filtered(f'{{"filter": [{{"attribute": "{BASE}about", "op": "@>", "value": {{"@id": "$i0"}}}}]}}', holds=_holds)


@dataclass(frozen=True)
class Classes:
    """Subscriptions name some of the lowest classes, and an event is about one of these with some probability."""

    named: int
    lively: float

    @classmethod
    def of(cls, subscriptions: int, matches: float) -> Classes:
        share = matches / subscriptions
        named = max(3, min(CLASSES - _LOWEST, round(_LIVELY * _PARTNERS / share)))
        return cls(named, min(1.0, share * named / _PARTNERS))

    @property
    def templates(self) -> Sequence[Template]:
        return (BELOW,)

    def question(self, number: int) -> Question:
        lowest, _ = below(draw(_SUBSCRIBED, number), self.named)
        chosen = _LOWEST + lowest
        upper = parent(chosen)
        high = fraction(draw(_HIGH, number)) >= _OFTEN and upper is not None
        return Question(BELOW, (_class(upper if high and upper is not None else chosen),))

    def event(self, number: int) -> tuple[str, str]:
        if fraction(draw(_EVENTS, number)) < self.lively:
            chosen = _LOWEST + below(draw(_CLASS, number), self.named)[0]
        else:
            chosen = below(draw(_CLASS, number), _ABOVE)[0]
        return "bench", _text(number, chosen)


def _text(number: int, chosen: int) -> str:
    value, left = below(draw(_READINGS, number), 1_000_000)
    second, _ = below(left, 86_400)
    this = f"<{BASE}o/{number}>"
    return (
        f"{this}\t{RDF_TYPE}\t<{BASE}Report>\n"
        f"{this}\t{_ABOUT}\t{_class(chosen)}\n"
        f'{this}\t<{BASE}value>\t"{value}"^^<{XSD}integer>\n'
        f"{this}\t<{BASE}unit>\t<{BASE}unit/{value % 7}>\n"
        f'{this}\t<{BASE}at>\t"2026-11-16T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"'
        f"^^<{XSD}dateTime>"
    )
