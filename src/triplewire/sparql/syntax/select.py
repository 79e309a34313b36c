"""Grammar of SELECT and of solution modifiers, for queries and sub-queries, translated as section 18.2.4 of the SPARQL
specification says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Expression, Operator, Var
from triplewire.sparql.syntax.cursor import Cursor, ScopedOperator
from triplewire.sparql.syntax.expressions import parse_bracketed, parse_call, parse_constraint, parse_expression
from triplewire.sparql.syntax.groups import join_all, parse_group, parse_values
from triplewire.sparql.syntax.lexer import Token
from triplewire.sparql.syntax.terms import parse_variable
from triplewire.sparql.traversal import map_variables

_MOST_ROWS = 10**18
"""The largest LIMIT and OFFSET: engines use 64-bit numbers."""


@dataclass(frozen=True)
class SolutionModifiers:
    """Solution modifiers as written. A key of GROUP BY has a name, generated for an expression without one."""

    keys: tuple[tuple[str, Expression], ...] = ()
    having: tuple[Expression, ...] = ()
    order: tuple[algebra.Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    values: algebra.Values | None = None


def parse_modifiers(
    cursor: Cursor, aggregates: dict[algebra.Aggregate, str], names: tuple[str, ...]
) -> SolutionModifiers:
    """Parse the modifiers. Aggregates are added to those of the SELECT clause; `names` are the variables in scope."""
    keys = _keys(cursor, names)
    cursor.aggregates = aggregates
    having, order = _having(cursor), _order(cursor)
    cursor.aggregates = None
    limit, offset = _slice(cursor)
    return SolutionModifiers(keys, having, order, limit, offset, _values(cursor))


def _values(cursor: Cursor) -> algebra.Values | None:
    if not (word := cursor.accept("VALUES")):
        return None
    cursor.record_span("VALUES", word)
    return parse_values(cursor)


def _keys(cursor: Cursor, names: tuple[str, ...]) -> tuple[tuple[str, Expression], ...]:
    if not (word := cursor.accept("GROUP")):
        return ()
    cursor.record_span("GROUP BY", word)
    cursor.expect("BY")
    found: dict[str, Expression] = {}
    taken = frozenset(names)
    while (key := _key(cursor, taken, found)) is not None:
        name, value = key
        found[name or f".key{len(found)}"] = value
    if not found:
        raise cursor.syntax_error("a variable, a function or `(`")
    return tuple(found.items())


def _key(cursor: Cursor, names: Set[str], found: Mapping[str, Expression]) -> tuple[str, Expression] | None:
    if cursor.token.kind == "variable":
        cursor.count_term()
        name = parse_variable(cursor)
        return name, Var(name)
    if not cursor.accept("("):
        value = parse_call(cursor)
        return None if value is None else ("", value)
    value = parse_expression(cursor)
    name = ""
    if cursor.accept("AS"):
        if cursor.token.text[1:] in names or cursor.token.text[1:] in found:
            raise cursor.syntax_error("a variable that is not yet in scope")
        name = parse_variable(cursor)
    cursor.expect(")")
    return name, value


def _having(cursor: Cursor) -> tuple[Expression, ...]:
    if not cursor.accept("HAVING"):
        return ()
    found = [parse_constraint(cursor)]
    while (more := _condition(cursor)) is not None:
        found.append(more)
    return tuple(found)


def _condition(cursor: Cursor) -> Expression | None:
    return parse_bracketed(cursor) if cursor.at("(") else parse_call(cursor)


def _order(cursor: Cursor) -> tuple[algebra.Order, ...]:
    if not (word := cursor.accept("ORDER")):
        return ()
    cursor.record_span("ORDER BY", word)
    cursor.expect("BY")
    found: list[algebra.Order] = []
    while (each := _comparator(cursor)) is not None:
        found.append(each)
    if not found:
        raise cursor.syntax_error("a variable, ASC, DESC, a function or `(`")
    return tuple(found)


def _comparator(cursor: Cursor) -> algebra.Order | None:
    if direction := cursor.accept("ASC", "DESC"):
        return algebra.Order(parse_bracketed(cursor), descending=direction.key == "DESC")
    if cursor.token.kind == "variable":
        cursor.count_term()
        return algebra.Order(Var(parse_variable(cursor)))
    value = _condition(cursor)
    return None if value is None else algebra.Order(value)


def _slice(cursor: Cursor) -> tuple[int | None, int]:
    given: dict[str, int] = {}
    while cursor.at("LIMIT", "OFFSET") and cursor.token.key not in given:
        cursor.record_span(cursor.token.key)
        word = cursor.take().key
        digits = cursor.expect_kind("integer", "a whole number").text.lstrip("0") or "0"
        given[word] = int(digits) if len(digits) < len(str(_MOST_ROWS)) else _MOST_ROWS
    return given.get("LIMIT"), given.get("OFFSET", 0)


@dataclass(frozen=True)
class SelectItem:
    """A variable of the SELECT clause, with the expression that it stands for if there is one."""

    name: str
    token: Token
    value: Expression | None = None


class SelectLevel:
    """A pattern with its modifiers: the common part of SELECT and every other form with modifiers."""

    def __init__(
        self, cursor: Cursor, where: ScopedOperator, given: SolutionModifiers, aggregates: dict[algebra.Aggregate, str]
    ) -> None:
        self._cursor = cursor
        self._where = where
        self._given = given
        self._aggregates = aggregates
        self._grouped = bool(given.keys or aggregates)
        self._keys = {name for name, _ in given.keys}

    @property
    def modified(self) -> bool:
        """Whether there is a modifier other than VALUES."""
        return replace(self._given, values=None) != SolutionModifiers()

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that `*` selects."""
        trailing = self._given.values.names if self._given.values else ()
        return tuple(dict.fromkeys((*self._where.names, *trailing)))

    def everything(self, star: Token) -> algebra.Select:
        if self._grouped:
            raise self._cursor.syntax_error("variables or expressions, as there is a GROUP BY or an aggregate", star)
        return self.projected(self.names)

    def selection(self, items: tuple[SelectItem, ...]) -> algebra.Select:
        """Return the projection of a SELECT clause. Raises SparqlSyntax if it is not allowed."""
        self._check(items)
        return self.projected(tuple(item.name for item in items), items)

    def projected(self, names: tuple[str, ...], items: tuple[SelectItem, ...] = ()) -> algebra.Select:
        """Apply, in this order: grouping, filters, VALUES, expressions, ordering, projection, slice."""
        computed = {item.name for item in items if item.value is not None}
        given = self._given
        order = tuple(replace(each, expression=self._sampled(each.expression, computed)) for each in given.order)
        having = tuple(self._sampled(each, set()) for each in given.having)
        operator = self._extended(self._filtered(having), items)
        made = algebra.Select(operator, names, order=order, limit=given.limit, offset=given.offset)
        return self._cursor.check_height(made, operator, *(each.expression for each in given.order))

    def _check(self, items: tuple[SelectItem, ...]) -> None:
        taken = {*self.names, *self._keys}
        shown = set(self._keys)
        for item in items:
            if item.value is not None and item.name in taken:
                raise self._cursor.syntax_error("a variable that is not yet in scope", item.token)
            used = {item.name} if item.value is None else set(_used_names(item.value))
            if self._grouped and not used <= shown:
                missing = ", ".join(f"?{name}" for name in sorted(used - shown))
                raise self._cursor.syntax_error(
                    f"no {missing} that is neither grouped by nor in an aggregate", item.token
                )
            shown.add(item.name)

    def _sampled(self, value: Expression, computed: set[str]) -> Expression:
        """Replace a variable that is not a group key by a sample of it."""
        if not self._grouped:
            return value

        def sample(variable: Var) -> Var:
            if variable.name.startswith(".") or variable.name in self._keys | computed:
                return variable
            return Var(
                self._aggregates.setdefault(algebra.Aggregate("sample", variable), f".agg{len(self._aggregates)}")
            )

        return map_variables(value, sample)

    def _filtered(self, having: tuple[Expression, ...]) -> Operator:
        cursor, operator = self._cursor, self._where.whole
        if self._grouped:
            aggregates = tuple((name, each) for each, name in self._aggregates.items())
            below = *(value for _, value in self._given.keys), *self._aggregates
            operator = cursor.check_height(algebra.Group(operator, self._given.keys, aggregates), operator, *below)
        if having:
            operator = cursor.check_height(algebra.Filter(operator, having), operator, *self._given.having)
        return join_all(cursor, (operator, self._given.values)) if self._given.values else operator

    def _extended(self, operator: Operator, items: tuple[SelectItem, ...]) -> Operator:
        for item in items:
            if item.value is not None:
                operator = self._cursor.check_height(
                    algebra.Extend(operator, item.name, item.value), operator, item.value
                )
        return operator


