"""Closures: named relations of pairs of nodes, for the paths that repeat.

`keyed` relations tell pairs apart by event: they have the columns `graph`, its position, and `name`, its term.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from triplewire.sparql.compile.relations import Relation, rendered
from triplewire.sparql.compile.sql import Sql, column, equal, every, text

KEYS = ("graph", "name")


@dataclass(frozen=True)
class Steps:
    """The pairs that one repetition of a path connects, each once."""

    relation: Relation
    keyed: bool

    def sql(self) -> exp.Query:
        values, keys = self.relation.values, self.relation.keys
        columns = {"s": values["s"].text(), "o": values["o"].text()}
        named = {name: keys[name] for name in KEYS} if self.keyed else {}
        return rendered(self.relation, {**columns, **named}).distinct(copy=False)


@dataclass(frozen=True)
class Closure:
    """The pairs that one or more steps connect. Starts at the term `start`, if there is one, else anywhere.

    Engines that have recursion with set semantics run `sql`; for others there are the parts."""

    steps: str
    start: str | None
    keyed: bool

    def recursive(self, name: str) -> exp.Query:
        """The definition that refers to itself by this name."""
        return exp.union(self.first(), self.next(name), distinct=True, copy=False)

    def sql(self) -> exp.Query:
        raise TypeError("a closure is defined by a name that it refers to")

    def first(self) -> exp.Select:
        """The pairs of one step."""
        select = exp.select(*self._columns("d", "d")).from_(exp.to_table(self.steps, alias="d"))
        return select if self.start is None else select.where(equal(column("d", "s"), text(self.start)))

    def next(self, known: str) -> exp.Select:
        """The pairs that one step more connects, of a relation of known pairs."""
        same = [equal(column("c", "graph"), column("d", "graph"))] if self.keyed else []
        on: Sql = every(equal(column("c", "o"), column("d", "s")), *same)
        select = exp.select(*self._columns("c", "d")).from_(exp.to_table(known, alias="c"))
        return select.join(exp.to_table(self.steps, alias="d"), on=on)

    def _columns(self, start: str, end: str) -> list[exp.Expr]:
        keys = [column(end, name) for name in KEYS] if self.keyed else []
        return [column(start, "s"), column(end, "o"), *keys]


@dataclass(frozen=True)
class Pairs:
    """The pairs of a named relation and those of paths of no length."""

    named: str
    zero: exp.Query
    keyed: bool

    def sql(self) -> exp.Query:
        columns = [exp.column(name) for name in ("s", "o", *(KEYS if self.keyed else ()))]
        return exp.union(exp.select(*columns).from_(self.named), self.zero, distinct=True, copy=False)
