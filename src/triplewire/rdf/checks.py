"""Checks of a document before and after the parser sees it.

Before: nesting depth, XML entities and JSON-LD contexts are bounded, because a small document could overflow the
parser's stack or cost far more memory than its size. After: a syntax error of the parser becomes MalformedRdf with
line, column and excerpt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Final
from xml.parsers import expat

import pyoxigraph as ox

from triplewire.model.errors import InputError, MalformedRdf, TextPosition
from triplewire.rdf.syntaxes import JSON_LD, N_QUADS, N_TRIPLES, RDF_XML, TRIG, TURTLE, Syntax

BODY_BYTES: Final = 16 * 1024 * 1024
"""A publish body. One body is parsed in memory: at worst about six times this for one request."""

EXPANDED_BYTES: Final = 64 * 1024 * 1024
"""A publish body as N-Quads. A long prefix used often makes a short body long; at worst 300 MB for one body."""

NESTING: Final = 128
"""Levels of JSON, XML or triple terms in a publish body. Parsers recurse: 20,000 levels overflowed the stack."""

IRI_CHARACTERS: Final = 8_192
"""An IRI, or the base of a document. It is repeated wherever it is used, and relative IRIs are resolved against it: a
base that grows with every step took minutes for a body of 3 MB."""

XML_ATTRIBUTES: Final = 256
"""Attributes of an XML element, with those of the elements around it. Each is compared with all others: 50,000 of them
took minutes."""

CONTEXT_BYTES: Final = 128 * 1024 * 1024
"""Memory of the contexts of one JSON-LD document, each with those around it and its terms expanded: half a second.
200 kB of text could fill memory."""


_PAIR = 100
"""Bytes of a term definition beside its strings, about."""


_MEMBERS = 16
"""Members of a term definition: JSON-LD has thirteen."""


class _Object(list[tuple[str, object]]):
    """A JSON object with all its members, duplicates included."""


@dataclass(frozen=True)
class _OuterContext:
    """The contexts around a value: their memory, the total length of their bases, and whether some are scoped."""

    size: int = 0
    base: int = 0
    scoped: bool = False


def check_contexts(body: bytes) -> None:
    """Raises InputError for JSON-LD contexts over a limit. Malformed JSON is left to the parser.

    Terms may be defined by other terms, and a context inside others begins as a copy of them: a few kilobytes could
    overflow the parser's stack or fill memory.
    """
    # A key may be written with escapes. Few members can do no harm.
    if body.count(b":") <= NESTING or not (b"@context" in body or b"\\u" in body):
        return
    try:
        document = json.loads(body, object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        return
    spent = 0
    for size in _context_sizes(document):
        spent += size
        if spent > CONTEXT_BYTES:
            raise InputError(f"the contexts take more than the limit of {CONTEXT_BYTES} bytes; nest fewer")


def _context_sizes(document: object) -> Iterator[int]:
    """Yield the memory of each context that the parser builds."""
    waiting = [(document, _OuterContext())]
    while waiting:
        value, around = waiting.pop()
        if isinstance(value, _Object):
            for local in _contexts(value):
                around = _enter_context(local, around)
                yield around.size
            if around.scoped:
                yield around.size
        if isinstance(value, list):
            members = (each for _, each in value) if isinstance(value, _Object) else value
            waiting += [(each, around) for each in members if isinstance(each, list)]


def _contexts(value: _Object) -> Iterator[_Object | None]:
    for name, given in value:
        if name == "@context":
            several = given if isinstance(given, list) and not isinstance(given, _Object) else [given]
            yield from (each for each in several if each is None or isinstance(each, _Object))


def _enter_context(local: _Object | None, around: _OuterContext) -> _OuterContext:
    if local is None:
        return _OuterContext()
    base = around.base + sum(len(str(given)) for name, given in local if name == "@base")
    if base > IRI_CHARACTERS:
        raise InputError(f"the base is longer than the limit of {IRI_CHARACTERS} characters")
    inner = [each for _, given in local if isinstance(given, _Object) for each in _contexts(given)]
    size = around.size + _size(local) + sum(_PAIR * len(each or ()) for each in inner)
    return _OuterContext(size, base, around.scoped or bool(inner))


def _size(local: _Object) -> int:
    """Return the memory of a context with its terms expanded. Raises InputError for too long chains of terms."""
    names = dict(local)
    vocabulary = len(str(names.get("@vocab", "")))
    known: dict[str, tuple[int, int]] = {}
    for name in names:
        _follow(name, names, known)
    return sum(length + vocabulary + _PAIR for _, length in known.values())


def _follow(name: str, names: dict[str, object], known: dict[str, tuple[int, int]]) -> None:
    """Record in `known` how many terms a term depends on and how long it becomes, and the same for those."""
    path = [name]
    while path:
        term = path[-1]
        texts = _texts(names[term])
        behind = {each for text in (term, *texts) for each in (text, text.partition(":")[0]) if each in names}
        unknown = behind - known.keys() - set(path)
        if unknown:
            path.append(unknown.pop())
            if len(path) > NESTING:
                raise InputError(f"terms of a context refer to one another over more than {NESTING} steps")
            continue
        path.pop()
        found = [known[each] for each in behind if each in known]
        steps, length = max((s for s, _ in found), default=0), max((n for _, n in found), default=0)
        known[term] = (steps + 1, length + len(term) + sum(map(len, texts)))
        if steps >= NESTING:
            raise InputError(f"terms of a context refer to one another over more than {NESTING} steps")


def _texts(definition: object) -> list[str]:
    """Return the strings of a definition that may name other terms. Raises InputError for too many members."""
    if isinstance(definition, _Object):
        if len(definition) > _MEMBERS:
            raise InputError(f"the definition of a term has more than {_MEMBERS} members")
        return [each for _, each in definition if isinstance(each, str)]
    return [definition] if isinstance(definition, str) else []


_PREFIX = re.compile(r"^Parser error (?:at|between) line .*?: ")
_SHOWN = 72

_PLAIN_REASONS = {
    "No LoadDocumentCallback has been set to load remote contexts": "a remote @context is not fetched; write it out",
    "No scheme found in an absolute IRI": "a relative IRI, without a base to resolve it",
}


def describe_syntax_error(body: bytes, syntax: Syntax, fault: SyntaxError, base_iri: str | None) -> MalformedRdf:
    """Return the error for a body that the parser refused, with its position and an excerpt."""
    place = TextPosition(fault.lineno, fault.offset or 1) if fault.lineno else _find_line(body, syntax, base_iri)
    reason = _PREFIX.sub("", fault.msg)
    return syntax_error_at(body, syntax, _PLAIN_REASONS.get(reason, reason), place)


def syntax_error_at(body: bytes, syntax: Syntax, reason: str, place: TextPosition | None) -> MalformedRdf:
    """Return the error for a reason and a position."""
    if place is None:
        return MalformedRdf(f"this is not {syntax.name}: {reason}")
    return MalformedRdf(f"this is not {syntax.name}: {reason}, at {place}: {excerpt_at(body, place)}", place=place)


def excerpt_at(body: bytes, place: TextPosition) -> str:
    """Return the line at a position, cut to the text around the column."""
    lines = body.split(b"\n", place.line)
    line = lines[place.line - 1].decode(errors="replace") if len(lines) >= place.line else ""
    start = max(0, min(place.column - 1 - _SHOWN // 2, len(line) - _SHOWN))
    cut = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[start : start + _SHOWN].strip())
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(line) else ''}" or "(end of input)"


class _Lines(BytesIO):
    """The body as a file that is read a line at a time, which shows how far the parser came."""

    def read(self, size: int | None = -1, /) -> bytes:
        return self.readline(size)


def _find_line(body: bytes, syntax: Syntax, base_iri: str | None) -> TextPosition | None:
    """Return the line at which the parser failed, for parsers that do not report it."""
    lines = _Lines(body)
    try:
        for _ in ox.parse(lines, format=syntax.format, base_iri=base_iri):
            pass
    except SyntaxError:
        return TextPosition(body.count(b"\n", 0, max(0, lines.tell() - 1)) + 1, 1)
    return None


_JSON = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|([\[{])|([\]}])', re.DOTALL)

_TERMS = re.compile(
    rb'"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\''
    rb'|"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"|\'[^\'\\\r\n]*(?:\\.[^\'\\\r\n]*)*\''
    rb"|#[^\r\n]*|\\.|<[^<>\s]*>|(<<)|(>>)",
    re.DOTALL,
)
"""Opening and closing of triple terms; strings, comments, escapes and IRIs are skipped."""


_BASE = re.compile(rb"\bbase\s*+(?=[<#])", re.IGNORECASE)
_END = re.compile(rb"[\r\n]|\Z")
_BLANKS = re.compile(rb"(?:\s|#[^\r\n]*+)*+")
_ENTITY = re.compile(rb"<!ENTITY[^<]*")


def check_depth(body: bytes, syntax: Syntax) -> None:
    """Raises InputError for a body nested deeper than the limit, or whose XML entities would expand too far."""
    _CHECKS[syntax](body)


def check_nesting(body: bytes) -> None:
    """Raises InputError for JSON nested deeper than the limit."""
    if body.count(b"{") + body.count(b"[") > NESTING:
        _check_tokens(body, _JSON)


def _check_json(body: bytes) -> None:
    check_nesting(body)
    check_contexts(body)


def _check_terms(body: bytes) -> None:
    if body.count(b"<<") > NESTING:
        _check_tokens(body, _TERMS)


def _check_turtle(body: bytes) -> None:
    """Check triple terms and bases. A relative base lengthens the one before it, so that they count together."""
    _check_terms(body)
    if len(body) > IRI_CHARACTERS and _bases(body) > IRI_CHARACTERS:
        raise InputError(f"the bases are longer than the limit of {IRI_CHARACTERS} characters together")


def _bases(body: bytes) -> int:
    """Return the total length of the bases, those in strings included, so that none is missed.

    Each byte is read once, also if comments stand between the keyword and its IRI.
    """
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
            counted, end = at, body.find(b">", at, at + IRI_CHARACTERS + 2)
            total += IRI_CHARACTERS + 1 if end < 0 else end - at
    return total


def _check_tokens(body: bytes, tokens: re.Pattern[bytes]) -> None:
    depth = 0
    for found in tokens.finditer(body):
        if found.lastindex:
            depth += 1 if found.lastindex == 1 else -1
            if depth > NESTING:
                raise _too_deep(body, found.start())


def _too_deep(body: bytes, offset: int) -> InputError:
    before = body[:offset]
    place = TextPosition(before.count(b"\n") + 1, offset - before.rfind(b"\n"))
    return InputError(f"the body is nested deeper than the limit of {NESTING}, at {place}", place=place)


def _check_entities(body: bytes) -> None:
    """Refuse entities that refer to others, the way bombs are built: ten levels of ten are 10¹⁰."""
    references = body.count(b"&")
    for declaration in _ENTITY.findall(body):
        if b"&" in declaration or len(declaration) * references > BODY_BYTES:
            raise InputError("the entities of the DOCTYPE would make the body too large; write their text out")


def _check_xml(body: bytes) -> None:
    _check_entities(body)
    parser = expat.ParserCreate()
    around = [(0, 0)]  # attributes and base characters of all open elements

    def opened(_name: str, attributes: dict[str, str]) -> None:
        if len(around) > NESTING:
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
        raise syntax_error_at(body, RDF_XML, expat.ErrorString(error.code), place) from None
    except (LookupError, ValueError) as error:
        raise syntax_error_at(body, RDF_XML, f"its encoding is not supported: {error}", TextPosition(1, 1)) from None


def _check_element(attributes: int, base: int) -> None:
    if attributes > XML_ATTRIBUTES:
        raise InputError(f"elements inside one another have more than {XML_ATTRIBUTES} attributes together")
    if base > IRI_CHARACTERS:
        raise InputError(f"the base is longer than the limit of {IRI_CHARACTERS} characters")


_CHECKS: dict[Syntax, Callable[[bytes], None]] = {
    TURTLE: _check_turtle,
    TRIG: _check_turtle,
    N_TRIPLES: _check_terms,
    N_QUADS: _check_terms,
    JSON_LD: _check_json,
    RDF_XML: _check_xml,
}
