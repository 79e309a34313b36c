"""SQL expressions as sqlglot trees, folded where the result is known at compile time.

A condition is TRUE, FALSE or NULL; NULL is SPARQL's error. Functions whose names start with `TW_` mean the same in
every engine; the modules in `dialects` spell them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sqlglot import exp

Sql: TypeAlias = exp.Expr

BOOLEAN = exp.DataType.build("BOOLEAN")
DOUBLE = exp.DataType.build("DOUBLE")
FLOAT = exp.DataType.build("FLOAT")
TIMESTAMP = exp.DataType.build("TIMESTAMP")
VARCHAR = exp.DataType.build("VARCHAR")
DECIMAL = exp.DataType.build("DECIMAL(37, 18)")
"""Exact numbers while computing: the sum of two fits the 38 digits that engines have, with no loss of scale."""

_COMPARISONS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def text(value: str) -> Sql:
    return exp.Literal.string(value)


def number(value: int) -> Sql:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def double(value: float) -> Sql:
    return cast(text(repr(value).replace("inf", "Infinity")), DOUBLE)


def truth(value: bool) -> Sql:
    return exp.Boolean(this=value)


def null() -> Sql:
    return exp.Null()


def is_true(sql: Sql) -> bool:
    return isinstance(sql, exp.Boolean) and bool(sql.this)


def is_false(sql: Sql) -> bool:
    return isinstance(sql, exp.Boolean) and not sql.this


def is_null(sql: Sql) -> bool:
    return isinstance(sql, exp.Null)


def column(table: str, name: str) -> Sql:
    return exp.column(name, table)


def cast(value: Sql, to: exp.DataType) -> Sql:
    return exp.Cast(this=value, to=to.copy())


def try_cast(value: Sql, to: exp.DataType) -> Sql:
    return value if is_null(value) else exp.TryCast(this=value, to=to.copy(), safe=True)


def call(name: str, *args: Sql) -> Sql:
    """Call a function of the engine, or a `TW_` function, which returns NULL for a NULL argument."""
    if name.startswith("TW_") and any(is_null(each) for each in args):
        return null()
    return exp.Anonymous(this=name, expressions=list(args))


def wrap(value: Sql) -> Sql:
    return exp.Paren(this=value) if isinstance(value, exp.Binary | exp.Not | exp.Between) else value


def binary(kind: type[exp.Binary], left: Sql, right: Sql) -> Sql:
    if is_null(left) or is_null(right):
        return null()
    if kind is exp.EQ and isinstance(left, exp.Boolean) and isinstance(right, exp.Boolean):
        return truth(left.this == right.this)
    return kind(this=wrap(left), expression=wrap(right))


def compare(op: str, left: Sql, right: Sql) -> Sql:
    return binary(_COMPARISONS[op], left, right)


def equal(left: Sql, right: Sql) -> Sql:
    return compare("=", left, right)


def among(value: Sql, texts: Sequence[str]) -> Sql:
    return exp.In(this=value, expressions=[text(each) for each in texts])


def present(value: Sql) -> Sql:
    if is_null(value) or _constant(value):
        return truth(not is_null(value))
    return exp.Not(this=exp.Is(this=wrap(value), expression=null()))


def length(value: Sql) -> Sql:
    return null() if is_null(value) else exp.Length(this=value)


def concat(*parts: Sql) -> Sql:
    return exp.Concat(expressions=list(parts), safe=False, coalesce=False)


def coalesce(*values: Sql) -> Sql:
    """Return the first value that is not NULL."""
    kept = [each for each in values if not is_null(each)]
    if not kept or len(kept) == 1 or _constant(kept[0]):
        return kept[0] if kept else null()
    return exp.Coalesce(this=kept[0], expressions=kept[1:])


def row_number(partition: Sequence[Sql] = (), order: Sequence[exp.Ordered] = ()) -> Sql:
    """Number the rows of a partition from 1; without an order, in any."""
    by = exp.Order(expressions=list(order) or [exp.Ordered(this=number(1))])
    return exp.Window(this=exp.RowNumber(), partition_by=list(partition), order=by)


def negate(condition: Sql) -> Sql:
    if isinstance(condition, exp.Boolean):
        return truth(not condition.this)
    return condition if is_null(condition) else exp.Not(this=wrap(condition))


def every(*conditions: Sql) -> Sql:
    """Combine by three-valued AND."""
    if any(is_false(each) for each in conditions):
        return truth(False)
    rest = [each for each in conditions if not is_true(each)]
    return _balanced(exp.And, rest) if rest else truth(True)


def some(*conditions: Sql) -> Sql:
    """Combine by three-valued OR."""
    if any(is_true(each) for each in conditions):
        return truth(True)
    rest = [each for each in conditions if not is_false(each)]
    return _balanced(exp.Or, rest) if rest else truth(False)


def case(*branches: tuple[Sql, Sql], default: Sql | None = None) -> Sql:
    """Build CASE: the result of the first branch whose condition is TRUE, else the default, else NULL. If every result
    is NULL so is the whole, which would have no type."""
    kept: list[tuple[Sql, Sql]] = []
    for condition, result in branches:
        if is_true(condition):
            default = result
            break
        if not (is_false(condition) or is_null(condition)):
            kept.append((condition, result))
    default = None if default is None or is_null(default) else default
    while kept and default is None and is_null(kept[-1][1]):
        kept.pop()
    if not kept:
        return default or null()
    ifs = [exp.If(this=condition, true=result) for condition, result in kept]
    return exp.Case(ifs=ifs, default=default)


def select_by(value: Sql, results: Mapping[int, Sql]) -> Sql:
    """Select the result for a number; the last one for all others."""
    if isinstance(value, exp.Literal):
        return results.get(int(value.name), null())
    if all(is_null(each) for each in results.values()):
        return null()
    *rest, (_, last) = results.items()
    ifs = [exp.If(this=number(key), true=result) for key, result in rest]
    return exp.Case(this=value, ifs=ifs, default=last) if ifs else last


def _constant(value: Sql) -> bool:
    inner = value.this if isinstance(value, exp.Cast) else value
    return isinstance(inner, exp.Literal | exp.Boolean)


def _balanced(kind: type[exp.Connector], parts: Sequence[Sql]) -> Sql:
    """Combine as a balanced tree, because a chain of thousands would be thousands deep."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return kind(this=_grouped(kind, parts[:half]), expression=_grouped(kind, parts[half:]))


def _grouped(kind: type[exp.Connector], parts: Sequence[Sql]) -> Sql:
    inner = _balanced(kind, parts)
    return exp.Paren(this=inner) if isinstance(inner, exp.Connector) and not isinstance(inner, kind) else inner
