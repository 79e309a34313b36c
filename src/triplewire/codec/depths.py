"""Depths: documents nested so deep that a parser would overflow its stack are refused before it sees them."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.parsers import expat

from triplewire.codec.contexts import check_contexts
from triplewire.codec.faults import fault_at
from triplewire.codec.syntaxes import JSON_LD, N_QUADS, N_TRIPLES, RDF_XML, TRIG, TURTLE, Syntax
from triplewire.config import limits
from triplewire.model.errors import InputError, TextPosition

_JSON = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|([\[{])|([\]}])', re.DOTALL)

_TERMS = re.compile(
    rb'"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\''
    rb'|"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"|\'[^\'\\\r\n]*(?:\\.[^\'\\\r\n]*)*\''
    rb"|#[^\r\n]*|\\.|<[^<>\s]*>|(<<)|(>>)",
    re.DOTALL,
)
"""Opening and closing of triple terms; strings, comments, escapes and IRIs are stepped over."""


_BASE = re.compile(rb"\bbase\s*+(?=[<#])", re.IGNORECASE)
_END = re.compile(rb"[\r\n]|\Z")
_BLANKS = re.compile(rb"(?:\s|#[^\r\n]*+)*+")
_ENTITY = re.compile(rb"<!ENTITY[^<]*")


def check_depth(body: bytes, syntax: Syntax) -> None:
    """Raises InputError for a body nested deeper than the limit, or whose XML entities would blow it up."""
    _CHECKS[syntax](body)


def check_nesting(body: bytes) -> None:
    """Raises InputError for JSON nested deeper than the limit."""
    if body.count(b"{") + body.count(b"[") > limits.NESTING:
        _check_tokens(body, _JSON)


def _check_json(body: bytes) -> None:
    check_nesting(body)
    check_contexts(body)


def _check_terms(body: bytes) -> None:
    if body.count(b"<<") > limits.NESTING:
        _check_tokens(body, _TERMS)


def _check_turtle(body: bytes) -> None:
    """A base that is relative makes that before it longer, so that they count together."""
    _check_terms(body)
    if len(body) > limits.IRI_CHARACTERS and _bases(body) > limits.IRI_CHARACTERS:
        raise InputError(f"the bases are longer than the limit of {limits.IRI_CHARACTERS} characters together")


def _bases(body: bytes) -> int:
    """How long they are together. What stands in a string may count, too, so that none is missed. Each byte is looked
    at once, also where comments stand between a word and its IRI."""
    total = beyond = counted = 0
    for word in _BASE.finditer(body):
        at = word.end()
        if body[at : at + 1] == b"#":
            if at >= beyond:
                line = _END.search(body, at)
                blanks = _BLANKS.match(body, len(body) if line is None else line.start())
                beyond = len(body) if blanks is None else blanks.end()
            at = beyond
        if at != counted and body[at : at + 1] == b"<":
            counted, end = at, body.find(b">", at, at + limits.IRI_CHARACTERS + 2)
            total += limits.IRI_CHARACTERS + 1 if end < 0 else end - at
    return total


def _check_tokens(body: bytes, tokens: re.Pattern[bytes]) -> None:
    depth = 0
    for found in tokens.finditer(body):
        if found.lastindex:
            depth += 1 if found.lastindex == 1 else -1
            if depth > limits.NESTING:
                raise _too_deep(body, found.start())


def _too_deep(body: bytes, offset: int) -> InputError:
    before = body[:offset]
    place = TextPosition(before.count(b"\n") + 1, offset - before.rfind(b"\n"))
    return InputError(f"the body is nested deeper than the limit of {limits.NESTING}, at {place}", place=place)


def _check_entities(body: bytes) -> None:
    """Entities that stay small. One that refers to another is how bombs are built: ten levels of ten are 10¹⁰."""
    references = body.count(b"&")
    for declaration in _ENTITY.findall(body):
        if b"&" in declaration or len(declaration) * references > limits.BODY_BYTES:
            raise InputError("the entities of the DOCTYPE would make the body too large; write their text out")


def _check_xml(body: bytes) -> None:
    _check_entities(body)
    parser = expat.ParserCreate()
    around = [(0, 0)]  # attributes, and characters of bases, of all that are open

    def opened(_name: str, attributes: dict[str, str]) -> None:
        if len(around) > limits.NESTING:
            raise _too_deep(body, parser.CurrentByteIndex)
        count, base = around[-1]
        around.append((count + len(attributes), base + len(attributes.get("xml:base", ""))))
        _check_element(*around[-1])

    def closed(_name: str) -> None:
        around.pop()

    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        place = TextPosition(error.lineno, error.offset + 1)
        raise fault_at(body, RDF_XML, expat.ErrorString(error.code), place) from None
    except (LookupError, ValueError) as error:
        raise fault_at(body, RDF_XML, f"its encoding is not taken: {error}", TextPosition(1, 1)) from None


def _check_element(attributes: int, base: int) -> None:
    if attributes > limits.XML_ATTRIBUTES:
        raise InputError(f"elements inside one another have more than {limits.XML_ATTRIBUTES} attributes together")
    if base > limits.IRI_CHARACTERS:
        raise InputError(f"the base is longer than the limit of {limits.IRI_CHARACTERS} characters")


_CHECKS: dict[Syntax, Callable[[bytes], None]] = {
    TURTLE: _check_turtle,
    TRIG: _check_turtle,
    N_TRIPLES: _check_terms,
    N_QUADS: _check_terms,
    JSON_LD: _check_json,
    RDF_XML: _check_xml,
}
