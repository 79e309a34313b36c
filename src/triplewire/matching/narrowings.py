"""Narrowings: a subscription that is about some events alone, by what was said of them or by their vocabulary.

They become patterns and filters of the query itself, so that everything behind treats them like any others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from triplewire.model.terms import RDF_TYPE, TW, literal
from triplewire.sparql import Apply, Const, Expression, Pattern, Query, Var
from triplewire.sparql.algebra import Basic, Exists, Filter, Join, Operator, Select

HEADERS = ("stream", "source", "application")

EVERYTHING = Query("ask", Basic())
"""The query that every event answers."""

_EVENT = Var(".~event")
_SUBJECT, _PREDICATE, _OBJECT = Var(".~subject"), Var(".~predicate"), Var(".~object")


@dataclass(frozen=True)
class Narrowing:
    """Of each field any value will do; a field without values says nothing. `vocabulary` has beginnings of IRIs: of
    some predicate or class of the event."""

    stream: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[tuple[str, ...], ...]:
        return self.stream, self.source, self.application, self.vocabulary


NONE = Narrowing()


def narrowed(query: Query, narrowing: Narrowing, *, solutions: bool) -> Query:
    """The query, with the same solutions on the events that are meant and with none on others. Without `solutions` it
    is enough that it has some where it had some."""
    if isinstance(query.where, Select):
        return replace(query, where=replace(query.where, inner=_narrowed(query.where.inner, narrowing, solutions)))
    return replace(query, where=_narrowed(query.where, narrowing, solutions))


def _narrowed(operator: Operator, narrowing: Narrowing, solutions: bool) -> Operator:
    operator = reduce(Join, _headers(narrowing), operator)
    if not narrowing.vocabulary:
        return operator
    # Solutions must not be counted once for each triple that is of the vocabulary.
    met = _of_vocabulary(narrowing.vocabulary)
    return Filter(operator, (Exists(met),)) if solutions else Join(operator, met)


def _headers(narrowing: Narrowing) -> Iterator[Operator]:
    """An event has each of them once, or not at all."""
    for name in HEADERS:
        terms = [Const(literal(each)) for each in getattr(narrowing, name)]
        predicate, value = Const(f"<{TW}{name}>"), Var(f".~{name}")
        if len(terms) == 1:
            yield Basic((Pattern(_EVENT, predicate, terms[0]),))
        elif terms:
            yield Filter(Basic((Pattern(_EVENT, predicate, value),)), (Apply("in", (value, *terms)),))


def _of_vocabulary(beginnings: Sequence[str]) -> Operator:
    classed = Apply("=", (_PREDICATE, Const(RDF_TYPE)))
    ways = [_begins(_PREDICATE, each) for each in beginnings]
    ways += [Apply("&&", (classed, Apply("&&", (_named(), _begins(_OBJECT, each))))) for each in beginnings]
    return Filter(Basic((Pattern(_SUBJECT, _PREDICATE, _OBJECT),)), (reduce(_or, ways),))


def _named() -> Expression:
    return Apply("isiri", (_OBJECT,))


def _begins(variable: Var, beginning: str) -> Expression:
    return Apply("strstarts", (Apply("str", (variable,)), Const(literal(beginning))))


def _or(left: Expression, right: Expression) -> Expression:
    return Apply("||", (left, right))
