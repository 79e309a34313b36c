"""Groups of subscriptions: the group that a subscription belongs to, its threshold, and the guard of a shape that the
index does not decide.

Both follow from shape and constants alone, so that every process that knows a subscription knows the name of its
group. A guard is a program for what every match of a shape requires; the events that it lets through are candidates.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from triplewire.matching.index.programs import (
    MOST_PATTERNS,
    IndexProgram,
    Opcode,
    compile_conjunction,
    compile_program,
    header_number,
    select_key_conditions,
)
from triplewire.matching.shapes import Shape
from triplewire.model.terms import XSD
from triplewire.security.visibility import ALL, Visibility
from triplewire.sparql import Conjunction, algebra
from triplewire.sparql.algebra import Apply, Const, Expression, Operator, Param, Pattern, Query, Var
from triplewire.sparql.compiler.subscriptions import required_patterns
from triplewire.sparql.constants import INTEGERS
from triplewire.sparql.traversal import iterate_parts


@dataclass(frozen=True)
class Guard:
    """A program for a necessary condition of a match. If it is not `sure`, it is about what the query counts, and a
    subscription may match an event that has nothing to count."""

    program: IndexProgram
    sure: bool = True


def build_guard(shape: Shape) -> Guard | None:
    """The guard of a shape, or None if there is no necessary condition with a constant. It uses those filters that
    give access keys."""
    query = shape.query
    if isinstance(query, Conjunction):
        return _make_guard(query.patterns, (), query.filters)
    counted = _counted_group(query)
    selected = query.where.inner if isinstance(query.where, algebra.Select) else query.where
    inner = selected if counted is None else counted.inner
    made = _make_guard((*required_patterns(inner),), (*_alternatives(inner),), (*_conditions(inner),))
    return made and replace(made, sure=counted is None)


@dataclass(frozen=True)
class _Choice:
    """A predicate that all branches of a union have, with its constants if there is one in each branch."""

    predicate: Const
    objects: tuple[Param, ...] = ()

    def pattern(self, number: int) -> Pattern:
        """The choice as a pattern with a variable of its own."""
        return Pattern(Var(f".of{number}"), self.predicate, Var(f".among{number}"))

    def conditions(self, number: int) -> tuple[Expression, ...]:
        same = tuple(Apply("sameterm", (self.pattern(number).object, each)) for each in self.objects)
        return (Apply("||", same),) if same else ()


def _make_guard(
    patterns: Sequence[Pattern], choices: Sequence[_Choice], conditions: Sequence[Expression]
) -> Guard | None:
    rows = [replace(each, graph=None) for each in patterns if header_number(each) is None][:MOST_PATTERNS]
    more = choices[: MOST_PATTERNS - len(rows)]
    nodes = (node for each in rows for node in (each.subject, each.predicate, each.object))
    if not more and all(isinstance(node, Var) for node in nodes):
        return None
    chosen = (condition for number, each in enumerate(more) for condition in each.conditions(number))
    every = (*rows, *(each.pattern(number) for number, each in enumerate(more)))
    return Guard(compile_conjunction(Conjunction("ask", every, (*chosen, *select_key_conditions(rows, conditions)))))


def _counted_group(query: Query) -> algebra.Group | None:
    """The group of an aggregation without GROUP BY, if the solution depends on that alone. It has a solution even of
    an empty group."""
    operator: Operator = query.where
    while isinstance(operator, algebra.Select | algebra.Filter | algebra.Extend):
        if any(isinstance(each, algebra.Exists) for each in _own_expressions(operator)):
            return None
        operator = operator.inner
    return operator if isinstance(operator, algebra.Group) and not operator.keys else None


def _own_expressions(operator: algebra.Select | algebra.Filter | algebra.Extend) -> Iterator[object]:
    """The expressions of an operator, with all their parts, but without those of inner operators."""
    for each in fields(operator):
        if each.name != "inner":
            yield from iterate_parts(getattr(operator, each.name))


def _conditions(operator: Operator) -> Iterator[Expression]:
    """The filters that every solution passes, if their variables are in required patterns."""
    match operator:
        case algebra.Filter(inner, conditions):
            yield from conditions
            yield from _conditions(inner)
        case algebra.Join(left, right):
            yield from _conditions(left)
            yield from _conditions(right)
        case algebra.LeftJoin(left) | algebra.Minus(left):
            yield from _conditions(left)
        case algebra.Extend(inner) | algebra.Graph(inner=inner):
            yield from _conditions(inner)


def _alternatives(operator: Operator) -> Iterator[_Choice]:
    """The choices of unions that every solution needs."""
    match operator:
        case algebra.Union():
            yield from _common_choice([[*required_patterns(each)] for each in _branches(operator)])
        case algebra.Join(left, right):
            yield from _alternatives(left)
            yield from _alternatives(right)
        case algebra.LeftJoin(left) | algebra.Minus(left):
            yield from _alternatives(left)
        case algebra.Select(inner) | algebra.Filter(inner) | algebra.Extend(inner) | algebra.Graph(inner=inner):
            yield from _alternatives(inner)


def _branches(operator: Operator) -> Iterator[Operator]:
    if isinstance(operator, algebra.Union):
        yield from _branches(operator.left)
        yield from _branches(operator.right)
    else:
        yield operator


def _common_choice(branches: Sequence[Sequence[Pattern]]) -> Iterator[_Choice]:
    """The first predicate with a constant in every branch, else the first that is in all of them."""
    stored = [[each for each in branch if header_number(each) is None] for branch in branches]
    predicates = [each.predicate for each in stored[0] if isinstance(each.predicate, Const)]
    shared = [each for each in predicates if all(any(its.predicate == each for its in branch) for branch in stored)]
    for predicate in shared:
        objects = [each for branch in stored if (each := _object(branch, predicate)) is not None]
        if len(objects) == len(branches):
            yield _Choice(predicate, tuple(objects))
            return
    yield from map(_Choice, shared[:1])


def _object(branch: Sequence[Pattern], predicate: Const) -> Param | None:
    """A constant object of a predicate in a branch."""
    named = (each.object for each in branch if each.predicate == predicate)
    return next((each for each in named if isinstance(each, Param)), None)


_ABOVE = (Opcode.GREATER, Opcode.GREATER_EQUAL)
_DIGITS = 15
"""Digits that a double holds exactly."""
_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_EXACT = re.compile(rf'"({_DECIMAL})"\^\^<{re.escape(XSD)}(?:decimal|integer|{"|".join(INTEGERS)})>')
_DOUBLE = re.compile(rf'"({_DECIMAL}(?:[eE][+-]?[0-9]+)?)"\^\^<{re.escape(XSD)}double>')
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
_MOMENT = re.compile(rf'"({_TIME})"\^\^<{re.escape(XSD)}dateTime>')
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Membership:
    """A subscription's place in a group, whose name is the same in every process. A match of the group concerns the
    subscription if the match's value passes the threshold."""

    group: int
    constants: tuple[str, ...]
    threshold: float = 0.0
    op: Opcode | None = None

    @property
    def above(self) -> bool:
        return self.op in _ABOVE

    def concerns(self, values: np.ndarray) -> np.ndarray:
        """For each value, whether it passes the threshold."""
        match self.op:
            case None:
                return np.ones(len(values), bool)
            case Opcode.GREATER:
                return values > self.threshold
            case Opcode.GREATER_EQUAL:
                return values >= self.threshold
            case Opcode.LESS:
                return values < self.threshold
        return values <= self.threshold


