"""The algebra of a query, as plain values: what the parser makes and the compiler reads.

A node of a pattern is a variable, a constant term, or a parameter (a constant that was lifted out, so that
queries of one shape share one plan). Expressions are trees of `Apply` over the same three leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias


class Family(StrEnum):
    """The kinds of term that operators tell apart. A literal whose text its datatype does not allow is OTHER."""

    IRI = "iri"
    STRING = "string"
    TAGGED = "tagged"
    EXACT = "exact"
    """Integers, decimals and what derives from them."""
    FLOAT = "float"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    DATETIME = "dateTime"
    DATE = "date"
    OTHER = "other"
    """Literals of datatypes that we do not know, ill-typed ones, and triple terms."""


@dataclass(frozen=True)
class Var:
    name: str


@dataclass(frozen=True)
class Const:
    """A term in canonical N-Triples text."""

    term: str


@dataclass(frozen=True)
class Param:
    """The constant number `index` of the table of constants.

    `family` may say what every constant in its place is; the plan is then simpler and faster. A constant of
    another family in that place would give wrong answers, so the family is a part of the shape.
    """

    index: int
    family: Family | None = None


Node: TypeAlias = Var | Const | Param

UNBOUND = Var("")
"""Stands in a filter for a variable that is out of its scope: to use its value is an error."""


@dataclass(frozen=True)
class Apply:
    """An operator or function applied to arguments. `op` is the SPARQL spelling in lower case: `<`, `&&`, `regex`."""

    op: str
    args: tuple[Expression, ...]


Expression: TypeAlias = Var | Const | Param | Apply


@dataclass(frozen=True)
class Pattern:
    """One triple pattern. `graph` is None for the default graph, which is the union of all events."""

    subject: Node
    predicate: Node
    object: Node
    graph: Node | None = None


@dataclass(frozen=True)
class Query:
    """Basic graph patterns, all of which must match, and filters, all of which must be true."""

    form: Literal["select", "ask"]
    patterns: tuple[Pattern, ...]
    filters: tuple[Expression, ...] = ()
    projection: tuple[str, ...] = ()
    """Variable names in the order of the result; empty for `ask`."""
    distinct: bool = False
    limit: int | None = None
    offset: int = 0


def parameters(query: Query) -> frozenset[int]:
    """The numbers of the parameters that a query has, in its patterns and filters."""
    nodes = [node for each in query.patterns for node in (each.subject, each.predicate, each.object, each.graph)]
    leaves = [leaf for each in query.filters for leaf in _leaves(each)]
    return frozenset(each.index for each in (*nodes, *leaves) if isinstance(each, Param))


def _leaves(expression: Expression) -> Iterator[Node]:
    if isinstance(expression, Apply):
        for each in expression.args:
            yield from _leaves(each)
    else:
        yield expression
