"""Comparisons: is the answer the expected one, up to the names of blank nodes?

Literals of one numeric datatype, and booleans, compare by value; doubles and floats to the digits that no order of
additions changes. All else compares as terms, language tags without regard to case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyoxigraph as ox

from tests.conformance.graphs import XSD, Term
from tests.conformance.results import Answer, Cells, Expected, Rows, Triples

Key: TypeAlias = ox.BlankNode | str
"""A blank node, or a text that is the same exactly for terms that compare equal."""
Row: TypeAlias = frozenset[tuple[str, Key]]
"""What a solution binds."""

_SHOWN = 2
"""Rows of each kind in a reason: enough to see what is wrong."""
_DIGITS = {"float": 6, "double": 12}
_EXACT = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*?)0*)?")
_FLOATING = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN")
_BOOLEAN = {"1": "true", "0": "false"}
_WHOLE = ("integer", "decimal", "long", "int", "short", "byte")


def difference(expected: Expected, actual: Answer, *, lax: bool = False) -> str | None:
    """Why the answer is not the expected one; None where it is. `lax` lets duplicates be missing."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return None if expected is actual else f"expected {_brief(expected)}, got {_brief(actual)}"
    if isinstance(expected, Triples) != isinstance(actual, Triples):
        return f"expected {_brief(expected)}, got {_brief(actual)}"
    if _names(expected) != _names(actual):
        return f"expected the variables {sorted(_names(expected))}, got {sorted(_names(actual))}"
    plain = isinstance(expected, Cells)
    ordered = isinstance(expected, Rows) and expected.ordered
    return _compared(_rows(expected, plain), _rows(actual, plain), lax=lax, ordered=ordered)


def _names(answer: Rows | Cells | Triples) -> set[str]:
    return set() if isinstance(answer, Triples) else set(answer.names)


def _brief(answer: Expected) -> str:
    if isinstance(answer, Triples):
        return f"{len(answer.triples)} triples"
    return str(answer).lower() if isinstance(answer, bool) else f"{len(answer.rows)} rows"


def _rows(answer: Rows | Cells | Triples, plain: bool) -> list[Row]:
    """The rows of any answer; a graph is the set of its triples. `plain` keeps no more of terms than CSV does."""
    if isinstance(answer, Triples):
        return [frozenset(zip("spo", map(key, each), strict=True)) for each in answer.triples]
    if isinstance(answer, Cells):
        return [_bound(answer.names, [_cell(text) for text in row]) for row in answer.rows]
    keyed = _plain if plain else key
    return [_bound(answer.names, [None if term is None else keyed(term) for term in row]) for row in answer.rows]


def _bound(names: Sequence[str], keys: Sequence[Key | None]) -> Row:
    return frozenset((name, each) for name, each in zip(names, keys, strict=True) if each is not None)


def _compared(expected: list[Row], actual: list[Row], *, lax: bool, ordered: bool) -> str | None:
    seen, wanted = Counter(map(_unnamed, actual)), Counter(map(_unnamed, expected))
    missing, extra = wanted - seen, seen - wanted
    if extra or (missing and not lax) or set(missing) - set(seen):
        return f"missing {_shown(missing)}; not expected {_shown(extra)}"
    if _canonical(_numbered(expected, lax=lax, ordered=ordered)) != _canonical(
        _numbered(actual, lax=lax, ordered=ordered)
    ):
        return "the rows come in another order" if ordered else "blank nodes are shared in another way"
    return None


def _unnamed(row: Row) -> frozenset[tuple[str, str]]:
    """The row with all blank nodes alike: what is necessary for equality, and says most where it fails."""
    return frozenset((name, each if isinstance(each, str) else "_:") for name, each in row)


def _shown(rows: Counter[frozenset[tuple[str, str]]]) -> str:
    texts = [" ".join(f"?{name}={each}" for name, each in sorted(row)) or "()" for row in rows]
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return (", ".join(f"[{text}]" for text in texts[:_SHOWN]) or "none") + more


def _numbered(rows: list[Row], *, lax: bool, ordered: bool) -> Iterable[tuple[Row, int]]:
    """Rows with what else must be the same of them: their place, how often they come, or nothing."""
    if ordered:
        return [(row, place) for place, row in enumerate(rows)]
    return [(row, 1 if lax else count) for row, count in Counter(rows).items()]


def _canonical(rows: Iterable[tuple[Row, int]]) -> ox.Dataset:
    """The rows as a graph, a node for each, with canonical names for blank nodes: equal for equal bags."""
    graph = ox.Dataset()
    for row, number in rows:
        node = ox.BlankNode()
        graph.add(ox.Quad(node, ox.NamedNode("urn:number"), ox.Literal(str(number))))
        for name, each in row:
            value = ox.Literal(each) if isinstance(each, str) else each
            graph.add(ox.Quad(node, ox.NamedNode(f"urn:variable:{name}"), value))
    graph.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return graph


def key(term: Term) -> Key:
    """What of a term is compared. Blank nodes inside of triple terms count by name."""
    if isinstance(term, ox.BlankNode):
        return term
    if not isinstance(term, ox.Literal):
        return str(term)
    if term.language:
        return str(ox.Literal(term.value, language=term.language.lower()))
    return f'"{_value(term.value, term.datatype.value)}"^^{term.datatype}'


def _value(lexical: str, datatype: str) -> str:
    """A text that is the same for all lexical forms of one value."""
    name = datatype.removeprefix(XSD) if datatype.startswith(XSD) else ""
    if name == "boolean":
        return _BOOLEAN.get(lexical, lexical)
    if name in _DIGITS and _FLOATING.fullmatch(lexical):
        return f"{float(lexical.replace('INF', 'inf')):.{_DIGITS[name] - 1}e}"
    if name in _WHOLE or name.startswith(("unsigned", "nonNegative", "nonPositive", "positive", "negative")):
        return _exact(lexical)
    return lexical


def _exact(lexical: str) -> str:
    found = _EXACT.fullmatch(lexical)
    if not found or not any(each.isdigit() for each in lexical):
        return lexical
    digits = f"{found[2] or '0'}.{found[3] or '0'}"
    return f"-{digits}" if found[1] == "-" and digits != "0.0" else digits


def _plain(term: Term) -> Key | None:
    if isinstance(term, ox.BlankNode):
        return term
    return _cell(str(term) if isinstance(term, ox.Triple) else term.value)


def _cell(text: str) -> Key | None:
    """A cell of CSV, which does not tell a number from its text; empty and unbound are one."""
    if text.startswith("_:"):
        return ox.BlankNode(text.removeprefix("_:"))
    return _value(text, XSD + "double") if _FLOATING.fullmatch(text) else text or None
