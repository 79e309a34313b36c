"""Structures: what is left of a query when the constants that do not shape its plan are taken out.

Queries of one structure share their SQL but for these constants. It is compiled once, with stand-ins that are like the
constants in all that the compiler looks at and that nobody else would write; each place in the SQL where one of them
is found, in one of the forms in which the compiler writes it, is then a slot to be filled.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from triplewire.config import limits
from triplewire.model.terms import XSD, literal, parse_literal
from triplewire.sparql.algebra import Apply, Const, Expression, Node, Query, Var
from triplewire.sparql.compile.statics import as_float, static
from triplewire.sparql.parameters import replaced

_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_MOST = 16_000_000
"""Whole numbers up to here are exact as floats, so that the plan does not depend on which it is."""

_SLOTS = 100
"""Constants of a query that are taken out at most: stand-ins for numbers differ in two digits."""

_CORES = ("urn:x-slot:", "73009", "2999-12-31")
"""What stand-ins hold. A query that holds it, too, is a structure of its own."""

_LONGEST = 4 * limits.REMEMBERED_QUERY_CHARACTERS
"""Characters of the algebra of a query that has a structure: it is some four times as long as the text."""

_NUMBER = re.compile(r"(0|[1-9][0-9]{0,7})(\.[0-9]*[1-9])?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_LITERAL = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True)
class Lifted:
    """A query with stand-ins, and for each form in which one is written what is to be written instead."""

    structure: Query
    fillings: dict[str, str]


@dataclass(frozen=True)
class Template:
    """SQL in pieces: every second one is a slot, named by the form of the stand-in that was there."""

    pieces: tuple[str, ...]

    def filled(self, fillings: dict[str, str]) -> str:
        filled = list(self.pieces)
        filled[1::2] = [f"'{fillings[name]}'" for name in self.pieces[1::2]]
        return "".join(filled)


def lift(query: Query) -> Lifted | None:
    """The structure of a query. Constants that might shape the plan stay in it. None of one that is too long to be
    remembered."""
    written = repr(query)
    if len(written) > _LONGEST:
        return None
    if any(core in written for core in _CORES):
        return Lifted(query, {})
    lifting = _Lifting()
    return Lifted(replaced(query, lifting.node, lifting.expression), lifting.fillings)


def template(sql: str, slots: Collection[str]) -> Template | None:
    """The slots in SQL that was compiled from a structure; None if a stand-in is there in a form that is not known."""
    pieces, end = [""], 0
    for found in _LITERAL.finditer(sql):
        pieces[-1] += sql[end : found.start()]
        end = found.end()
        if found[1] in slots:
            pieces += [found[1], ""]
        else:
            pieces[-1] += found[0]
    pieces[-1] += sql[end:]
    if any(core in piece for piece in pieces[::2] for core in _CORES):
        return None
    return Template(tuple(pieces))


@dataclass
class _Lifting:
    """One walk over a query. Each constant has a stand-in of its own, in the order in which they are met."""

    fillings: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def node(self, node: Node) -> Node:
        return self._lifted(node) if isinstance(node, Const) and node.term.startswith("<") else node

    def expression(self, expression: Expression) -> Expression:
        """Only constants that are compared with a variable are taken out."""
        match expression:
            case Apply(op, (Var() as left, Const() as right)) if op in _COMPARISONS:
                return Apply(op, (left, self._lifted(right)))
            case Apply("&&" | "||" | "!", args):
                return replace(expression, args=tuple(self.expression(each) for each in args))
        return expression

    def _lifted(self, constant: Const) -> Const:
        forms = _forms(constant.term)
        if forms is None or self._count >= _SLOTS or set("'\\") & set(constant.term):
            return constant
        stand_in = _stand_in(constant.term, self._count)
        slots = _forms(stand_in)
        if slots is None:
            return constant
        self._count += 1
        self.fillings |= zip(slots, forms, strict=True)
        return Const(stand_in)


def _forms(term: str) -> tuple[str, ...] | None:
    """How the compiler writes a constant: as a term, and what it makes of its value. None if it may shape the plan."""
    if term.startswith("<"):
        return (term,)
    parts = parse_literal(term)
    if parts.datatype == XSD + "integer" or parts.datatype == XSD + "decimal":
        return _number_forms(term, parts.lexical)
    time = static(term).time
    if parts.datatype == XSD + "dateTime" and time is not None and _TIME.fullmatch(parts.lexical):
        return term, parts.lexical, time.isoformat(" ")
    return None


def _number_forms(term: str, lexical: str) -> tuple[str, ...] | None:
    found = _NUMBER.fullmatch(lexical)
    value = float(lexical) if found else 0.0
    if found is None or value > _MOST or as_float(value) != value:
        return None
    return term, lexical, f"{found[1]}.0"


def _stand_in(term: str, number: int) -> str:
    """Another constant of the same kind. The fraction of a number stays: it is written by itself."""
    if term.startswith("<"):
        return f"<urn:x-slot:{number}>"
    parts = parse_literal(term)
    if parts.datatype == XSD + "dateTime":
        return literal(f"2999-12-31T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z", parts.datatype)
    _, point, fraction = parts.lexical.partition(".")
    return literal(f"{7_300_900 + number}{point}{fraction}", parts.datatype)
