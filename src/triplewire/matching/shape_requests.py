"""Shape requests: a query with an event selector, and the skeleton of its text without constants.

An event selector restricts a query to some streams, sources, applications or vocabularies; it becomes patterns and
filters of the query itself. The skeleton is found by lexical rules, without the grammar: a hole that is no constant to
the parser is never found to be a parameter. Anything of its kind that is put into a hole must be parsed in the same
way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import zip_longest
from typing import Protocol

from triplewire.model.terms import RDF_TYPE, TW, literal
from triplewire.security.visibility import Visibility
from triplewire.sparql import Apply, Const, Expression, Pattern, Query, Var
from triplewire.sparql.algebra import Basic, Exists, Filter, Join, Operator, Select

# Narrowings: a subscription that is about some events alone, by what was said of them or by their vocabulary.
#
# They become patterns and filters of the query itself, so that everything behind treats them like any others.

HEADERS = ("stream", "source", "application")

ANY_EVENT = Query("ask", Basic())
"""The query that every event answers."""

_EVENT = Var(".~event")
_SUBJECT, _PREDICATE, _OBJECT = Var(".~subject"), Var(".~predicate"), Var(".~object")


@dataclass(frozen=True)
class EventSelector:
    """Of each field any value will do; a field without values says nothing. `vocabulary` has beginnings of IRIs: of
    some predicate or class of the event."""

    stream: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[tuple[str, ...], ...]:
        return self.stream, self.source, self.application, self.vocabulary


NO_SELECTOR = EventSelector()


def restrict_query(query: Query, narrowing: EventSelector, *, solutions: bool) -> Query:
    """The query, with the same solutions on the events that are meant and with none on others. Without `solutions` it
    is enough that it has some where it had some."""
    if isinstance(query.where, Select):
        return replace(
            query, where=replace(query.where, inner=_restrict_operator(query.where.inner, narrowing, solutions))
        )
    return replace(query, where=_restrict_operator(query.where, narrowing, solutions))


def _restrict_operator(operator: Operator, narrowing: EventSelector, solutions: bool) -> Operator:
    operator = reduce(Join, _header_patterns(narrowing), operator)
    if not narrowing.vocabulary:
        return operator
    # Solutions must not be counted once for each triple that is of the vocabulary.
    met = _vocabulary_pattern(narrowing.vocabulary)
    return Filter(operator, (Exists(met),)) if solutions else Join(operator, met)


def _header_patterns(narrowing: EventSelector) -> Iterator[Operator]:
    """An event has each of them once, or not at all."""
    for name in HEADERS:
        terms = [Const(literal(each)) for each in getattr(narrowing, name)]
        predicate, value = Const(f"<{TW}{name}>"), Var(f".~{name}")
        if len(terms) == 1:
            yield Basic((Pattern(_EVENT, predicate, terms[0]),))
        elif terms:
            yield Filter(Basic((Pattern(_EVENT, predicate, value),)), (Apply("in", (value, *terms)),))


def _vocabulary_pattern(beginnings: Sequence[str]) -> Operator:
    classed = Apply("=", (_PREDICATE, Const(RDF_TYPE)))
    ways = [_starts_with(_PREDICATE, each) for each in beginnings]
    ways += [
        Apply("&&", (classed, Apply("&&", (_object_is_iri(), _starts_with(_OBJECT, each))))) for each in beginnings
    ]
    return Filter(Basic((Pattern(_SUBJECT, _PREDICATE, _OBJECT),)), (reduce(_or, ways),))


def _object_is_iri() -> Expression:
    return Apply("isiri", (_OBJECT,))


def _starts_with(variable: Var, beginning: str) -> Expression:
    return Apply("strstarts", (Apply("str", (variable,)), Const(literal(beginning))))


def _or(left: Expression, right: Expression) -> Expression:
    return Apply("||", (left, right))


# The cut need not know the grammar: a hole that is no constant to the parser is never found to be a parameter. It must
# only be such that whatever else of its kind is put into a hole is read in the same way.

_WORD = r"[A-Za-z0-9_]"
_CONSTANT = re.compile(
    r'(<[^<>"{}|^`\\\x00-\x20]*>'
    r'|"""(?:(?:"|"")?(?:[^"\\]|\\.))*"""|\'\'\'(?:(?:\'|\'\')?(?:[^\'\\]|\\.))*\'\'\''
    r'|"(?:[^"\\\n\r]|\\.)*"|\'(?:[^\'\\\n\r]|\\.)*\''
    rf"|(?<![\w?$@:.])[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?!{_WORD})"
    rf"|(?<![\w?$@:.-])(?:[A-Za-z](?:[A-Za-z0-9_.-]{{0,60}}{_WORD})?)?:{_WORD}(?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?)",
    re.DOTALL,
)
_PLAIN_IRI = re.compile(
    # Nothing that resolving against a base would change, or that a strict reader of IRIs could refuse.
    r"(?!.*[/:]\.)[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9.-]+(?::[0-9]{1,4})?(?=[/?#]|\Z)|(?!//))"
    r"[A-Za-z0-9._~!$&'()*+,;=:@/-]*(?:\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?(?:#[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?"
)
_PLAIN_STRING = re.compile(r"[^\"'\\\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]*")

_IRI, _HEADER = "<", "header"
_VALUE = "="
"""The kind of a value begins so; then comes what begins an IRI, or what begins and ends a literal."""
_QUOTES = ('"', "'")
_INTEGER, _DECIMAL, _DOUBLE = "1", "1.5", "1e5"
_NUMBERS = (_INTEGER, _DECIMAL, _DOUBLE)
_SHUT = "!"
"""The kind of what stays as it is begins so."""

_NUMERIC = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})?")


class QueryForm(Protocol):
    """A question without its terms. Forms that differ in nothing else are equal, and have one hash."""

    def query(self, terms: Sequence[str]) -> Query:
        """The question with these terms."""


@dataclass(frozen=True)
class ShapeRequest:
    """What is to be lifted: a query, as a text, as a form or already read, or none for all events; on some events
    alone; with the solutions or not."""

    text: str | None
    solutions: bool
    narrowing: EventSelector = NO_SELECTOR
    values: tuple[tuple[str, str], ...] = ()
    """Terms that stand for variables of the text, by their names, or that fill the form, in order."""
    query: Query | None = None
    form: QueryForm | None = None
    sight: Visibility | None = None
    """What who asks sees of events; None is everything."""


@dataclass(frozen=True)
class QuerySkeleton:
    """The pieces of a text with the holes between them. `cores` are what stands in the holes without the signs that
    are the same for all of a kind; after those of the text come those of the narrowing, and then the values."""

    asked: ShapeRequest
    pieces: Sequence[str]
    kinds: tuple[str, ...]
    cores: tuple[str, ...]

    @cached_property
    def skeleton(self) -> Hashable:
        counts = tuple(map(len, self.asked.narrowing.fields))
        names = tuple([name for name, _ in self.asked.values])
        return tuple(self.pieces), self.kinds, self.asked.solutions, counts, names, self.asked.form, self.asked.sight

    @cached_property
    def equal(self) -> tuple[int, ...]:
        """For each hole the first that holds the same; nothing where all differ."""
        whole = [kind + core for kind, core in zip(self.kinds, self.cores, strict=True)]
        return () if len(set(whole)) == len(whole) else tuple(map(whole.index, whole))

    @property
    def open(self) -> list[int]:
        """The holes that others of their kind may fill. A name before a bracket is a function's."""
        shut = {at - 1 for at, piece in enumerate(self.pieces) if at and piece.lstrip()[:1] == "("}
        return [
            at for at, kind in enumerate(self.kinds) if kind[0] != _SHUT and not (at in shut and _is_iri_kind(kind))
        ]

    @cached_property
    def others(self) -> tuple[str, ...]:
        """For each hole something else of its kind, the same for equal ones, that occurs in no other."""
        firsts = self.equal or range(len(self.cores))
        return tuple(_other_constant(self.kinds[first], self.cores[first], first) for first in firsts)

    def shutting(self, known: Callable[[str], bool]) -> QuerySkeleton:
        """The same with those holes shut in which terms stand that are known, given what of them stands there and the
        sign that ends an IRI."""
        shut = [_may_be_iri(kind) and known(core + ">") for kind, core in zip(self.kinds, self.cores, strict=True)]
        if not any(shut):
            return self
        holes = [*zip(self.kinds, self.cores, shut, strict=True)]
        kinds = tuple([_SHUT + _write_constant(kind, core) if closed else kind for kind, core, closed in holes])
        return replace(self, kinds=kinds, cores=tuple(["" if closed else core for _, core, closed in holes]))

    def changed(self, holes: Collection[int]) -> ShapeRequest:
        """The same with others in some holes."""
        return self.refilled([self.others[at] if at in holes else core for at, core in enumerate(self.cores)])

    def refilled(self, cores: Sequence[str]) -> ShapeRequest:
        """The same with this in its holes, but for those that are shut."""
        count = max(len(self.pieces) - 1, 0)
        written = [_write_constant(kind, core) for kind, core in zip(self.kinds, cores, strict=True)]
        text = "".join(part for pair in zip_longest(self.pieces, written[:count], fillvalue="") for part in pair)
        narrowing, rest = _refill_selector(self.asked.narrowing, written[count:])
        values = tuple((name, term) for (name, _), term in zip(self.asked.values, rest, strict=True))
        return replace(self.asked, text=None if self.asked.text is None else text, narrowing=narrowing, values=values)

    def fits(self, hole: int, before: str, after: str) -> bool:
        """Whether a term that has this around what stands in the hole is the constant of the hole, and not something
        else that it is a part of."""
        kind = self.kinds[hole]
        if kind[0] == _VALUE and kind[1] != "<":
            return (before, after) == ('"', kind[1:])
        if kind in (_IRI, _VALUE + "<"):
            return (before, after) == ("<", ">")
        if kind in _NUMBERS:
            return before in ('"', '"-', '"+') and after.startswith('"^^<')
        if kind in _QUOTES or kind == _HEADER:
            return before == '"' and after.startswith('"')
        return before.startswith("<") and after == ">"