def _used_names(value: Expression) -> Iterator[str]:
    if isinstance(value, Var) and not value.name.startswith((".", "_:")):
        yield value.name
    elif isinstance(value, Apply):
        for each in value.args:
            yield from _used_names(each)


@dataclass(frozen=True)
class SelectClause:
    """The clause between SELECT and the pattern; `star` is the token if all is selected."""

    distinct: bool
    reduced: bool
    star: Token | None
    items: tuple[SelectItem, ...] = ()
    aggregates: dict[algebra.Aggregate, str] = field(default_factory=dict)


def parse_select_clause(cursor: Cursor) -> SelectClause:
    cursor.expect("SELECT")
    distinct = bool(cursor.accept("DISTINCT"))
    reduced = not distinct and bool(cursor.accept("REDUCED"))
    if star := cursor.accept("*"):
        return SelectClause(distinct, reduced, star)
    aggregates: dict[algebra.Aggregate, str] = {}
    return SelectClause(distinct, reduced, None, _items(cursor, aggregates), aggregates)


def parse_select_body(cursor: Cursor, wanted: SelectClause) -> ScopedOperator:
    """Parse the pattern and the modifiers of a SELECT; its projection is in scope after it."""
    level = parse_level(cursor, parse_where(cursor), wanted.aggregates)
    made = level.everything(wanted.star) if wanted.star else level.selection(wanted.items)
    made = cursor.check_height(replace(made, distinct=wanted.distinct, reduced=wanted.reduced), made.inner)
    return ScopedOperator(made, made.projection, made)


