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

from triplewire.matching.filters import FilterForm
from triplewire.model.terms import RDF_TYPE, TW, literal
from triplewire.security.visibility import Visibility
from triplewire.sparql import Apply, Const, Pattern, Query, Var
from triplewire.sparql.algebra import Basic, Exists, Filter, Join, Operator, Select

HEADERS = ("stream", "source", "application")

ANY_EVENT = Query("ask", Basic())
"""The query that matches every event."""

_EVENT = Var(".~event")
_SUBJECT, _PREDICATE, _OBJECT = Var(".~subject"), Var(".~predicate"), Var(".~object")


@dataclass(frozen=True)
class EventSelector:
    """Selects events by headers and vocabulary. Any value of a field will do; a field without values selects all.
    `vocabulary` has prefixes of IRIs of some predicate or class of the event."""

    stream: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[tuple[str, ...], ...]:
        return self.stream, self.source, self.application, self.vocabulary


NO_SELECTOR = EventSelector()


def restrict_query(query: Query, narrowing: EventSelector, *, solutions: bool) -> Query:
    """Restrict a query to the selected events. Without `solutions` only the existence of solutions is kept."""
    if isinstance(query.where, Select):
        return replace(
            query, where=replace(query.where, inner=_restrict_operator(query.where.inner, narrowing, solutions))
        )
    return replace(query, where=_restrict_operator(query.where, narrowing, solutions))


def _restrict_operator(operator: Operator, narrowing: EventSelector, solutions: bool) -> Operator:
    operator = reduce(Join, _header_patterns(narrowing), operator)
    if not narrowing.vocabulary:
        return operator
    # Solutions must not be counted once for each triple of the vocabulary.
    met = _vocabulary_pattern(narrowing.vocabulary)
    return Filter(operator, (Exists(met),)) if solutions else Join(operator, met)


def _header_patterns(narrowing: EventSelector) -> Iterator[Operator]:
    """Patterns for headers, of which an event has each at most once."""
    for name in HEADERS:
        terms = [Const(literal(each)) for each in getattr(narrowing, name)]
        predicate, value = Const(f"<{TW}{name}>"), Var(f".~{name}")
        if len(terms) == 1:
            yield Basic((Pattern(_EVENT, predicate, terms[0]),))
        elif terms:
            yield Filter(Basic((Pattern(_EVENT, predicate, value),)), (Apply("in", (value, *terms)),))


def _vocabulary_pattern(beginnings: Sequence[str]) -> Operator:
    classed, named = Apply("=", (_PREDICATE, Const(RDF_TYPE))), Apply("isiri", (_OBJECT,))
    ways = [_starts_with(_PREDICATE, each) for each in beginnings]
    ways += [Apply("&&", (classed, Apply("&&", (named, _starts_with(_OBJECT, each))))) for each in beginnings]
    condition = reduce(lambda left, right: Apply("||", (left, right)), ways)
    return Filter(Basic((Pattern(_SUBJECT, _PREDICATE, _OBJECT),)), (condition,))


def _starts_with(variable: Var, beginning: str) -> Apply:
    return Apply("strstarts", (Apply("str", (variable,)), Const(literal(beginning))))


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
    # No characters that resolution against a base would change, or that a strict IRI parser could refuse.
    r"(?!.*[/:]\.)[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9.-]+(?::[0-9]{1,4})?(?=[/?#]|\Z)|(?!//))"
    r"[A-Za-z0-9._~!$&'()*+,;=:@/-]*(?:\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?(?:#[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?"
)
_PLAIN_STRING = re.compile(r"[^\"'\\\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]*")

_IRI, _HEADER = "<", "header"
_VALUE = "="
"""The prefix of the kind of a value; then comes the start of an IRI, or the start and the end of a literal."""
_QUOTES = ('"', "'")
_INTEGER, _DECIMAL, _DOUBLE = "1", "1.5", "1e5"
_NUMBERS = (_INTEGER, _DECIMAL, _DOUBLE)
_SHUT = "!"
"""The prefix of the kind of a hole that stays as it is."""

_NUMERIC = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})?")


