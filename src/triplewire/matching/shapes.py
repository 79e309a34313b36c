"""Shapes: queries with their constants lifted out as parameters, and the expansion of a match by its shape.

Subscriptions of one shape are rows of one table and are matched by one relational query. Predicates stay in the shape,
because they tell structures apart and make the cheapest scans; constants elsewhere, and literals in filters, become
parameters. A regular expression stays, because an engine compiles it once for each query. A query that is more than
patterns and filters is a general shape: it stays as it was written, but for its constants.

A solution of a match is a list of quad numbers, one for each pattern of the shape. A variable is read off the first
pattern that holds it. Negative numbers stand for the event's own metadata (see `METADATA`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from triplewire.model import Subscription
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import Unsupported
from triplewire.model.terms import RDF_TYPE, XSD, boolean_document, iri, literal, results_document
from triplewire.rdf import N_TRIPLES, to_ntriples
from triplewire.security.visibility import Visibility
from triplewire.sparql import Conjunction, algebra, to_conjunction
from triplewire.sparql.algebra import HEADER_PREDICATES, STREAM_PREDICATE, Apply, Const, Node, Pattern, Query, Var
from triplewire.sparql.construct import build_graph, construct_to_select
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


_BROAD = (Const(RDF_TYPE), STREAM_PREDICATE)
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
    def variable_slots(self) -> tuple[tuple[int, int] | None, ...]:
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
    named = [] if stream is None else [Pattern(Var(""), STREAM_PREDICATE, Const(literal(stream)))]
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
        if not isinstance(node, Var):
            return super().node(node)
        if node.name in self.keep:
            return node
        return Var(self.names.setdefault(node.name, f".{len(self.names)}"))


METADATA = {number: name for name, number in HEADER_PREDICATES.values()}
"""The headers of an event, by the number of their virtual quad in a solution."""


def expand_bindings(shape: Shape, entry: Mapping[str, Any], solutions: Sequence[int]) -> dict[str, Any]:
    """The solutions of one match as a SPARQL 1.1 JSON results document. `entry` is a row of an `ENTRIES` table."""
    return results_document(shape.query.projection, _expand_rows(shape, entry, solutions))


def expand_terms(shape: Shape, terms: Sequence[str | None]) -> dict[str, Any]:
    """The same for solutions that are terms: for each its rank, and a term for each variable."""
    assert isinstance(shape.query, Query)
    if shape.query.form == "ask":
        return boolean_document(True)
    return results_document(shape.query.projection, _split_terms(shape, terms))


def expand_graph(
    shape: Shape,
    subscription: Subscription,
    entry: Mapping[str, Any],
    solutions: Sequence[int],
    terms: Sequence[str | None],
) -> dict[str, Any]:
    """The graph that a CONSTRUCT builds from one match: `graph` has it as N-Triples, and `format` says so.

    Solutions are those of the match: numbers of quads for a conjunction, terms for a general shape. A graph without
    triples is not a match, so there is at least one. Each triple occurs once, in the order of the solutions.
    """
    whole = isinstance(shape.query, Query)
    rows = _split_terms(shape, terms) if whole else _expand_rows(shape, entry, solutions)
    bound = (dict(zip(shape.query.projection, row, strict=True)) for row in rows)
    name = f"{subscription.id} {entry['position']}"
    triples = build_graph(shape.template, subscription.constants, bound, name)
    return {"format": N_TRIPLES.media_type, "graph": to_ntriples("\n".join(map("\t".join, triples)))}


def _split_terms(shape: Shape, terms: Sequence[str | None]) -> list[tuple[str | None, ...]]:
    width = 1 + len(shape.query.projection)
    return [tuple(terms[start + 1 : start + width]) for start in range(0, len(terms), width)]


def _expand_rows(shape: Shape, entry: Mapping[str, Any], solutions: Sequence[int]) -> list[tuple[str | None, ...]]:
    query = shape.query
    assert isinstance(query, Conjunction)
    rows = list(_solutions(shape, entry, solutions))
    if query.distinct:
        rows = list(dict.fromkeys(rows))
    return rows[query.offset : None if query.limit is None else query.offset + query.limit]


def _solutions(shape: Shape, entry: Mapping[str, Any], solutions: Sequence[int]) -> Iterator[tuple[str | None, ...]]:
    assert isinstance(shape.query, Conjunction)
    # Without patterns there is one solution, of no quads.
    width = len(shape.query.patterns)
    lines = entry["text"].split("\n")
    if not width:
        yield (None,) * len(shape.variable_slots)
        return
    for start in range(0, len(solutions), width):
        yield tuple(
            None if slot is None else _term(entry, lines, solutions[start + slot[0]], slot[1])
            for slot in shape.variable_slots
        )


def _term(entry: Mapping[str, Any], lines: Sequence[str], number: int, slot: int) -> str:
    if slot == 3 or (number < 0 and slot == 0):
        return iri(entry["event"])
    if number < 0:
        name = METADATA[number]
        timed = name in ("time", "received")
        return literal(format_timestamp(entry[name]), XSD + "dateTime") if timed else literal(entry[name])
    return lines[number].split("\t")[slot]
