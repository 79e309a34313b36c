"""Solutions that came from elsewhere as SPARQL JSON results, checked and made into our own terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import orjson

from triplewire.errors import Unavailable
from triplewire.model.terms import XSD_STRING, iri, literal

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")

Row = tuple[str | None, ...]


def solutions(body: bytes, names: Sequence[str], source: str) -> tuple[Row, ...]:
    """A row for each solution, with a term or None for each name. Blank nodes are those of the source alone.

    Raises Unavailable for what is no such document.
    """
    blanks = Blanks()
    try:
        bindings = orjson.loads(body)["results"]["bindings"]
        return tuple(
            tuple(_term(binding[name], blanks) if name in binding else None for name in names) for binding in bindings
        )
    except (orjson.JSONDecodeError, LookupError, TypeError, ValueError) as error:
        raise Unavailable(f"{source} gave no SPARQL JSON results: {error}") from None


class Blanks:
    """Blank nodes of one document. Their labels must not meet ours, nor those of another document."""

    def __init__(self) -> None:
        self._prefix = f"_:s{uuid4().hex}n"
        self._found: dict[str, str] = {}

    def of(self, label: str) -> str:
        return self._found.setdefault(label, f"{self._prefix}{len(self._found)}")


def _term(term: Mapping[str, Any], blanks: Blanks) -> str:
    kind, value = term["type"], _text(term["value"])
    if kind == "uri":
        return iri(_matched(_IRI, value))
    if kind == "bnode":
        return blanks.of(value)
    if kind not in ("literal", "typed-literal"):
        raise ValueError(f"a term of type {kind!r}")
    if "xml:lang" in term:
        return literal(value, language=_matched(_TAG, _text(term["xml:lang"])).lower())
    return literal(value, _matched(_IRI, _text(term.get("datatype", XSD_STRING))))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where a text must be")
    return value


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text[:60]!r} in a place where it cannot be")
    return text
