"""Unions: the solutions of several relations one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from triplewire.sparql.algebra import Operator, Union
from triplewire.sparql.compile.columns import Stored
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.joins import certain
from triplewire.sparql.compile.relations import Closed, Exports, Joined, Relation, carried, plain, rendered, typed_null
from triplewire.sparql.compile.sql import Sql, column, is_null
from triplewire.sparql.compile.values import Value, facet_of


class Branches(Exports):
    """The columns of a union: each is asked of every branch, and NULL in one that does not have it."""

    def __init__(self, branches: Sequence[Relation], names: dict[str, int]) -> None:
        super().__init__(_described(branches), names, plain)
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
            rendered(branch, {name: parts[index] for name, parts in self._made.items()})
            for index, branch in enumerate(self._branches)
        ]
        return _all(selects)


def united(context: Context, union: Union) -> Relation:
    """The solutions of both sides; of many, where a side is a union again."""
    branches = [context.build.settled(context.compile(each)) for each in _flat(union)]
    exports = Branches(branches, context.build.names)
    alias = context.build.alias("s")
    return Relation(
        sources=(Joined(Closed(exports, alias)),),
        values=carried(exports, alias),
        keys={name: exports.key(alias, name) for name in branches[0].keys},
        rows="bag" if context.counted else "set",
    )


def _flat(operator: Operator) -> list[Operator]:
    return [*_flat(operator.left), *_flat(operator.right)] if isinstance(operator, Union) else [operator]


def _described(branches: Sequence[Relation]) -> Relation:
    """What is known of the values of all branches."""
    names = dict.fromkeys(name for branch in branches for name in branch.values)
    return Relation(values={name: _common(name, branches) for name in names})


def _common(name: str, branches: Sequence[Relation]) -> Value:
    found = [branch.values[name] for branch in branches if name in branch.values]
    families = frozenset().union(*(value.families for value in found))
    sure = len(found) == len(branches) and all(certain(value) for value in found)
    return Stored("", name, families, certain=sure)


def _part(value: Value | None, facet: str | None) -> Sql:
    if value is None:
        return exp.null()
    return value.text() if facet is None else facet_of(value, facet)


def _all(selects: Sequence[exp.Query]) -> exp.Query:
    """As a balanced tree, because there may be thousands."""
    if len(selects) == 1:
        return selects[0]
    half = len(selects) // 2
    return exp.union(_all(selects[:half]), _all(selects[half:]), distinct=False, copy=False)
