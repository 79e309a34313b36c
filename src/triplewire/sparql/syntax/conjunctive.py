"""Queries that are conjunctions, for those who take nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from triplewire.errors import Unsupported
from triplewire.model.terms import is_literal, parse_literal
from triplewire.sparql.algebra import Apply, Const, Expression, Query, Select
from triplewire.sparql.conjunctions import Conjunction, conjunction
from triplewire.sparql.syntax.queries import parse_query
from triplewire.sparql.syntax.tokens import Source, Token

_TAKEN = (
    "= != < <= > >= && || ! + - * / in str lang datatype bound regex strstarts strends contains "
    "isiri isblank isliteral isnumeric sameterm"
)
_APPLIED = frozenset([*_TAKEN.split(), "not in"])
_MORE = "OPTIONAL UNION MINUS BIND VALUES SERVICE HAVING CONSTRUCT DESCRIBE FROM EXISTS"
_WORDS = {
    **{word: word for word in _MORE.split()},
    "GROUP": "GROUP BY",
    "ORDER": "ORDER BY",
    "NOT": "NOT EXISTS",
}
_TREES = {"Reach(": "property path", "Group(": "an aggregate", "Extend(": "SELECT expression"}
_PARTS = re.compile(r"\\.|-\[", re.DOTALL)
_MISSING = {
    **{f"\\{digit}": "a back-reference" for digit in "123456789"},
    **{f"\\{letter}": f"the character class \\{letter}" for letter in "icIC"},
    "-[": "a subtraction of character classes",
}


@lru_cache(maxsize=512)
def parse(text: str) -> Conjunction:
    """The query as triple patterns and filters. Raises as `parse_query`, and Unsupported where it is more than that."""
    query = parse_query(text)
    found = conjunction(query)
    if found is None:
        raise _refused(text, query)
    for each in found.filters:
        for applied in _applied(each):
            _check(text, applied)
    return found


def _refused(text: str, query: Query) -> Unsupported:
    """The first word of the text that no conjunction has; if there is none, what the tree has."""
    source = Source(text)
    selects = 0
    for token in source.tokens():
        selects += token.key == "SELECT"
        if selects > 1:
            return _at(source, "sub-SELECT", token)
        if token.key in _WORDS and not (token.key == "NOT" and _is_in(source, token)):
            return _at(source, _WORDS[token.key], token)
    shown = repr(query.where.inner if isinstance(query.where, Select) else query.where)
    found = (name for kind, name in _TREES.items() if kind in shown)
    return Unsupported(next(found, "GRAPH in GRAPH or without triple patterns"))


def _is_in(source: Source, token: Token) -> bool:
    return re.match(r"\s*in\b", source.text[token.end :], re.IGNORECASE) is not None


def _at(source: Source, construct: str, token: Token) -> Unsupported:
    return Unsupported(construct, place=source.place(token.offset), excerpt=source.excerpt(token.offset))


def _applied(expression: Expression) -> Iterator[Apply]:
    if isinstance(expression, Apply):
        yield expression
        for each in expression.args:
            yield from _applied(each)


def _check(text: str, applied: Apply) -> None:
    if applied.op not in _APPLIED:
        raise _where(text, f"function {applied.op if applied.op.startswith('<') else applied.op.upper()}", applied)
    if applied.op == "regex":
        construct = _pattern_fault(applied.args[1]) or _flags_fault(applied.args[2:])
        if construct:
            raise _where(text, f"REGEX {construct}", applied)


def _where(text: str, construct: str, applied: Apply) -> Unsupported:
    source = Source(text)
    token = next((each for each in source.tokens() if each.key == applied.op.upper()), None)
    return _at(source, construct, token) if token else Unsupported(construct)


def _pattern_fault(pattern: Expression) -> str:
    """What SPARQL's patterns have and engines have not. What is wrong in any pattern is an error when run."""
    if isinstance(pattern, Const) and is_literal(pattern.term):
        for found in _PARTS.finditer(parse_literal(pattern.term).lexical):
            if construct := _MISSING.get(found[0]):
                return f"with {construct}"
    return ""


def _flags_fault(flags: tuple[Expression, ...]) -> str:
    for each in flags:
        if not isinstance(each, Const):
            return "with flags that are not a constant"
        for flag in parse_literal(each.term).lexical if is_literal(each.term) else "":
            if flag not in "ims":
                return f"flag {flag}"
    return ""