class Memberships:
    """The groups of the subscriptions of a shape. There are none if the index does not decide the shape."""

    def __init__(self, shape: Shape, *, indexed: bool = True) -> None:
        self.program = compile_program(shape) if indexed else None
        self._key = shape.key

    def of(self, constants: Sequence[str]) -> Membership | None:
        """The membership of a subscription, or None if the index does not decide its threshold: a long number, a
        time without a zone."""
        if self.program is None:
            return None
        limit = self.program.threshold
        if limit is None:
            kept = tuple(constants)
            return Membership(_group_name(self._key, kept), kept)
        value = _parse_threshold(constants[limit.parameter], limit.family is algebra.Family.DATETIME)
        if value is None:
            return None
        kept = tuple("" if index == limit.parameter else text for index, text in enumerate(constants))
        return Membership(_group_name(self._key, kept), kept, value, limit.op)


def shape_memberships(shape: Shape) -> Memberships:
    """The groups of a shape. There are none if most events are visible in part only, because the index matches whole
    ones."""
    return Memberships(shape, indexed=shape.visibility is None or hides_few_events(shape.visibility))


def hides_few_events(visibility: Visibility) -> bool:
    """Are all events fully visible but those with an entity of certain classes?"""
    return visibility.classes.allowed == (ALL,) and visibility.predicates.is_all