def cut_request(asked: ShapeRequest) -> QuerySkeleton:
    """What is asked, cut. Equal skeletons differ in what stands in their holes, and in nothing else."""
    parts = [] if asked.text is None else _CONSTANT.split(asked.text)
    holes = [_constant_hole(each) for each in parts[1::2]]
    holes += [_string_hole(_HEADER, each, each) for values in asked.narrowing.fields for each in values]
    holes += [_value_hole(term) for _, term in asked.values]
    return QuerySkeleton(asked, parts[::2], tuple([kind for kind, _ in holes]), tuple([core for _, core in holes]))


def _constant_hole(constant: str) -> tuple[str, str]:
    first = constant[0]
    if first == "<":
        core = constant[1:-1]
        return (_IRI, core) if _PLAIN_IRI.fullmatch(core) else (_SHUT + constant, "")
    if first in _QUOTES:
        return _string_hole(first, constant[1:-1], constant)
    if first.isdigit():
        return (_DOUBLE if "e" in constant or "E" in constant else _DECIMAL if "." in constant else _INTEGER), constant
    prefix, _, local = constant.partition(":")
    return prefix + ":", local


def _value_hole(term: str) -> tuple[str, str]:
    if term[0] == "<":
        kind, core = _constant_hole(term)
        return (kind, core) if kind[0] == _SHUT else (_VALUE + "<", core)
    body, quote, ending = term[1:].rpartition('"')
    return _string_hole(_VALUE + quote + ending, body, term)


