"""RDF terms are text in canonical N-Triples form, the one form that flows through the system.

`<http://example.org/a>` is an IRI, `"21.5"^^<http://www.w3.org/2001/XMLSchema#double>` a typed literal, `"chaud"@fr` a
language-tagged one, `"plain"` an xsd:string. Canonical text holds no raw tab and no raw newline, so quads can be
joined and split with both. Blank nodes do not occur: they are skolemized when they are published. SPARQL 1.1 JSON
results are written here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TW = "https://triplewire.dev/ns#"
GENID = "urn:triplewire:genid:"
"""The prefix of IRIs that stand for blank nodes."""

XSD_STRING = XSD + "string"
RDF_LANG_STRING = RDF + "langString"
RDF_TYPE = f"<{RDF}type>"

_LITERAL = re.compile(
    r'"(?P<body>(?:[^"\\]|\\.)*)"(?:@(?P<language>[A-Za-z0-9-]+)|\^\^<(?P<datatype>[^>]*)>)?', re.DOTALL
)
_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf"\'\\]))')
_SHORT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True)
class Literal:
    """A literal taken apart: `lexical` is unescaped, `datatype` always set, `language` only where tagged."""

    lexical: str
    datatype: str
    language: str | None = None


def iri(address: str) -> str:
    """The term for an IRI given without its angle brackets."""
    return f"<{address}>"


def is_iri(term: str) -> bool:
    return term.startswith("<") and not term.startswith("<<")


def is_literal(term: str) -> bool:
    return term.startswith('"')


def is_plain(term: str) -> bool:
    """Whether the term is an IRI or an xsd:string, which equal only themselves."""
    return term.endswith('"') or is_iri(term)


def literal(lexical: str, datatype: str = XSD_STRING, language: str | None = None) -> str:
    """The term for a literal, escaped as canonical N-Triples escapes."""
    body = _escaped(lexical)
    if language:
        return f'"{body}"@{language}'
    return f'"{body}"' if datatype == XSD_STRING else f'"{body}"^^<{datatype}>'


def parse_literal(term: str) -> Literal:
    """The parts of a literal's term. Raises ValueError for a term that is not a literal."""
    found = _LITERAL.fullmatch(term)
    if not found:
        raise ValueError(f"not a literal: {term}")
    language = found["language"]
    datatype = RDF_LANG_STRING if language else found["datatype"] or XSD_STRING
    return Literal(_ESCAPE.sub(_unescape, found["body"]), datatype, language)


def plain(term: str) -> str:
    """The value of `STR()`: the address of an IRI, the lexical form of a literal."""
    return parse_literal(term).lexical if is_literal(term) else term[1:-1]


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _SHORT[found[3]]


_NEEDS_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f\ufffe\uffff]')
_NAMED = {"\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f", '"': '\\"', "\\": "\\\\"}


def _escaped(text: str) -> str:
    return _NEEDS_ESCAPE.sub(lambda c: _NAMED.get(c[0], f"\\u{ord(c[0]):04X}"), text)


def results_document(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> dict[str, Any]:
    """A results document of solutions, each a term or None for every name."""
    bindings = [
        {name: json_term(term) for name, term in zip(names, row, strict=True) if term is not None} for row in rows
    ]
    return {"head": {"vars": list(names)}, "results": {"bindings": bindings}}


def boolean_document(truth: bool) -> dict[str, Any]:
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
