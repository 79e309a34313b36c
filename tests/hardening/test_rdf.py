"""Threat: a publisher whose RDF is written to hurt its reader: entities of XML that refer to one another or to
files,
contexts of JSON-LD that name addresses, IRIs and literals without an end, collections in collections, bases that
grow
with each step. A body is small, and what it takes is not; or it makes an edge read what only the edge can reach.
What
stops it: sizes, depths and lengths have limits that are looked at before a parser sees the body or while it is
written
out; nothing is ever fetched.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from tests.hardening.wires import alive
from tests.http.harness import House, house, run
from triplewire.rdf.checks import IRI_CHARACTERS

TURTLE, JSON_LD, XML, QUADS = "text/turtle", "application/ld+json", "application/rdf+xml", "application/n-quads"
RDF = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
LONG = IRI_CHARACTERS + 1


def xml(content: bytes, doctype: bytes = b"") -> bytes:
    return b'<?xml version="1.0"?>' + doctype + RDF + content + b"</rdf:RDF>"


def said(value: bytes) -> bytes:
    return b'<rdf:Description rdf:about="http://e/s"><e:p>' + value + b"</e:p></rdf:Description>"


def entities(*declared: bytes) -> bytes:
    return b"<!DOCTYPE r [" + b"".join(b"<!ENTITY %b>" % each for each in declared) + b"]>"


LAUGHS = [b'a0 "%b"' % (b"x" * 100), *(b'a%d "%b"' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))]
HOSTILE = {
    "entities of entities": (XML, xml(said(b"&a9;"), entities(*LAUGHS))),
    "entities of entities, hidden": (XML, xml(said(b"&b;"), entities(b'a "xx"', b'b "&#38;a;&#38;a;"'))),
    "entities of entities in UTF-16": (
        XML,
        xml(said(b"&a9;"), entities(*LAUGHS)).decode().replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16"),
    ),
    "a long entity, often": (XML, xml(said(b"&a;" * 100_000), entities(b'a "%b"' % (b"x" * 100_000)))),
    "an entity from a file": (XML, xml(said(b"&x;"), entities(b'x SYSTEM "file:///etc/passwd"'))),
    "an entity from an address": (XML, xml(said(b"&x;"), entities(b'x SYSTEM "http://127.0.0.1:9/"'))),
    "declarations from an address": (
        XML,
        xml(said(b"1"), b'<!DOCTYPE r [<!ENTITY % x SYSTEM "http://127.0.0.1:9/"> %x;]>'),
    ),
    "elements in elements": (XML, b"<a>" * 100_000),
    "attributes": (XML, xml(b"<e:T " + b" ".join(b'e:a%d="1"' % n for n in range(50_000)) + b"/>")),
    "namespaces": (XML, xml(b"<e:T " + b" ".join(b'xmlns:e%d="x:"' % n for n in range(50_000)) + b"/>")),
    "bases in bases": (XML, xml(b'<e:T xml:base="%b/"><e:p>' % (b"a" * 200) * 60)),
    "a context from an address": (JSON_LD, b'{"@context":"http://127.0.0.1:9/","@id":"x:s","x:p":1}'),
    "terms of terms": (
        JSON_LD,
        b'{"@context":{"t0":"x:",' + b",".join(b'"t%d":"t%d:a"' % (n + 1, n) for n in range(20_000)) + b'},"t1:a":1}',
    ),
    "nodes in nodes": (JSON_LD, b'{"x:p":' * 50_000),
    "bases of bases": (TURTLE, b"@base <x:a/> ." + b"@base <b/c/d/> ." * 100_000 + b"<a> <b> <c> ."),
    "bases of bases, hidden": (TURTLE, b"BASE <x:a/>" + b"bAsE#<\n<b/c/d/>" * 100_000 + b"<a> <b> <c> ."),
    "bases behind strings": (TURTLE, b"@base <x:a/> .\n" + b'<a> <b> "base #" . @base <b/c/d/> .\n' * 50_000),
    "terms in terms": (TURTLE, b"<x:s> <x:p> " + b"<<( <x:a> <x:b> " * 20_000),
    "formulas in formulas": (TURTLE, b"<x:s> <x:p> " + b"{" * 1_000_000),
    "a prefix written out": (TURTLE, b"@prefix p: <x:" + b"a" * 8_000 + b"> ." + b"p:a p:b p:c .\n" * 4_000),
    "an IRI": (TURTLE, b"<x:s> <x:p> <x:" + b"a" * LONG + b">."),
    "a name": (TURTLE, b"@prefix p: <x:> . p:" + b"a" * LONG + b" <x:p> 1 ."),
    "a datatype": (TURTLE, b'<x:s> <x:p> "1"^^<x:' + b"a" * LONG + b"> ."),
    "a language": (TURTLE, b'<x:s> <x:p> "1"@en-' + b"abcdefgh-" * LONG + b"x ."),
    "an IRI without an end": (QUADS, b"<x:" + b"a" * 10_000_000),
    "a literal without an end": (TURTLE, b'<x:s> <x:p> """' + b"a" * 10_000_000),
    "quotes": (TURTLE, b"'" * 10_000_000),
    "angles": (TURTLE, b"<" * 10_000_000),
    "a body of nothing": (QUADS, b"\n" * 10_000_000),
}
PASSWORDS = Path("/etc/passwd").read_bytes().splitlines()[0] if Path("/etc/passwd").exists() else b"root:"


async def published(home: House, media_type: str, data: bytes) -> tuple[int, bytes]:
    said = {"Content-Type": media_type}
    async with home.session.post(home.url + "/streams/a", data=BytesIO(data), headers=said) as response:
        return response.status, await response.read()


@pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE)
def test_rdf_that_is_written_to_hurt_is_refused(case: tuple[str, bytes]) -> None:
    async def scene() -> None:
        async with house() as home:
            status, told = await published(home, *case)
            assert status in (400, 413), told[:500]
            assert PASSWORDS not in told
            assert home.twin.log.head() == 0
            await alive(home)

    run(scene())


TAKEN = {
    "words in comments": (TURTLE, b"base #" * 500_000 + b"\n<x:a/> <x:s> <x:p> 1 ."),
    "words in many comments": (TURTLE, b"#base #\n" * 500_000 + b"<x:s> <x:p> 1 ."),
    "a literal of signs": (TURTLE, b'<x:s> <x:p> "' + (b"@" * 8_000 + b" ") * 500 + b'".'),
    "a long literal": (TURTLE, b'<x:s> <x:p> "' + b"a" * 4_000_000 + b'".'),
    "a literal that looks like an IRI": (TURTLE, b'<x:s> <x:p> "<' + b"a" * 4 * LONG + b'".'),
    "a long number": (TURTLE, b"<x:s> <x:p> " + b"9" * 100_000 + b"."),
    "collections in collections": (TURTLE, b"<x:s> <x:p> " + b"(" * 5_000 + b")" * 5_000 + b"."),
    "blank nodes in blank nodes": (TURTLE, b"<x:s> <x:p> " + b"[<x:p> " * 5_000 + b"1" + b"]" * 5_000 + b"."),
    "a declaration from an address, which is not read": (
        XML,
        xml(said(b"1"), b'<!DOCTYPE r SYSTEM "http://127.0.0.1:9/">'),
    ),
    "an entity": (XML, xml(said(b"&a;"), entities(b'a "text"'))),
}


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN)
def test_what_merely_looks_like_it_is_taken(case: tuple[str, bytes]) -> None:
    async def scene() -> None:
        async with house() as home:
            status, told = await published(home, *case)
            assert status == 201, told[:500]

    run(scene())