def _string_hole(kind: str, core: str, whole: str) -> tuple[str, str]:
    """A string in three quotes has quotes in its core."""
    return (kind, core) if _PLAIN_STRING.fullmatch(core) else (_SHUT + whole, "")


def _write_constant(kind: str, core: str) -> str:
    if kind[0] == _SHUT:
        return kind[1:]
    if kind == _IRI:
        return f"<{core}>"
    if kind[0] == _VALUE:
        return f"<{core}>" if kind[1] == "<" else '"' + core + kind[1:]
    if kind in _QUOTES:
        return kind + core + kind
    return core if kind in _NUMBERS or kind == _HEADER else kind + core


def _other_constant(kind: str, core: str, number: int) -> str:
    if kind in (_IRI, _VALUE + "<"):
        return f"tw-hole:{number}x"
    if kind in _NUMBERS:
        return f"{7_301_000 + number}" + kind[1:]
    return _other_text(core, number) if kind in _QUOTES or kind[0] == _VALUE else f"tw-hole-{number}x"


def _other_text(core: str, number: int) -> str:
    """A text that is right for the same datatypes."""
    if _NUMERIC.fullmatch(core):
        return f"{7_301_000 + number}"
    if _FRACTION.fullmatch(core):
        return f"{7_301_000 + number}.5"
    if _DATE.fullmatch(core):
        return f"{3_000 + number:04}-06-05"
    moment = _MOMENT.fullmatch(core)
    return f"{3_000 + number:04}-06-05T04:03:02{moment[1] or ''}" if moment else f"tw-hole-{number}x"


def _may_be_iri(kind: str) -> bool:
    return kind[0] != _SHUT and (_is_iri_kind(kind) or kind == _VALUE + "<")


def _is_iri_kind(kind: str) -> bool:
    return kind == _IRI or kind[-1] == ":"


def _refill_selector(narrowing: EventSelector, values: Sequence[str]) -> tuple[EventSelector, list[str]]:
    """The narrowing with other values, and those that are left."""
    left, found = list(values), list[tuple[str, ...]]()
    for field in narrowing.fields:
        found.append(tuple(left[: len(field)]))
        del left[: len(field)]
    return EventSelector(*found), left