@dataclass
class _GroupThresholds:
    """The members of one group, by name: those without a threshold, and those whose value must lie above or below one,
    in order of it."""

    free: set[int] = field(default_factory=set)
    above: list[tuple[float, int]] = field(default_factory=list)
    below: list[tuple[float, int]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.free or self.above or self.below)

    def ordered(self, membership: Membership) -> list[tuple[float, int]]:
        return self.above if membership.above else self.below

    def find(self, low: float, high: float) -> Iterator[int]:
        yield from self.free
        if not low <= high:
            # No match had a value.
            return
        for _, member in self.above[: bisect_right(self.above, high, key=itemgetter(0))]:
            yield member
        for _, member in self.below[bisect_left(self.below, low, key=itemgetter(0)) :]:
            yield member


class GroupMembers:
    """Members of groups, each by a number. Finds those that matches may concern without a look at the others: with a
    thousand members the cost is that of the ones which are found."""

    def __init__(self) -> None:
        self._groups: defaultdict[int, _GroupThresholds] = defaultdict(_GroupThresholds)

    def add(self, member: int, membership: Membership) -> None:
        group = self._groups[membership.group]
        if membership.op is None:
            group.free.add(member)
        else:
            insort(group.ordered(membership), (membership.threshold, member))

    def remove(self, member: int, membership: Membership) -> None:
        group = self._groups[membership.group]
        if membership.op is None:
            group.free.discard(member)
        else:
            group.ordered(membership).remove((membership.threshold, member))
        if not group:
            del self._groups[membership.group]

    def find(self, groups: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> set[int]:
        """The members that matches of these groups, with these values, may concern: all that they do, and perhaps some
        whose threshold equals a value."""
        found = set[int]()
        if not len(groups) or not self._groups:
            return found
        order = np.argsort(groups, kind="stable")
        names = groups[order]
        starts = np.flatnonzero(np.diff(names, prepend=names[0] - 1))
        lows, highs = (each.reduceat(values[order], starts).tolist() for each in (np.fmin, np.fmax))
        for name, low, high in zip(names[starts].tolist(), lows, highs, strict=True):
            if name in self._groups:
                found.update(self._groups[name].find(low, high))
        return found


class Guards:
    """The guard groups of the subscriptions of a shape that the index does not decide. An event that matches no
    guard group of a subscription does not match the subscription. There are none if no necessary condition is known."""

    def __init__(self, shape: Shape) -> None:
        made = build_guard(shape)
        self.program = None if made is None else made.program
        self.sure = made is None or made.sure
        """Whether no subscription of the shape matches an event that the guard does not let through."""
        self._key = "guard " + shape.key
        self._read = set[int]() if self.program is None else self.program.parameters

    def of(self, constants: Sequence[str]) -> Membership:
        kept = tuple(text if index in self._read else "" for index, text in enumerate(constants))
        return Membership(_group_name(self._key, kept), kept)


def _group_name(key: str, constants: Sequence[str]) -> int:
    text = "\n".join((key, *constants)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


@lru_cache(maxsize=65_536)
def _parse_threshold(term: str, timely: bool) -> float | None:
    return _parse_instant(term) if timely else _parse_number(term)


def _parse_number(term: str) -> float | None:
    found = _DOUBLE.fullmatch(term)
    if found is not None:
        return float(found[1])
    found = _EXACT.fullmatch(term)
    if found is None or len(found[1].strip("+-").replace(".", "").lstrip("0")) > _DIGITS:
        return None
    return float(found[1])


def _parse_instant(term: str) -> float | None:
    found = _MOMENT.fullmatch(term)
    try:
        return None if found is None else float((datetime.fromisoformat(found[1]) - _EPOCH) // _MICROSECOND)
    except ValueError:
        return None
