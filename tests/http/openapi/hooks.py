"""Hooks of schemathesis: bodies that are nearly RDF, names that other requests have used, polls for what has no end.

Loaded by the processes that `tests/http/openapi/fuzzing.py` starts.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import schemathesis
from hypothesis import strategies as st

TURTLE = (
    b"<urn:s> <urn:p> <urn:o> .",
    b'<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>, 2, 2.5, true ; a <urn:C> .',
    b'@prefix ex: <urn:x:> . ex:a ex:b [ ex:c "\xc3\xa9"@en ] , ( 1 2 ) .',
    b"<urn:s> <urn:p> .",
    b"@prefix ex: <urn:x:> . ex:a ex:b nope:c .",
    b"<relative> <urn:p> 1 .",
    b"<urn:s> <urn:p> <<( <urn:a> <urn:b> <urn:c> )>> .",
    b"\xff\xfe<urn:s>",
    b"",
)
QUADS = (
    b"<urn:s> <urn:p> <urn:o> <urn:g:1> .\n",
    b'<urn:s> <urn:p> "1" <urn:g:1> .\n<urn:s> <urn:p> "2" <urn:g:2> .\n',
    b"<urn:s> <urn:p> <urn:o> <urn:g:1> .\nnonsense\n<urn:s> <urn:p> <urn:o> <urn:g:3> .\n",
    b'_:b <urn:p> "a\\u0000b" _:g .\n',
    b"<urn:s> <urn:p> <urn:o> .",
)
TRIG = (
    b"<urn:g:4> { <urn:s> <urn:p> <urn:o> }",
    b'<urn:g:5> <https://triplewire.dev/ns#stream> "a" . <urn:g:5> { <urn:s> <urn:p> 1 }',
    b'<urn:g:6> <https://triplewire.dev/ns#stream> "-" . <urn:g:6> { <urn:s> <urn:p> 1 }',
    b"<urn:g:7> { } <urn:g:8> {",
)
JSON_LD = (
    b'{"@id": "urn:s", "urn:p": [1, 2.5, true, "x"]}',
    b'{"@id": "urn:g:9", "@graph": [{"@id": "urn:s", "urn:p": {"@id": "urn:o"}}]}',
    b'{"@context": "http://example.org/context", "@id": "urn:s"}',
    b'{"@context": {"a": "urn:a"}, "a": {"a": {"a": 1}}}',
    b"[[[[]]]]",
    b"{",
)
RDF_XML = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:">'
    b'<rdf:Description rdf:about="urn:s"><u:p>1</u:p></rdf:Description></rdf:RDF>',
    b'<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>',
    b"<a>",
)
LINES = (
    b'{"event":"urn:e:1","format":"text/turtle","body":"<urn:s> <urn:p> 1 ."}\n',
    b'{"event":"urn:e:1","format":"text/turtle","body":"<urn:s> <urn:p> 2 ."}\n{\n',
    b'{"format":"text/plain","body":"x","headers":{"A":"b"}}\n{"time":"never"}\n[]\n1\n',
    b'{"sparql":"ASK { ?s ?p ?o }"}\n{"sparql":"ASK {"}\n{"kind":1}\n',
    b'{"event":1,"headers":[],"body":{}}\n',
    b'{"query":"SELECT ?s { ?s <urn:p> ?o }","within":"PT1S"}\n{"query":"SELECT ?s {"}\n{"query":1,"span":0}\n',
)
ITEMS = (
    b"Event-Id: urn:e:2\r\nSource-Id: s\r\nSyntax: text/turtle\r\nBody-Length: 19\r\n\r\n<urn:s> <urn:p> 1 .",
    b"Event-Id: 1\r\nBody-Length: 5\r\n\r\n12",
    b"Body-Length: -1\r\n\r\n",
    b"nothing",
)
QUERIES = (
    b"SELECT * { ?s ?p ?o } LIMIT 1",
    b"ASK { ?s <urn:p> 1 }",
    b"SELECT * {",
    b"DELETE WHERE { ?s ?p ?o }",
    b"SELECT ?s { ?s <urn:p> ?o . ?o <urn:p> ?x }",
    b"REGISTER RSTREAM <b> AS SELECT * FROM NAMED WINDOW <w> ON <a> [RANGE PT1M] { WINDOW <w> { ?s ?p ?o } }",
    b"REGISTER ISTREAM <a> AS CONSTRUCT { ?s ?p ?o } FROM NAMED WINDOW <w> ON <a> [RANGE PT0S] { WINDOW <w> {",
    b"\xff",
)
CASES = {
    "text/turtle": TURTLE,
    "application/n-triples": TURTLE,
    "application/n-quads": QUADS,
    "application/trig": TRIG,
    "application/ld+json": JSON_LD,
    "application/rdf+xml": RDF_XML,
    "application/x-ndjson": LINES,
    "application/ztreamy-stream": ITEMS,
    "application/sparql-query": QUERIES,
    "text/plain": QUERIES,
}

for _type, _bodies in CASES.items():
    schemathesis.openapi.media_type(_type, st.sampled_from(_bodies) | st.binary(max_size=64))

USED = ("a", "b")
"""Names that many requests have, so that they meet what others made."""


@schemathesis.hook
def map_path_parameters(context: schemathesis.HookContext, path_parameters: dict[str, Any]) -> dict[str, Any]:
    """Two of three names are ones that were used before. Which, the name decides, so that a run can be repeated."""
    return {name: _used(value) for name, value in path_parameters.items()} if path_parameters else path_parameters


def _used(value: object) -> object:
    chosen = crc32(repr(value).encode(errors="replace")) % 3
    return USED[chosen] if chosen < len(USED) else value


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """What would be told without an end is polled for, and not waited for."""
    told = case.operation.definition.raw["responses"]
    if "text/event-stream" in told.get("200", {}).get("content", {}):
        query = dict(case.query or {})
        query |= {"mode": "poll"} if query.get("mode", "stream") in ("stream", ["stream"], []) else {}
        query |= {"wait": 0} if _long(query.get("wait", 1)) else {}
        case.query = query


def _long(value: object) -> bool:
    try:
        return float(value if isinstance(value, str | int | float) else "no") > 0
    except ValueError:
        return False
