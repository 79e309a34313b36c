"""Depths: documents nested so deep that a parser would overflow its stack are refused before it sees them."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.parsers import expat

from triplewire.codec.faults import fault_at
from triplewire.codec.syntaxes import JSON_LD, N_QUADS, N_TRIPLES, RDF_XML, TRIG, TURTLE, Syntax
from triplewire.config import limits
from triplewire.errors import InputError, Place

_JSON = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|([\[{])|([\]}])', re.DOTALL)

_TERMS = re.compile(
    rb'"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\''
    rb'|"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"|\'[^\'\\\r\n]*(?:\\.[^\'\\\r\n]*)*\''
    rb"|#[^\r\n]*|\\.|<[^<>\s]*>|(<<)|(>>)",
    re.DOTALL,
)
"""Opening and closing of triple terms; strings, comments, escapes and IRIs are stepped over."""


_ENTITY = re.compile(rb"<!ENTITY[^<]*")


def check_depth(body: bytes, syntax: Syntax) -> None:
    """Raises InputError for a body nested deeper than the limit, or whose XML entities would blow it up."""
    _CHECKS[syntax](body)


def _check_json(body: bytes) -> None:
    if body.count(b"{") + body.count(b"[") > limits.NESTING:
        _check_tokens(body, _JSON)


def _check_terms(body: bytes) -> None:
    if body.count(b"<<") > limits.NESTING:
        _check_tokens(body, _TERMS)


def _check_tokens(body: bytes, tokens: re.Pattern[bytes]) -> None:
    depth = 0
    for found in tokens.finditer(body):
        if found.lastindex:
            depth += 1 if found.lastindex == 1 else -1
            if depth > limits.NESTING:
                raise _too_deep(body, found.start())


def _too_deep(body: bytes, offset: int) -> InputError:
    before = body[:offset]
    place = Place(before.count(b"\n") + 1, offset - before.rfind(b"\n"))
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
    depth = 0

    def opened(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > limits.NESTING:
            raise _too_deep(body, parser.CurrentByteIndex)

    def closed(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        place = Place(error.lineno, error.offset + 1)
        raise fault_at(body, RDF_XML, expat.ErrorString(error.code), place) from None


_CHECKS: dict[Syntax, Callable[[bytes], None]] = {
    TURTLE: _check_terms,
    TRIG: _check_terms,
    N_TRIPLES: _check_terms,
    N_QUADS: _check_terms,
    JSON_LD: _check_json,
    RDF_XML: _check_xml,
}
