"""Ontologies: what they say of two names, as a look-up in the relation `closure`.

It has the columns `relation`, `lower` and `upper`, all of them terms or names as text:

    below       a class or property; another that is over it, or equivalent
    strictly    the same, but for equivalents
    equivalent  a class, property or individual; another that means the same
    is_a        an individual; a class that it is of
    <…>         for the property of this address: a subject; an object

No name stands beside itself there. To be below oneself, or equivalent to oneself, needs no ontology.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from triplewire.model.terms import is_iri
from triplewire.sparql.algebra import Apply, Const, Expression, Family, Param, Var
from triplewire.sparql.compile.computed import Truth
from triplewire.sparql.compile.sql import Sql, case, equal, every, some, text
from triplewire.sparql.compile.values import Value

CLOSURE = "closure"
COLUMNS = ("relation", "lower", "upper")
HAS = "has"
REFLEXIVE: Mapping[str, bool] = {"below": True, "strictly": False, "equivalent": True, "is_a": False}
"""The relations between two names, and whether a name is in it with itself."""


def _related(relation: str) -> Callable[[Value, Value], Value]:
    """An error for what is no IRI, so that it is neither in the relation nor not."""

    def made(lower: Value, upper: Value) -> Value:
        found = _found(text(relation), lower.text(), upper.text())
        same = [equal(lower.text(), upper.text())] if REFLEXIVE[relation] else []
        return Truth(case((every(lower.among(Family.IRI), upper.among(Family.IRI)), some(*same, found))))

    return made


def _has(subject: Value, property_: Value, object_: Value) -> Value:
    found = _found(property_.text(), subject.text(), object_.text())
    return Truth(case((every(subject.among(Family.IRI), property_.among(Family.IRI)), found)))


def _found(*sought: Sql) -> Sql:
    """Names of columns are not qualified, and no columns to those who look for what the expression reads."""
    names = [exp.to_identifier(name) for name in COLUMNS]
    rows = exp.Select(expressions=[exp.Tuple(expressions=names)]).from_(CLOSURE, copy=False)
    return exp.In(this=exp.Tuple(expressions=list(sought)), query=rows.subquery(copy=False))


ONTOLOGICAL: Mapping[str, Callable[..., Value]] = {**{name: _related(name) for name in REFLEXIVE}, HAS: _has}
"""The functions, by the names of their relations: of two names, or of subject, property and object."""


@dataclass(frozen=True)
class LookUp:
    """A condition that says nothing but that the value of a variable is in a relation with constants."""

    variable: str
    relation: str | None
    """None where the property is a constant, too."""
    terms: tuple[Expression, Expression, Expression]
    """What is sought in each of the columns."""

    @property
    def reflexive(self) -> bool:
        return self.relation is not None and REFLEXIVE[self.relation]


def look_up(condition: Expression) -> LookUp | None:
    """The condition as one; None if it is another."""
    match condition:
        case Apply("has", (Var(name) as subject, property_, object_)) if _address(property_) and _constant(object_):
            return LookUp(name, None, (property_, subject, object_))
        case Apply(op, (Var(name) as lower, upper)) if op in REFLEXIVE and _address(upper):
            return LookUp(name, op, (Const(op), lower, upper))
        case Apply(op, (lower, Var(name) as upper)) if op in REFLEXIVE and _address(lower):
            return LookUp(name, op, (Const(op), lower, upper))
    return None


def _constant(expression: Expression) -> bool:
    return isinstance(expression, Const | Param)


def _address(expression: Expression) -> bool:
    """Is it a constant that is known to be an IRI?"""
    if isinstance(expression, Const):
        return is_iri(expression.term)
    return isinstance(expression, Param) and expression.family is Family.IRI