@dataclass(frozen=True)
class ShapeRequest:
    """A query to be lifted: a text, a form, an algebra, or none for all events; for selected events; with its
    solutions or not."""

    text: str | None
    solutions: bool
    narrowing: EventSelector = NO_SELECTOR
    values: tuple[tuple[str, str], ...] = ()
    """Terms for variables of the text, by name, or for the form, in order."""
    query: Query | None = None
    form: FilterForm | None = None
    visibility: Visibility | None = None
    """The visibility of the subscriber; None for everything."""


@dataclass(frozen=True)
class QuerySkeleton:
    """The pieces of a text with holes between them. `cores` are the contents of the holes without the delimiters of
    their kind; those of the text come first, then those of the event selector, then the values."""

    asked: ShapeRequest
    pieces: Sequence[str]
    kinds: tuple[str, ...]
    cores: tuple[str, ...]

    @cached_property
    def skeleton(self) -> Hashable:
        counts = tuple(map(len, self.asked.narrowing.fields))
        names = tuple([name for name, _ in self.asked.values])
        asked = self.asked
        return tuple(self.pieces), self.kinds, asked.solutions, counts, names, asked.form, asked.visibility

    @cached_property
    def equal(self) -> tuple[int, ...]:
        """For each hole, the first one with the same content; empty if all differ."""
        whole = [kind + core for kind, core in zip(self.kinds, self.cores, strict=True)]
        return () if len(set(whole)) == len(whole) else tuple(map(whole.index, whole))

    @property
    def open(self) -> list[int]:
        """The holes that can hold anything of their kind. A name before a bracket is that of a function."""
        shut = {at - 1 for at, piece in enumerate(self.pieces) if at and piece.lstrip()[:1] == "("}
        return [
            at for at, kind in enumerate(self.kinds) if kind[0] != _SHUT and not (at in shut and _is_iri_kind(kind))
        ]

    @cached_property
    def others(self) -> tuple[str, ...]:
        """For each hole, other content of its kind that occurs in no other hole; the same for equal ones."""
        firsts = self.equal or range(len(self.cores))
        return tuple(_other_constant(self.kinds[first], self.cores[first], first) for first in firsts)

    def shutting(self, known: Callable[[str], bool]) -> QuerySkeleton:
        """The skeleton with those holes closed whose terms are known, given their core and the delimiter that ends
        an IRI."""
        shut = [_may_be_iri(kind) and known(core + ">") for kind, core in zip(self.kinds, self.cores, strict=True)]
        if not any(shut):
            return self
        holes = [*zip(self.kinds, self.cores, shut, strict=True)]
        kinds = tuple([_SHUT + _write_constant(kind, core) if closed else kind for kind, core, closed in holes])
        return replace(self, kinds=kinds, cores=tuple(["" if closed else core for _, core, closed in holes]))

    def changed(self, holes: Collection[int]) -> ShapeRequest:
        """The skeleton with other content in some holes."""
        return self.refilled([self.others[at] if at in holes else core for at, core in enumerate(self.cores)])

    def refilled(self, cores: Sequence[str]) -> ShapeRequest:
        """The skeleton with this content in its open holes."""
        count = max(len(self.pieces) - 1, 0)
        written = [_write_constant(kind, core) for kind, core in zip(self.kinds, cores, strict=True)]
        text = "".join(part for pair in zip_longest(self.pieces, written[:count], fillvalue="") for part in pair)
        narrowing, rest = _refill_selector(self.asked.narrowing, written[count:])
        values = tuple((name, term) for (name, _), term in zip(self.asked.values, rest, strict=True))
        return replace(self.asked, text=None if self.asked.text is None else text, narrowing=narrowing, values=values)

    def fits(self, hole: int, before: str, after: str) -> bool:
        """Is a term with this text around the core the constant of the hole, and not something else of which it is a
        part?"""
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
    """Cut a request into its skeleton. Equal skeletons differ only in the content of their holes."""
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
    """A string in three quotes has two of them in its core."""
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
    """Another text that is valid for the same datatypes."""
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
    """The event selector with other values, and the values that are left over."""
    left, found = list(values), list[tuple[str, ...]]()
    for field in narrowing.fields:
        found.append(tuple(left[: len(field)]))
        del left[: len(field)]
    return EventSelector(*found), left
