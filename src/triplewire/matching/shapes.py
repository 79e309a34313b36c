"""Shapes: queries with their constants lifted out as parameters.

Subscriptions of one shape are rows of one table and are matched by one relational query. Predicates stay in the shape,
because they tell structures apart and make the cheapest scans; constants in other places, and literals in filters,
become parameters. A regular expression stays, because an engine compiles it once for each query. A query that is more
than patterns and filters is a general shape: it stays as it was written, but for its constants.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from triplewire.model.errors import Unsupported
from triplewire.model.terms import RDF_TYPE, literal
from triplewire.security.visibility import Visibility
from triplewire.sparql import Conjunction, algebra, to_conjunction
from triplewire.sparql.algebra import Apply, Const, Node, Pattern, Query, Var
from triplewire.sparql.construct import construct_to_select
from triplewire.sparql.parameters import ConstantLifter
from triplewire.sparql.serialization import algebra_from_json, algebra_to_json
from triplewire.sparql.traversal import iterate_parts, pattern_variables


def check_subscribable(query: Query) -> None:
    """Raise Unsupported for a query that has no meaning on a single event, or not the same one each time."""
    if query.form == "describe":
        raise Unsupported("DESCRIBE in a subscription", hint="SELECT, ASK and CONSTRUCT are taken")
    if query.dataset != algebra.Dataset():
        raise Unsupported("FROM in a subscription", hint="a subscription looks at one event at a time")
    for part in iterate_parts(query.where):
        if isinstance(part, algebra.Service):
            raise Unsupported("SERVICE in a subscription", hint="a subscription looks at one event at a time")
        if isinstance(part, Apply) and part.op in algebra.VOLATILE:
            hint = "a match must be the same whenever it is made again"
            raise Unsupported(f"{part.op.upper()} in a subscription", hint=hint)


_BROAD = (Const(RDF_TYPE), algebra.STREAM_PREDICATE)
_NOW = Apply("now", ())


@dataclass(frozen=True)
class Shape:
    """A query with parameters. `solutions` says whether the subscription asks for bindings. A general shape, which
    is no conjunction, may be about the events of one stream: the name of the stream is then the constant after those
    of the query. The constants of a template come last."""

    query: Conjunction | Query
    solutions: bool
    stream: bool = False
    template: tuple[Pattern, ...] = ()
    """The template of a CONSTRUCT."""
    visibility: Visibility | None = None
    """The visibility that the query is restricted to; None for whole events."""

    @cached_property
    def key(self) -> str:
        """A key that is the same for equal shapes, in every process."""
        text = json.dumps(self.to_value(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def places(self) -> tuple[tuple[int, int] | None, ...]:
        """For each projected variable, the first pattern and the slot in it where it occurs: 0 to 2 for the triple,
        3 for the graph; None if it occurs nowhere."""
        if isinstance(self.query, Query):
            return ()
        return tuple(_variable_slot(self.query.patterns, Var(name)) for name in self.query.projection)

    def to_value(self) -> dict[str, Any]:
        """A JSON value from which `from_value` makes an equal shape."""
        asked = {"query": algebra_to_json(self.query), "template": algebra_to_json(self.template)}
        seen = {} if self.visibility is None else {"visibility": self.visibility.to_json()}
        return {**asked, "solutions": self.solutions, "stream": self.stream, **seen}

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Shape:
        visibility = Visibility.from_json(value["visibility"]) if "visibility" in value else None
        asked, template = algebra_from_json(value["query"]), algebra_from_json(value["template"])
        return cls(asked, value["solutions"], value["stream"], template, visibility)


@dataclass(frozen=True)
class LiftedShape:
    """A shape and its constants: `constants[i]` is the term of `Param(i)`."""

    shape: Shape
    constants: tuple[str, ...]

    def of(self, constants: tuple[str, ...]) -> LiftedShape:
        """Another query of the same shape."""
        return LiftedShape(self.shape, constants)


def lift(query: Query, *, solutions: bool, stream: str | None = None) -> LiftedShape:
    """The shape of a query, and its constants. Raises Unsupported for a query that cannot be asked of one event."""
    check_subscribable(query)
    if query.form == "construct":
        lifted = lift(construct_to_select(query), solutions=solutions, stream=stream)
        return _add_template(lifted, query.template) if solutions else lifted
    flat = to_conjunction(query)
    if flat is None or flat.offset or flat.limit == 0 or any(part == _NOW for part in iterate_parts(query)):
        return _lift_general(query, solutions=solutions, stream=stream)
    return _lift_conjunction(flat, solutions=solutions, stream=stream)


def _lift_conjunction(query: Conjunction, *, solutions: bool, stream: str | None) -> LiftedShape:
    """Queries that differ in constants, or in the names of variables that are not projected, have equal shapes. A
    subscription to one stream has one more pattern, for the stream's name."""
    lifting = _RenamingLifter(keep=frozenset(query.projection) if solutions else frozenset())
    named = [] if stream is None else [Pattern(Var(""), algebra.STREAM_PREDICATE, Const(literal(stream)))]
    patterns = tuple(lifting.pattern(each) for each in _order_patterns((*query.patterns, *named)))
    filters = tuple(lifting.expression(each) for each in query.filters)
    lifted = replace(query, patterns=patterns, filters=filters)
    if not solutions:
        lifted = replace(lifted, form="ask", projection=(), distinct=False, limit=None, offset=0)
    return LiftedShape(Shape(lifted, solutions), tuple(lifting.constants))


