"""SPARQL 1.1 JSON results: how solutions are written down for whoever asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from triplewire.model.terms import XSD_STRING, is_literal, parse_literal


def document(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> dict[str, Any]:
    """A results document of solutions, each a term or None for every name."""
    bindings = [
        {name: json_term(term) for name, term in zip(names, row, strict=True) if term is not None} for row in rows
    ]
    return {"head": {"vars": list(names)}, "results": {"bindings": bindings}}


def verdict(truth: bool) -> dict[str, Any]:
    """A results document of an `ASK`."""
    return {"head": {}, "boolean": truth}


def json_term(term: str) -> dict[str, str]:
    """A term as SPARQL JSON results write it."""
    if not is_literal(term):
        return {"type": "uri", "value": term[1:-1]}
    parts = parse_literal(term)
    found = {"type": "literal", "value": parts.lexical}
    if parts.language:
        return {**found, "xml:lang": parts.language}
    return found if parts.datatype == XSD_STRING else {**found, "datatype": parts.datatype}
