"""Bags: all values of a predicate in one event, matched one to one with the elements that a subscription lists.

A value becomes a bit mask of the elements that it can be paired with; a bag is the list of its masks. An object that
is a list counts for its members; the empty list has none but is present, as a row with NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from triplewire.model.errors import Unsupported
from triplewire.model.terms import RDF
from triplewire.sparql import sql
from triplewire.sparql.algebra import Bag, Family
from triplewire.sparql.compiler.contexts import Context, PathClosure, QueryBuild, RelationDefinition
from triplewire.sparql.compiler.relations import OutputColumns, Relation, SqlValue, TableSource, render_select
from triplewire.sparql.compiler.terms import StoredTerm
from triplewire.sparql.compiler.values import ANY, Value
from triplewire.sparql.sql import Sql, call, case, cast, equal, every, number, text

_FIRST, _REST, _NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))


@dataclass(frozen=True)
class MemberTerm(StoredTerm):
    """A member as a value; a facet that is asked for becomes a column of the relation."""

    name: str = "object"
    families: frozenset[Family] = ANY
    certain: bool = False
    asked: set[str] = field(default_factory=set)

    def facet(self, name: str) -> Sql:
        self.asked.add(name)
        return super().facet(name)


def define_members(build: QueryBuild, predicate: str, alias: str) -> tuple[str, Value]:
    """The name of a relation with a row for each member, with the column `position`; and the member as a value of it
    under an alias."""
    asked = next((each.asked for each in build.shared.values() if isinstance(each, ListMembers)), set[str]())
    onward = _define_once(build, PathClosure(_define_once(build, ListCells(_REST)), None, keyed=True))
    lists = _define_once(build, ListMembers(_define_once(build, ListCells(_FIRST, asked)), onward, asked))
    return _define_once(build, BagMembers(predicate, lists, asked)), MemberTerm(alias, asked=asked)


def _define_once(build: QueryBuild, definition: RelationDefinition | PathClosure) -> str:
    """Return the relation's name; it is defined once."""
    return next((name for name, each in build.shared.items() if each == definition), "") or build.define(definition)


@dataclass(frozen=True)
class ListCells:
    """The pairs of list cells with what they hold (`rdf:first`) or are followed by (`rdf:rest`), with the columns of
    path steps."""

    predicate: str
    asked: set[str] = field(default_factory=set, compare=False)

    def sql(self) -> exp.Query:
        facets = {f"o_{each}": f"object_{each}" for each in sorted(self.asked)}
        sources = {"s": "subject", "o": "object", "graph": "position", "name": "graph", **facets}
        columns = [exp.alias_(exp.column(source), name) for name, source in sources.items()]
        stated = exp.select(*columns).from_("quads").distinct(copy=False)
        return stated.where(equal(exp.column("predicate"), text(self.predicate)), copy=False)


@dataclass(frozen=True)
class ListMembers:
    """The members of lists, by the cell at which a list starts."""

    firsts: str
    onward: str
    asked: set[str] = field(compare=False)

    def sql(self) -> exp.Query:
        held = [sql.column("f", name) for name in ("graph", "o", *(f"o_{each}" for each in sorted(self.asked)))]
        first = exp.select(sql.column("f", "s"), *held).from_(_table(self.firsts, "f"))
        later = exp.select(sql.column("r", "s"), *held).from_(_table(self.onward, "r"))
        met = every(
            equal(sql.column("f", "graph"), sql.column("r", "graph")), equal(sql.column("f", "s"), sql.column("r", "o"))
        )
        return exp.union(first, later.join(_table(self.firsts, "f"), on=met, copy=False), distinct=False, copy=False)


