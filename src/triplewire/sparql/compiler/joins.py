"""Joins, left joins, MINUS, semi-joins and unions of relations.

Solutions are compatible if they agree on all variables that both bind. Where both sides surely bind a variable, that
is plain equality, at which engines are good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from triplewire.sparql.algebra import Expression, Operator, Union
from triplewire.sparql.compiler.contexts import Context, same_keys
from triplewire.sparql.compiler.relations import (
    Exports,
    InlineLets,
    Multiplicity,
    Relation,
    SubquerySource,
    TableSource,
    UnitSource,
    carry_values,
    render_select,
    typed_null,
)
from triplewire.sparql.compiler.scans import equal_terms
from triplewire.sparql.compiler.terms import ConstantValue, StoredNode, StoredTerm
from triplewire.sparql.compiler.values import HeaderText, HeaderTime, Value, facet_of
from triplewire.sparql.sql import Sql, coalesce, column, equal, every, is_null, is_true, negate, some, truth


def join_relations(context: Context, left: Relation, right: Relation) -> Relation:
    """Join compatible solutions. The sources of both sides are in one SELECT."""
    left, right = align_rows(context, context.build.without_lets(left), context.build.without_lets(right))
    values, conditions = unify_relations(context, left, right)
    return Relation(
        sources=(*left.sources, *right.sources),
        conditions=tuple(dict.fromkeys((*left.conditions, *right.conditions, *conditions))),
        values=values,
        keys={**right.keys, **left.keys},
        rows=join_multiplicity(context, left, right),
        headers={**right.headers, **left.headers},
    )


def unify_relations(context: Context, left: Relation, right: Relation) -> tuple[dict[str, Value], list[Sql]]:
    """The values of both, and the conditions under which they are one solution. Where the keys agree, so does what the
    frame put in."""
    values = {**left.values, **right.values}
    conditions = same_keys(left.keys, right.keys)
    fixed = _fixed(context, left, right)
    for name in left.values:
        if name in fixed:
            values[name] = left.values[name]
        elif name in right.values:
            values[name], condition = unify_values(left.values[name], right.values[name])
            conditions.append(condition)
    return values, [each for each in conditions if not is_true(each)]


def _fixed(context: Context, left: Relation, right: Relation) -> frozenset[str]:
    """Return the variables that the frame gives a value on both sides."""
    return context.fixed if context.repeats(left) and context.repeats(right) else frozenset()


def unify_values(left: Value, right: Value) -> tuple[Value, Sql]:
    """Unify two values of one variable; also return the condition under which they are compatible."""
    if left is right:
        return left, truth(True)
    same = same_term_condition(left, right)
    if is_certain(left) and is_certain(right):
        return (right if _tells_more(right, left) else left), same
    compatible = some(negate(left.bound()), negate(right.bound()), same)
    if is_certain(left):
        return left, compatible
    return (right if is_certain(right) else CoalescedTerm.of(left, right)), compatible


def same_term_condition(left: Value, right: Value) -> Sql:
    """Compare terms for identity: by their numbers if there are any, else by text."""
    if not left.families & right.families:
        return truth(False)
    if isinstance(left, HeaderText | HeaderTime) and isinstance(right, ConstantValue):
        return equal_terms(left, right)
    one, other = left.identity(), right.identity()
    if is_null(one) or is_null(other):
        one, other = left.text(), right.text()
    return equal(one, other)


def is_certain(value: Value) -> bool:
    """Tell whether a value is always bound."""
    return is_true(value.bound())


def _tells_more(one: Value, other: Value) -> bool:
    return isinstance(one, ConstantValue) or (
        len(one.families) < len(other.families) and not isinstance(other, ConstantValue)
    )


@dataclass(frozen=True, kw_only=True)
class CoalescedTerm(StoredTerm):
    """The first of two values of one variable that is bound. Where both are, they are the same term."""

    one: Value
    other: Value

    @classmethod
    def of(cls, one: Value, other: Value) -> CoalescedTerm:
        return cls("", "", one.families | other.families, certain=False, one=one, other=other)

    def text(self) -> Sql:
        return coalesce(self.one.text(), self.other.text())

    def facet(self, name: str) -> Sql:
        return coalesce(facet_of(self.one, name), facet_of(self.other, name))


def left_join(context: Context, left: Relation, right: Relation, conditions: Sequence[Expression]) -> Relation:
    """Compile OPTIONAL: every solution of the left, with each compatible one of the right for which the conditions
    hold, or alone."""
    left, right = align_rows(context, _rooted(context, context.build.without_lets(left)), right)
    right = _single(right) or context.build.close(right, constants=False)
    values, compatible = unify_relations(context, left, right)
    scope = replace(context.scope(left), values=values, lets=InlineLets())
    on = every(*right.conditions, *compatible, *(scope.holds(each) for each in conditions))
    (source,) = right.sources
    maybe = {name: _maybe(value) for name, value in right.values.items()}
    shared = maybe.keys() - _fixed(context, left, right)
    outer = {
        name: unify_values(value, maybe[name])[0] if name in shared else value for name, value in left.values.items()
    }
    rows = join_multiplicity(context, left, right)
    return replace(left.join(source.source, "left", on), values={**maybe, **outer}, rows=rows)


def align_rows(context: Context, left: Relation, right: Relation) -> tuple[Relation, Relation]:
    """Make both sides such that multiplicities of a join are right: a repeating side must not meet a bag."""
    if "bag" in (left.rows, right.rows) or not _natural(left, right):
        return context.build.settle(left), context.build.settle(right)
    return left, right


def join_multiplicity(context: Context, left: Relation, right: Relation) -> Multiplicity:
    kinds = (left.rows, right.rows)
    if "bag" in kinds or (context.counted and not _natural(left, right)):
        return "bag"
    return "repeats" if "repeats" in kinds else "set"


def _natural(left: Relation, right: Relation) -> bool:
    """Tell whether all shared variables are always bound. If not, one solution may come from several pairs and count
    twice."""
    shared = [(value, right.values[name]) for name, value in left.values.items() if name in right.values]
    return all(is_certain(one) and is_certain(other) for one, other in shared)


def _rooted(context: Context, relation: Relation) -> Relation:
    """Add a source, if there is none, for others to be joined to."""
    return relation if relation.sources else relation.join(UnitSource(context.build.alias("u")))


def _single(relation: Relation) -> Relation | None:
    """A relation that is one table, which can be joined as it is: no value in it is a constant that would outlive a
    row that is not there."""
    alone = (
        len(relation.sources) == 1 and isinstance(relation.sources[0].source, TableSource) and not relation.lets.values
    )
    kept = all(isinstance(value, StoredTerm | StoredNode) for value in relation.values.values())
    return relation if alone and kept else None


def _maybe(value: Value) -> Value:
    """The value where there may be no row to read it from."""
    if isinstance(value, StoredNode):
        return StoredTerm(value.alias, value.name, value.families, certain=False, identified=value.identified)
    if isinstance(value, StoredTerm):
        return replace(value, certain=False)
    raise TypeError(f"{type(value).__name__} cannot be missing")


def semi_join(context: Context, left: Relation, right: Relation, on: Iterable[Sql], *, wanted: bool) -> Relation:
    """Keep the solutions of the left for which there is (or is not) a row on the right that meets all conditions."""
    left = _rooted(context, left)
    (source,) = right.sources
    condition = every(*right.conditions, *on)
    return left.join(source.source, "semi" if wanted else "anti", condition)


def subtract_relation(context: Context, left: Relation, right: Relation) -> Relation:
    """Compile MINUS: keep the solutions of the left with which no solution of the right is compatible and shares a
    variable."""
    shared = [name for name in left.values if name in right.values and name not in context.fixed]
    if not shared:
        return left
    left = context.build.without_lets(left)
    right = _single(right) or context.build.close(right)
    pairs = [(left.values[name], right.values[name]) for name in shared]
    conditions = [*same_keys(left.keys, right.keys), *(unify_values(one, other)[1] for one, other in pairs)]
    if not any(is_certain(one) and is_certain(other) for one, other in pairs):
        conditions.append(some(*(every(one.bound(), other.bound()) for one, other in pairs)))
    return semi_join(context, left, right, conditions, wanted=False)


class UnionExports(Exports):
    """The columns of a union: each is asked of every branch, and NULL in one that does not have it."""

    def __init__(self, branches: Sequence[Relation], names: dict[str, int]) -> None:
        super().__init__(_described(branches), names, render_select)
        self._branches = branches
        self._made: dict[str, list[Sql]] = {}

    def key(self, alias: str, name: str) -> Sql:
        self._made.setdefault(name, [branch.keys[name] for branch in self._branches])
        return column(alias, name)

    def column(self, alias: str, variable: str, facet: str | None = None) -> Sql:
        name = self.named(variable, facet)
        if name not in self._made:
            parts = [_part(branch.values.get(variable), facet) for branch in self._branches]
            if all(is_null(each) for each in parts):
                return exp.null()
            self._made[name] = [typed_null(facet) if is_null(each) else each for each in parts]
        return column(alias, name)

    def sql(self) -> exp.Query:
        selects: list[exp.Query] = [
            render_select(branch, {name: parts[index] for name, parts in self._made.items()})
            for index, branch in enumerate(self._branches)
        ]
        return _union_all(selects)


def union_relations(context: Context, union: Union) -> Relation:
    """Compile UNION: the solutions of both sides; of many, if a side is a union again."""
    branches = [context.build.settle(context.compile(each)) for each in _flat(union)]
    exports = UnionExports(branches, context.build.names)
    alias = context.build.alias("s")
    keys = {name: exports.key(alias, name) for name in branches[0].keys}
    rows: Multiplicity = "bag" if context.counted else "set"
    return Relation(values=carry_values(exports, alias), keys=keys, rows=rows).join(SubquerySource(exports, alias))


def _flat(operator: Operator) -> list[Operator]:
    return [*_flat(operator.left), *_flat(operator.right)] if isinstance(operator, Union) else [operator]


def _described(branches: Sequence[Relation]) -> Relation:
    """Describe the values that all branches have in common."""
    names = dict.fromkeys(name for branch in branches for name in branch.values)
    return Relation(values={name: _common(name, branches) for name in names})


def _common(name: str, branches: Sequence[Relation]) -> Value:
    found = [branch.values[name] for branch in branches if name in branch.values]
    families = frozenset().union(*(value.families for value in found))
    sure = len(found) == len(branches) and all(is_certain(value) for value in found)
    return StoredTerm("", name, families, certain=sure)


def _part(value: Value | None, facet: str | None) -> Sql:
    if value is None:
        return exp.null()
    return value.text() if facet is None else facet_of(value, facet)


def _union_all(selects: Sequence[exp.Query]) -> exp.Query:
    """Combine as a balanced tree, because there may be thousands."""
    if len(selects) == 1:
        return selects[0]
    half = len(selects) // 2
    return exp.union(_union_all(selects[:half]), _union_all(selects[half:]), distinct=False, copy=False)
