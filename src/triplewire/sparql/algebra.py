"""The SPARQL algebra as frozen values: terms, expressions, property paths, operators and whole queries.

A node of a pattern is a variable, a constant term, or a parameter: a constant that was lifted out, so that queries of
one shape share one plan. Expressions are trees of `Apply` over the same three leaves. Operators are those of the SPARQL
algebra; each yields a bag of solutions.

Query text cannot name two kinds of variable: a name that starts with `_:` is a blank node of the query, one that starts
with `.` was generated while translating. `*` selects neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from triplewire.model.terms import TW


class Family(StrEnum):
    """The families of terms that operators distinguish. A literal whose text does not fit its datatype is OTHER."""

    IRI = "iri"
    BLANK = "blank"
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
    """Literals of unknown datatypes, ill-typed ones, and triple terms."""


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

    `family` may state the family of every constant in its place, which makes the plan simpler and faster. A constant of
    another family would give wrong answers, so the family is a part of the shape.
    """

    index: int
    family: Family | None = None


Node: TypeAlias = Var | Const | Param

UNBOUND = Var("")
"""The variable that replaces, in a filter, one that is out of scope: its value is an error."""


@dataclass(frozen=True)
class Apply:
    """An operator or function applied to arguments. `op` is the SPARQL spelling in lower case (`<`, `&&`, `regex`), or,
    for a cast, the IRI of the type in brackets."""

    op: str
    args: tuple[Expression, ...]


VOLATILE = frozenset({"rand", "uuid", "struuid", "bnode"})
"""Functions that return another value at each call."""


@dataclass(frozen=True)
class Exists:
    """EXISTS: whether the pattern has a solution once the values of the current solution are substituted."""

    inner: Operator


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over a group: `count`, `sum`, `min`, `max`, `avg`, `sample`, `group_concat`. `count(*)` has no
    argument."""

    op: str
    argument: Expression | None = None
    distinct: bool = False
    separator: str = " "


Expression: TypeAlias = Var | Const | Param | Apply | Exists


@dataclass(frozen=True)
class Pattern:
    """A triple pattern. `graph` is None for the active graph."""

    subject: Node
    predicate: Node
    object: Node
    graph: Node | None = None

    @property
    def triple(self) -> tuple[Node, Node, Node]:
        return self.subject, self.predicate, self.object


STREAM_PREDICATE = Const(f"<{TW}stream>")
HEADER_PREDICATES: dict[str, tuple[str, int]] = {
    STREAM_PREDICATE.term: ("stream", -1),
    f"<{TW}source>": ("source", -2),
    f"<{TW}application>": ("application", -3),
    f"<{TW}time>": ("time", -4),
    f"<{TW}received>": ("received", -5),
}
"""Predicates whose triples are not stored but derived from an event's headers: the header's column, and the number
that represents the triple in a solution, where stored quads have their own."""


def header_column(pattern: Pattern) -> tuple[str, int] | None:
    """Return column and number of a pattern over a header; None for other patterns. Inside GRAPH triples are stored."""
    if pattern.graph is not None or not isinstance(pattern.predicate, Const):
        return None
    return HEADER_PREDICATES.get(pattern.predicate.term)


@dataclass(frozen=True)
class Link:
    """A single step along a predicate."""

    predicate: Const


@dataclass(frozen=True)
class Inverse:
    path: Path


@dataclass(frozen=True)
class Chain:
    """A sequence path: `a/b/c`."""

    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Either:
    """An alternative path: `a|b`."""

    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Repeat:
    """`path?` (at least 0, at most once), `path*` (at least 0) and `path+` (at least 1): pairs count once."""

    path: Path
    least: Literal[0, 1]
    once: bool = False


@dataclass(frozen=True)
class Negated:
    """A negated property set: a step forward along any predicate but these; and, if `backward` is not None, backward
    along any but those."""

    forward: tuple[Const, ...] | None
    backward: tuple[Const, ...] | None


Path: TypeAlias = Link | Inverse | Chain | Either | Repeat | Negated


@dataclass(frozen=True)
class Basic:
    """A basic graph pattern: triple patterns that must all match. Without patterns it has the one empty solution."""

    patterns: tuple[Pattern, ...] = ()


@dataclass(frozen=True)
class Reach:
    """A path pattern: two nodes and the path between them."""

    subject: Node
    path: Path
    object: Node
    graph: Node | None = None


@dataclass(frozen=True)
class Join:
    left: Operator
    right: Operator


@dataclass(frozen=True)
class LeftJoin:
    """OPTIONAL, with the filters directly in its group."""

    left: Operator
    right: Operator
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Union:
    left: Operator
    right: Operator


@dataclass(frozen=True)
class Minus:
    left: Operator
    right: Operator


@dataclass(frozen=True)
class Filter:
    """A filter: all conditions must be true; an error is not true."""

    inner: Operator
    conditions: tuple[Expression, ...]


@dataclass(frozen=True)
class Extend:
    """BIND, and expressions of SELECT: an error leaves the variable unbound."""

    inner: Operator
    name: str
    expression: Expression


@dataclass(frozen=True)
class Values:
    """VALUES: solutions that the query states; None is UNDEF."""

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Graph:
    """GRAPH: the inner operator on one named graph, or on each."""

    name: Node
    inner: Operator


@dataclass(frozen=True)
class Window:
    """WINDOW: the inner operator on the content of a window of a continuous query, by the name of its declaration."""

    name: str
    inner: Operator


@dataclass(frozen=True)
class Service:
    """SERVICE: a pattern that another endpoint answers. `text` is the group as it was written, braces included;
    `prologue` holds the declarations that it needs; `names` are the variables that it may bind."""

    endpoint: Node
    silent: bool
    prologue: str
    text: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """GROUP BY: one solution for each group, or, without keys, for all. It binds the keys and the aggregates; a key
    that is an expression without a name has a generated one."""

    inner: Operator
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]


@dataclass(frozen=True)
class Bag:
    """All objects of a predicate in one event together, as often as there are triples, the members of a list in its
    place. There is one solution if they can be paired one to one with elements, so that none is left over on either
    side (`#=`), none of the event's (`#<`), or no element (`#>`); and if the predicate is there at all.

    `elements` has a condition for each: may the value of the variable `member` be paired with it?"""

    predicate: Const
    relation: Literal["#=", "#<", "#>"]
    member: str
    elements: tuple[Expression, ...]


@dataclass(frozen=True)
class Order:
    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class Select:
    """Projection and solution modifiers of a query or sub-query, applied in the order: sort, project, distinct,
    slice."""

    inner: Operator
    projection: tuple[str, ...]
    distinct: bool = False
    reduced: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0


Operator: TypeAlias = (
    Basic
    | Reach
    | Join
    | LeftJoin
    | Union
    | Minus
    | Filter
    | Extend
    | Values
    | Graph
    | Window
    | Service
    | Group
    | Bag
    | Select
)


@dataclass(frozen=True)
class Dataset:
    """FROM and FROM NAMED, as terms. None means every event."""

    default: tuple[str, ...] | None = None
    named: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Query:
    """A whole query. The operator is a `Select` in all forms but ASK without modifiers.

    `template` is CONSTRUCT's: a variable that starts with `_:` in it is a new blank node for each solution.
    `described` is DESCRIBE's: constants, and variables of the projection.
    """

    form: Literal["select", "ask", "construct", "describe"]
    where: Operator
    projection: tuple[str, ...] = ()
    template: tuple[Pattern, ...] = ()
    described: tuple[Node, ...] = ()
    dataset: Dataset = Dataset()