def _lift_general(query: Query, *, solutions: bool, stream: str | None) -> LiftedShape:
    lifting = ConstantLifter()
    lifted = lifting.query(query)
    if not solutions or query.form == "ask":
        lifted = replace(lifted, form="ask", projection=())
    constants = (*lifting.constants, *(() if stream is None else (literal(stream),)))
    return LiftedShape(Shape(lifted, solutions, stream=stream is not None), constants)


def _add_template(lifted: LiftedShape, template: tuple[Pattern, ...]) -> LiftedShape:
    lifting = ConstantLifter([*lifted.constants])
    patterns = tuple(lifting.pattern(each) for each in template)
    return LiftedShape(replace(lifted.shape, template=patterns), tuple(lifting.constants))


def _variable_slot(patterns: Sequence[Pattern], variable: Var) -> tuple[int, int] | None:
    for number, pattern in enumerate(patterns):
        slots: tuple[Node | None, ...] = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
        if variable in slots:
            return number, slots.index(variable)
    return None


def _order_patterns(patterns: Sequence[Pattern]) -> list[Pattern]:
    """The best join order: patterns with constants first, then those that share a variable with an earlier one. A
    class is not selective, a stream hardly at all."""
    left, ordered, known = list(patterns), list[Pattern](), set[str]()
    while left:
        best = min(left, key=lambda each: (bool(known) and known.isdisjoint(pattern_variables(each)), _breadth(each)))
        left.remove(best)
        ordered.append(best)
        known |= pattern_variables(best)
    return ordered


def _breadth(pattern: Pattern) -> int:
    named = isinstance(pattern.subject, Const) or isinstance(pattern.object, Const)
    return 2 if not named else 1 if pattern.predicate in _BROAD else 0


@dataclass
class _RenamingLifter(ConstantLifter):
    """Lifts constants and renames variables in the order of their first occurrence, but for those to keep."""

    keep: frozenset[str] = frozenset()
    names: dict[str, str] = field(default_factory=dict)

    def node(self, node: Node) -> Node:
        return self._renamed(node) if isinstance(node, Var) else super().node(node)

    def _renamed(self, variable: Var) -> Var:
        if variable.name in self.keep:
            return variable
        return Var(self.names.setdefault(variable.name, f".{len(self.names)}"))
