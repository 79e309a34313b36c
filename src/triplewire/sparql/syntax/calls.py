"""Calls: functions by name, by the IRI of a type, EXISTS, and aggregates."""

from __future__ import annotations

from collections.abc import Callable

from triplewire.sparql.algebra import Aggregate, Apply, Const, Exists, Expression, Var
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.functions import AGGREGATES, ARITIES, CASTS, KNOWN, KNOWN_CASTS, RESERVED, SAME
from triplewire.sparql.syntax.terms import address, at_iri, string, variable
from triplewire.sparql.syntax.tokens import Token


class Call:
    """One call, if one comes next. `inner` reads the expressions that are its arguments."""

    def __init__(self, cursor: Cursor, inner: Callable[[Cursor], Expression]) -> None:
        self._cursor = cursor
        self._inner = inner

    def parsed(self) -> Expression | None:
        """None, and nothing is taken, where no call begins."""
        cursor = self._cursor
        name = cursor.token
        if name.key == "EXISTS":
            return self._exists()
        if name.key == "NOT" and cursor.following.key == "EXISTS":
            cursor.take()
            inner = self._exists()
            return cursor.over(Apply("!", (inner,)), inner)
        if cursor.following.key != "(":
            return None
        if at_iri(cursor):
            return self._by_iri(name)
        return self._by_name(name) if name.kind == "word" else None

    def _exists(self) -> Expression:
        cursor = self._cursor
        cursor.mark("EXISTS", cursor.expect("EXISTS"))
        found = cursor.rules.group(cursor).whole
        return cursor.over(Exists(found), found)

    def _by_name(self, name: Token) -> Expression | None:
        if name.key in AGGREGATES:
            return self._aggregate(self._cursor.take())
        if name.key in RESERVED:
            return None
        self._cursor.take()
        if name.key == "BOUND":
            return self._bound()
        arguments = self.arguments()
        self._cursor.mark(f"function {name.key}", name)
        if name.key not in ARITIES:
            self._cursor.refuse(f"function {name.key}", name, f"known functions are {KNOWN}")
        else:
            self._check(name, ARITIES[name.key], arguments)
        if name.key in ("IRI", "URI") and self._cursor.base is not None:
            arguments = (*arguments, Const(f"<{self._cursor.base}>"))
        return self._cursor.over(Apply(SAME.get(name.key, name.key.lower()), arguments), *arguments)

    def _by_iri(self, name: Token) -> Expression:
        function = f"<{address(self._cursor)}>"
        distinct = self._cursor.following.key == "DISTINCT"
        arguments = self.arguments(distinct)
        if function not in CASTS or distinct:
            self._cursor.refuse(f"function {function}", name, f"known are {KNOWN_CASTS}")
        else:
            self._check(name, range(1, 2), arguments)
        return self._cursor.over(Apply(function, arguments), *arguments)

    def _bound(self) -> Expression:
        self._cursor.expect("(")
        found = Var(variable(self._cursor, "a variable as the argument of BOUND"))
        self._cursor.expect(")")
        return Apply("bound", (found,))

    def _check(self, name: Token, arity: range, arguments: tuple[Expression, ...]) -> None:
        if len(arguments) not in arity:
            counts = " or ".join(map(str, arity))
            expected = f"{counts} argument{'' if counts == '1' else 's'} for {name.key or name.text}"
            raise self._cursor.wrong(f"{expected}, not {len(arguments)}", name)

    def arguments(self, distinct: bool = False) -> tuple[Expression, ...]:
        """Expressions in parentheses, after the word DISTINCT if it is told."""
        cursor = self._cursor
        cursor.expect("(")
        if distinct:
            cursor.expect("DISTINCT")
        elif cursor.accept(")"):
            return ()
        found = [self._inner(cursor)]
        while cursor.accept(","):
            found.append(self._inner(cursor))
        cursor.expect(")")
        return tuple(found)

    def _aggregate(self, name: Token) -> Expression:
        cursor = self._cursor
        cursor.mark(f"aggregate {name.key}", name)
        outside, cursor.aggregates = cursor.aggregates, None
        if outside is None:
            raise cursor.wrong(
                "no aggregate, as they stand in SELECT, HAVING and ORDER BY and not in one another", name
            )
        cursor.expect("(")
        distinct = bool(cursor.accept("DISTINCT"))
        argument = None if name.key == "COUNT" and cursor.accept("*") else self._inner(cursor)
        separator = self._separator() if name.key == "GROUP_CONCAT" else " "
        cursor.expect(")")
        cursor.aggregates = outside
        found = cursor.over(Aggregate(name.key.lower(), argument, distinct, separator), argument)
        return Var(outside.setdefault(found, f".agg{len(outside)}"))

    def _separator(self) -> str:
        if not self._cursor.accept(";"):
            return " "
        self._cursor.expect("SEPARATOR")
        self._cursor.expect("=")
        return string(self._cursor)
