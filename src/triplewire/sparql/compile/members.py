"""Members: the values that each event has for a predicate, as a named relation.

An object that is a list counts for its members; the empty list for none, but is there: a row with NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from triplewire.model.terms import RDF
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.closures import Closure
from triplewire.sparql.compile.columns import Stored
from triplewire.sparql.compile.contexts import Build, Definition
from triplewire.sparql.compile.sql import Sql, case, column, compare, equal, every, present, text
from triplewire.sparql.compile.values import ANY, Value

_FIRST, _REST, _NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))


@dataclass(frozen=True)
class Member(Stored):
    """A member. Who asks for a facet of it makes it a column of the relation."""

    name: str = "object"
    families: frozenset[Family] = ANY
    certain: bool = False
    asked: set[str] = field(default_factory=set)

    def facet(self, name: str) -> Sql:
        self.asked.add(name)
        return super().facet(name)


def members(build: Build, predicate: str, alias: str) -> tuple[str, Value]:
    """The name of a relation with a row for each member, with the column `position`; and the member as a value of it
    under an alias."""
    asked = next((each.asked for each in build.shared.values() if isinstance(each, Lists)), set[str]())
    onward = _once(build, Closure(_once(build, Cells(_REST)), None, keyed=True))
    lists = _once(build, Lists(_once(build, Cells(_FIRST, asked)), onward, asked))
    return _once(build, Members(predicate, lists, asked)), Member(alias, asked=asked)


def _once(build: Build, definition: Definition) -> str:
    """Its name, also where it was defined before."""
    return next((name for name, each in build.shared.items() if each == definition), "") or build.define(definition)


@dataclass(frozen=True)
class Cells:
    """What the cells of lists hold, or are followed by; in the columns of a path's steps."""

    predicate: str
    asked: set[str] = field(default_factory=set, compare=False)

    def sql(self) -> exp.Query:
        facets = {f"o_{each}": f"object_{each}" for each in sorted(self.asked)}
        places = {"s": "subject", "o": "object", "graph": "position", "name": "graph", **facets}
        columns = [exp.alias_(exp.column(place), name) for name, place in places.items()]
        stated = exp.select(*columns).from_("quads").distinct(copy=False)
        return stated.where(equal(exp.column("predicate"), text(self.predicate)), copy=False)


@dataclass(frozen=True)
class Lists:
    """The members of lists, by the cell at which a list starts."""

    firsts: str
    onward: str
    asked: set[str] = field(compare=False)

    def sql(self) -> exp.Query:
        held = [column("f", name) for name in ("graph", "o", *(f"o_{each}" for each in sorted(self.asked)))]
        first = exp.select(column("f", "s"), *held).from_(_table(self.firsts, "f"))
        later = exp.select(column("r", "s"), *held).from_(_table(self.onward, "r"))
        met = every(equal(column("f", "graph"), column("r", "graph")), equal(column("f", "s"), column("r", "o")))
        return exp.union(first, later.join(_table(self.firsts, "f"), on=met, copy=False), distinct=False, copy=False)


@dataclass(frozen=True)
class Members:
    """The objects of a predicate, with the members of those that are lists."""

    predicate: str
    lists: str
    asked: set[str] = field(compare=False)

    def sql(self) -> exp.Query:
        facets = [f"object_{each}" for each in sorted(self.asked)]
        stated = exp.select("position", "subject", "object", *facets).from_("quads").distinct(copy=False)
        stated.where(equal(exp.column("predicate"), text(self.predicate)), copy=False)
        select = exp.select(column("q", "position"), *self._members()).from_(stated.subquery("q", copy=False))
        met = [equal(column("l", "graph"), column("q", "position")), equal(column("l", "s"), column("q", "object"))]
        return select.join(_table(self.lists, "l"), on=every(*met), join_type="left", copy=False)

    def _members(self) -> Iterator[exp.Expr]:
        object_, listed = column("q", "object"), present(column("l", "o"))
        full = compare("!=", object_, text(_NIL))
        yield exp.alias_(case((listed, column("l", "o")), (full, object_)), "object")
        for each in sorted(self.asked):
            name = f"object_{each}"
            yield exp.alias_(case((listed, column("l", f"o_{each}")), default=column("q", name)), name)


def _table(name: str, alias: str) -> exp.Table:
    return exp.to_table(name, alias=alias)