def parse_subselect(cursor: Cursor) -> ScopedOperator:
    """Parse a sub-query, from the word SELECT on."""
    return parse_select_body(cursor, parse_select_clause(cursor))


def parse_where(cursor: Cursor) -> ScopedOperator:
    cursor.accept("WHERE")
    cursor.record_span("a query without a triple pattern")
    return parse_group(cursor)


def parse_level(cursor: Cursor, pattern: ScopedOperator, aggregates: dict[algebra.Aggregate, str]) -> SelectLevel:
    """Parse a pattern with its modifiers; `aggregates` are those of the SELECT clause."""
    return SelectLevel(cursor, pattern, parse_modifiers(cursor, aggregates, pattern.names), aggregates)


def _items(cursor: Cursor, aggregates: dict[algebra.Aggregate, str]) -> tuple[SelectItem, ...]:
    found: dict[str, SelectItem] = {}
    cursor.aggregates = aggregates
    while cursor.token.kind == "variable" or cursor.at("("):
        cursor.count_term()
        item = _item(cursor)
        former = found.setdefault(item.name, item)
        if former is not item and (former.value or item.value):
            raise cursor.syntax_error("a variable that is selected once", item.token)
    cursor.aggregates = None
    if not found:
        raise cursor.syntax_error("`*`, a variable or `(`")
    return tuple(found.values())


def _item(cursor: Cursor) -> SelectItem:
    if not cursor.accept("("):
        token = cursor.token
        return SelectItem(parse_variable(cursor), token)
    value = parse_expression(cursor)
    cursor.expect("AS")
    token = cursor.token
    name = parse_variable(cursor)
    cursor.expect(")")
    return SelectItem(name, token, value)
