"""Joins: of two relations, by the variables that both have.

Solutions are compatible if they agree on what both bind; a variable that one of them does not bind is no obstacle.
Where both sides surely bind it, that is plain equality, which engines are good at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from triplewire.sparql.algebra import Expression
from triplewire.sparql.compile.columns import Named, Stored
from triplewire.sparql.compile.computed import Metadata, Moment
from triplewire.sparql.compile.contexts import Context, same_keys
from triplewire.sparql.compile.lets import Inline
from triplewire.sparql.compile.relations import Joined, Relation, Rows, Table, Unit
from triplewire.sparql.compile.scans import same
from triplewire.sparql.compile.sql import Sql, equal, every, is_null, is_true, negate, some, truth
from triplewire.sparql.compile.statics import Known
from triplewire.sparql.compile.values import Value, facet_of


def joined(context: Context, left: Relation, right: Relation) -> Relation:
    """All pairs of compatible solutions. The sources of both stand side by side in one SELECT."""
    left, right = alike_rows(context, context.build.simple(left), context.build.simple(right))
    values, conditions = unified(context, left, right)
    return Relation(
        sources=(*left.sources, *right.sources),
        conditions=tuple(dict.fromkeys((*left.conditions, *right.conditions, *conditions))),
        values=values,
        keys={**right.keys, **left.keys},
        rows=together(context, left, right),
        headers={**right.headers, **left.headers},
    )


def unified(context: Context, left: Relation, right: Relation) -> tuple[dict[str, Value], list[Sql]]:
    """The values of both, and the conditions under which they are one solution. Where the keys agree, so does what the
    frame put in."""
    values = {**left.values, **right.values}
    conditions = same_keys(left.keys, right.keys)
    fixed = _fixed(context, left, right)
    for name in left.values:
        if name in fixed:
            values[name] = left.values[name]
        elif name in right.values:
            values[name], condition = met(left.values[name], right.values[name])
            conditions.append(condition)
    return values, [each for each in conditions if not is_true(each)]


def _fixed(context: Context, left: Relation, right: Relation) -> frozenset[str]:
    """What the frame put into both, for each of its rows."""
    return context.fixed if context.repeats(left) and context.repeats(right) else frozenset()


def met(left: Value, right: Value) -> tuple[Value, Sql]:
    """What two values of one variable are together, and when they are compatible."""
    if left is right:
        return left, truth(True)
    same = alike(left, right)
    if certain(left) and certain(right):
        return (right if _tells_more(right, left) else left), same
    compatible = some(negate(left.bound()), negate(right.bound()), same)
    if certain(left):
        return left, compatible
    return (right if certain(right) else Either.of(left, right)), compatible


def alike(left: Value, right: Value) -> Sql:
    """Are both the same term? By numbers that tell, or by the text, which is the same for the same term."""
    if not left.families & right.families:
        return truth(False)
    if isinstance(left, Metadata | Moment) and isinstance(right, Known):
        return same(left, right)
    one, other = left.identity(), right.identity()
    if is_null(one) or is_null(other):
        one, other = left.text(), right.text()
    return equal(one, other)


def certain(value: Value) -> bool:
    """Does it surely have a value?"""
    return is_true(value.bound())


def _tells_more(one: Value, other: Value) -> bool:
    return isinstance(one, Known) or (len(one.families) < len(other.families) and not isinstance(other, Known))


@dataclass(frozen=True)
class Either(Stored):
    """The first of two values of one variable that is bound. Where both are, they are the same term."""

    one: Value | None = None
    other: Value | None = None

    @classmethod
    def of(cls, one: Value, other: Value) -> Either:
        return cls("", "", one.families | other.families, certain=False, one=one, other=other)

    def text(self) -> Sql:
        assert self.one is not None
        assert self.other is not None
        return coalesced(self.one.text(), self.other.text())

    def facet(self, name: str) -> Sql:
        assert self.one is not None
        assert self.other is not None
        return coalesced(facet_of(self.one, name), facet_of(self.other, name))


def coalesced(*parts: Sql) -> Sql:
    known = [each for each in parts if not is_null(each)]
    if not known:
        return exp.null()
    return known[0] if len(known) == 1 else exp.Coalesce(this=known[0], expressions=known[1:])


def left_joined(context: Context, left: Relation, right: Relation, conditions: Sequence[Expression]) -> Relation:
    """Every solution of the left, with each compatible one of the right for which the conditions hold, or alone."""
    left, right = alike_rows(context, _rooted(context, context.build.simple(left)), right)
    right = _single(right) or context.build.closed(right, constants=False)
    values, compatible = unified(context, left, right)
    scope = replace(context.scope(left), values=values, lets=Inline())
    on = every(*right.conditions, *compatible, *(scope.holds(each) for each in conditions))
    (source,) = right.sources
    maybe = {name: _maybe(value) for name, value in right.values.items()}
    shared = maybe.keys() - _fixed(context, left, right)
    outer = {name: met(value, maybe[name])[0] if name in shared else value for name, value in left.values.items()}
    return replace(
        left,
        sources=(*left.sources, Joined(source.source, "left", on)),
        values={**maybe, **outer},
        rows=together(context, left, right),
    )


def alike_rows(context: Context, left: Relation, right: Relation) -> tuple[Relation, Relation]:
    """Both such that a join of them counts right: what repeats must not meet a bag."""
    if "bag" in (left.rows, right.rows) or not _natural(left, right):
        return context.build.settled(left), context.build.settled(right)
    return left, right


def together(context: Context, left: Relation, right: Relation) -> Rows:
    """How often the solutions of a join come."""
    kinds = (left.rows, right.rows)
    if "bag" in kinds or (context.counted and not _natural(left, right)):
        return "bag"
    return "repeats" if "repeats" in kinds else "set"


def _natural(left: Relation, right: Relation) -> bool:
    """Is what both share surely bound? Else one solution may be there for two reasons, and count twice."""
    shared = [(value, right.values[name]) for name, value in left.values.items() if name in right.values]
    return all(certain(one) and certain(other) for one, other in shared)


def _rooted(context: Context, relation: Relation) -> Relation:
    """With something in FROM that others can be joined to."""
    return relation if relation.sources else replace(relation, sources=(Joined(Unit(context.build.alias("u"))),))


def _single(relation: Relation) -> Relation | None:
    """A relation that is one table, which can be joined as it is: no value in it is a constant that would outlive a
    row that is not there."""
    alone = len(relation.sources) == 1 and isinstance(relation.sources[0].source, Table) and not relation.lets.values
    kept = all(isinstance(value, Stored | Named) for value in relation.values.values())
    return relation if alone and kept else None


def _maybe(value: Value) -> Value:
    """The value where there may be no row to read it from."""
    if isinstance(value, Named):
        return Stored(value.alias, value.name, value.families, certain=False, identified=value.identified)
    if isinstance(value, Stored):
        return replace(value, certain=False)
    raise TypeError(f"{type(value).__name__} cannot be missing")


def kept(context: Context, left: Relation, right: Relation, on: Iterable[Sql], *, wanted: bool) -> Relation:
    """The solutions of the left for which there is (or is not) a row on the right such that all conditions hold."""
    left = _rooted(context, left)
    (source,) = right.sources
    condition = every(*right.conditions, *on)
    return replace(left, sources=(*left.sources, Joined(source.source, "semi" if wanted else "anti", condition)))


def minus(context: Context, left: Relation, right: Relation) -> Relation:
    """The solutions of the left with which no solution of the right is compatible and has a variable in common."""
    shared = [name for name in left.values if name in right.values and name not in context.fixed]
    if not shared:
        return left
    left = context.build.simple(left)
    right = _single(right) or context.build.closed(right)
    pairs = [(left.values[name], right.values[name]) for name in shared]
    conditions = [*same_keys(left.keys, right.keys), *(met(one, other)[1] for one, other in pairs)]
    if not any(certain(one) and certain(other) for one, other in pairs):
        conditions.append(some(*(every(one.bound(), other.bound()) for one, other in pairs)))
    return kept(context, left, right, conditions, wanted=False)
