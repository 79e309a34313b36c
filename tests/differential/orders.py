"""Orders: how ORDER BY puts two terms, where the specification says so."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any

import pyoxigraph as ox

from tests.conformance.graphs import XSD, Term

_NUMERIC = {XSD + name for name in ("integer", "decimal", "double", "float")}


def compared(one: Term | None, other: Term | None) -> int | None:
    """-1, 0 or 1; None where it is open: of literals that `<` does not compare."""
    if one == other:
        return 0
    kinds = _kind(one), _kind(other)
    if kinds[0] != kinds[1]:
        return _sign(*kinds)
    values = _value(one), _value(other)
    if values[0] is None or values[1] is None or values[0][0] != values[1][0]:
        return None
    return _sign(values[0][1], values[1][1])


def _sign(one: Any, other: Any) -> int:  # noqa: ANN401
    return 1 if one > other else -1 if one < other else 0


def _kind(term: Term | None) -> int:
    return [type(None), ox.BlankNode, ox.NamedNode, ox.Literal].index(type(term))


def _value(term: Term | None) -> tuple[str, Any] | None:
    """What is compared, with the family in which it is."""
    if isinstance(term, ox.NamedNode):
        return "iri", term.value
    if not isinstance(term, ox.Literal) or term.language:
        return None
    datatype = term.datatype.value
    if datatype == XSD + "string":
        return "string", term.value
    if datatype == XSD + "boolean":
        return "boolean", term.value
    if datatype == XSD + "dateTime":
        return _moment(term.value)
    return _number(term.value) if datatype in _NUMERIC else None


def _moment(lexical: str) -> tuple[str, Any] | None:
    try:
        moment = datetime.fromisoformat(lexical)
    except ValueError:
        return None
    return ("moment", moment) if moment.tzinfo else None


def _number(lexical: str) -> tuple[str, Any] | None:
    if lexical in ("INF", "-INF"):
        return "number", float(lexical.replace("INF", "inf"))
    try:
        return "number", Fraction(lexical)
    except ValueError:
        return None
