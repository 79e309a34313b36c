"""Index joins: compiled SQL that sorted arrays over `quads` can answer without a query engine.

A conjunction of scans is one: each is joined by equal ids or in one event, and restricted by constants. What the SQL
means is the compiler's business; this only recognizes its simplest form, and none of it may be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from sqlglot import exp

from triplewire.sparql.compiler.scan_predicates import ColumnKey, SqlConstant, column_key, read_constant
from triplewire.sparql.sql import Sql
from triplewire.sparql.statistics import PREDICATE_NUMBER, TERM_ID

INDEX_JOIN_SCANS: Final = 8
"""Scans of an index join: the next one is chosen among all that are left, so that the work grows with their square."""

SUBJECT, OBJECT, POSITION = f"subject_{TERM_ID}", f"object_{TERM_ID}", "position"
ID_COLUMNS = {"subject": SUBJECT, "object": OBJECT, "graph": POSITION, "predicate": PREDICATE_NUMBER}
"""The column that stands for a column of texts: an event's position for its graph."""

Operator: TypeAlias = Literal["=", "<", "<=", ">", ">=", "is not NaN"]

_OPERATORS: Mapping[type[exp.Expr], Operator] = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_KINDS = {"object_number": "number", "object_time": "time"}
_JOINED = ({SUBJECT, OBJECT}, {POSITION})
"""Columns that may be compared with each other."""
_CLAUSES = frozenset({"expressions", "from_", "joins", "where", "limit"})


@dataclass(frozen=True)
class ColumnComparison:
    """A condition on one column of a scan: a text, number or time that it is compared with."""

    column: str
    operator: Operator
    constant: SqlConstant

    def fill(self, fillings: Mapping[str, str]) -> ColumnComparison:
        return replace(self, constant=self.constant.fill(fillings))


@dataclass(frozen=True)
class IndexScan:
    """A scan of `quads`: the number that its predicate has, if it is known, and conditions that hold together."""

    alias: str
    predicate: int | None
    comparisons: tuple[ColumnComparison, ...]

    def fill(self, fillings: Mapping[str, str]) -> IndexScan:
        return replace(self, comparisons=tuple(each.fill(fillings) for each in self.comparisons))


@dataclass(frozen=True)
class IndexJoin:
    """Scans, the pairs of columns that are equal, the columns of the answer, and how many rows are enough.

    Without columns only the number of rows counts, and with `ask` only whether there is one.
    """

    scans: tuple[IndexScan, ...]
    ties: tuple[tuple[ColumnKey, ColumnKey], ...]
    outputs: tuple[ColumnKey, ...]
    limit: int | None = None
    ask: bool = False

    def fill(self, fillings: Mapping[str, str]) -> IndexJoin:
        return replace(self, scans=tuple(each.fill(fillings) for each in self.scans))


def find_index_join(query: exp.Query, form: str) -> IndexJoin | None:
    """Return what a SELECT, or the query of an ASK, asks of the indexes; None if that is more than they can answer."""
    if form == "ask":
        query = query.args["from_"].this.this
    if form not in ("select", "ask") or not isinstance(query, exp.Select):
        return None
    aliases = _scans(query)
    conditions = [*_split(query.args["where"].this)] if query.args.get("where") else []
    outputs = _outputs(query)
    if not aliases or len(aliases) > INDEX_JOIN_SCANS or outputs is None:
        return None
    join = _Conditions(aliases)
    if not all(join.add(each) for each in conditions):
        return None
    scans = tuple(IndexScan(each, join.predicates[each], tuple(join.comparisons[each])) for each in aliases)
    limit = query.args.get("limit")
    most = int(limit.expression.name) if limit else None
    return IndexJoin(scans, tuple(join.ties), outputs, most, ask=form == "ask")


def _scans(query: exp.Select) -> list[str]:
    """Return the aliases of all sources; empty if one of them is no scan of `quads`, or if the query does more."""
    if any(value and name not in _CLAUSES for name, value in query.args.items()):
        return []
    joins = query.args.get("joins") or []
    tables = [query.args["from_"].this, *(each.this for each in joins)] if query.args.get("from_") else []
    plain = all(each.kind == "CROSS" for each in joins)
    return [each.alias for each in tables] if plain and all(map(_is_scan, tables)) else []


def _is_scan(table: exp.Expr) -> bool:
    return isinstance(table, exp.Table) and table.name == "quads" and bool(table.alias)


def _outputs(query: exp.Select) -> tuple[ColumnKey, ...] | None:
    if query.named_selects == ["unit"]:
        return ()
    columns = [each.unalias() for each in query.expressions]
    if not all(isinstance(each, exp.Column) and each.name in ID_COLUMNS for each in columns):
        return None
    return tuple((each.table, ID_COLUMNS[each.name]) for each in columns)


def _split(condition: Sql) -> Iterator[Sql]:
    if isinstance(condition, exp.And):
        yield from _split(condition.left)
        yield from _split(condition.right)
    else:
        yield condition.unnest()


class _Conditions:
    """The conditions of a conjunction by what they are about."""

    def __init__(self, aliases: Iterable[str]) -> None:
        self.ties: list[tuple[ColumnKey, ColumnKey]] = []
        self.predicates = dict[str, int | None].fromkeys(aliases)
        self.comparisons: dict[str, list[ColumnComparison]] = {each: [] for each in self.predicates}

    def add(self, condition: Sql) -> bool:
        """Take in a condition; return whether it is understood."""
        match condition:
            case exp.EQ(this=exp.Column() as one, expression=exp.Column() as other):
                self.ties.append((column_key(one), column_key(other)))
                return any({one.name, other.name} <= each for each in _JOINED)
            case exp.EQ(this=exp.Column() as one, expression=exp.Literal(is_string=False) as number):
                known = self.predicates[one.table] is not None
                self.predicates[one.table] = int(number.name)
                return one.name == PREDICATE_NUMBER and not known
            case exp.Not(this=exp.IsNan(this=exp.Column() as one)):
                return self._compare(one, "is not NaN", SqlConstant("number", "0"))
            case exp.Binary(this=exp.Column() as one) if type(condition) in _OPERATORS:
                return self._compare(one, _OPERATORS[type(condition)], read_constant(condition.expression))
        return False

    def _compare(self, one: exp.Column, operator: Operator, constant: SqlConstant | None) -> bool:
        if constant is None:
            return False
        self.comparisons[one.table].append(ColumnComparison(one.name, operator, constant))
        if one.name in ("subject", "object", "graph"):
            return operator == "=" and constant.kind == "text"
        return _KINDS.get(one.name) == constant.kind