@dataclass(frozen=True)
class BagMembers:
    """The objects of a predicate, with the members of those that are lists."""

    predicate: str
    lists: str
    asked: set[str] = field(compare=False)

    def sql(self) -> exp.Query:
        facets = [f"object_{each}" for each in sorted(self.asked)]
        stated = exp.select("position", "subject", "object", *facets).from_("quads").distinct(copy=False)
        stated.where(equal(exp.column("predicate"), text(self.predicate)), copy=False)
        select = exp.select(sql.column("q", "position"), *self._members()).from_(stated.subquery("q", copy=False))
        met = [
            equal(sql.column("l", "graph"), sql.column("q", "position")),
            equal(sql.column("l", "s"), sql.column("q", "object")),
        ]
        return select.join(_table(self.lists, "l"), on=every(*met), join_type="left", copy=False)

    def _members(self) -> Iterator[exp.Expr]:
        object_, listed = sql.column("q", "object"), sql.present(sql.column("l", "o"))
        full = sql.compare("!=", object_, text(_NIL))
        yield exp.alias_(case((listed, sql.column("l", "o")), (full, object_)), "object")
        for each in sorted(self.asked):
            name = f"object_{each}"
            yield exp.alias_(case((listed, sql.column("l", f"o_{each}")), default=sql.column("q", name)), name)


def _table(name: str, alias: str) -> exp.Table:
    return exp.to_table(name, alias=alias)


_LONG = exp.DataType.build("BIGINT")
_MASK = ".mask"


def compile_bag(context: Context, bag: Bag) -> Relation:
    """One solution for each event, and subscription, whose bag is as it must be."""
    if context.frame is None or not context.events:
        raise Unsupported("a bag", hint="the values of one event are a bag, those of all events are not")
    alias = context.build.alias("m")
    relation = context.start()
    met = equal(sql.column(alias, "position"), relation.keys["position"])
    name, member = define_members(context.build, bag.predicate.term, alias)
    relation = relation.join(TableSource(name, alias)).where(met)
    relation = relation.with_values(**{bag.member: member})
    masked = relation.with_values(**{_MASK: SqlValue(_mask(context, relation, bag))})
    return _group_masks(context, context.build.close(masked.project([_MASK])), bag)


def _mask(context: Context, relation: Relation, bag: Bag) -> Sql:
    """Return the mask of a member: a bit for each element that it can be paired with; NULL if it is not in the bag."""
    scope = context.scope(relation)
    bits: Sql = number(0)
    for index, each in enumerate(bag.elements):
        bits = sql.binary(exp.Add, bits, case((scope.holds(each), number(1 << index)), default=number(0)))
    return case((sql.present(relation.values[bag.member].text()), cast(bits, _LONG)))


def _group_masks(context: Context, relation: Relation, bag: Bag) -> Relation:
    by, condition = [*relation.keys.values()], _condition(bag, relation.values[_MASK].text())

    def grouping(grouped: Relation, columns: OutputColumns) -> exp.Query:
        return render_select(grouped, columns).group_by(*by, copy=False).having(condition, copy=False)

    return context.build.close(replace(relation, values={}, rows="set"), grouping)


def _condition(bag: Bag, mask: Sql) -> Sql:
    """Test the bag, cheapest first: the number of members, then whether each has a partner at all, then the pairing."""
    sides, size = _SIDES[bag.relation], len(bag.elements)
    count = exp.Count(this=mask)
    possible = every(*_possible(sides, size, count, mask))
    if size < 2:
        return possible
    paired = equal(call("TW_PAIRED", call("TW_LIST", mask)), number(size) if sides.elements else count)
    return case((possible, paired), default=sql.truth(False))


@dataclass(frozen=True)
class _Sides:
    """The sides of a bag on which nothing may be left over."""

    values: bool
    elements: bool


_SIDES = {"#=": _Sides(True, True), "#<": _Sides(True, False), "#>": _Sides(False, True)}


def _possible(sides: _Sides, size: int, count: Sql, mask: Sql) -> Iterable[Sql]:
    if sides.values:
        yield sql.compare("<=", count, number(size))
        yield sql.coalesce(sql.compare(">", call("MIN", mask), number(0)), sql.truth(True))
    if sides.elements:
        yield sql.compare(">=", count, number(size))
        yield equal(sql.coalesce(call("BIT_OR", mask), number(0)), number((1 << size) - 1))
