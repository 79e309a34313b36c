"""Threat: a publisher whose JSON-LD is small, and whose contexts are not. Terms that are defined by one another
follow
each other on the stack, which ends the process; a prefix is written out for each term; a context inside of others
holds
a copy of them. What stops it: what contexts would take is counted before a parser sees them.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from triplewire.model.errors import InputError
from triplewire.rdf import JSON_LD, decode
from triplewire.rdf.checks import IRI_CHARACTERS


def context(pairs: Iterable[tuple[str, str]], rest: str = "") -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + rest + "}"


def text(of: str) -> str:
    return f'"{of}"'


def document(of: str, rest: str = '"x:p":1') -> bytes:
    return f'{{"@context":{of},"@id":"x:s",{rest}}}'.encode()


def chain(length: int, key: str = "") -> str:
    """Each term is said by the one before it."""
    said = (text(f"t{n}:a") if not key else f'{{"@id":"x:{n}","{key}":"t{n}"}}' for n in range(length))
    return context([("t0", text("http://e/")), *((f"t{n + 1}", each) for n, each in enumerate(said))])


MANY = [(f"t{n}", text(f"http://example.org/{n}")) for n in range(1_500)]
PREFIXED = [(f"t{n}", text("p:a")) for n in range(2_000)]
BOMBS = {
    "a chain": document(chain(8_000)),
    "a chain of types": document(chain(8_000, "@type")),
    "a chain of indices": document(chain(8_000, "@index")),
    "a chain, by escapes": document(chain(8_000)).replace(b"@context", b"\\u0040context"),
    "a chain that another member hides": document(chain(8_000), '"@context":{}'),
    "a long prefix": document(context([("p", text("http://e/" + "a" * 100_000)), *PREFIXED])),
    "a long vocabulary": document(context([("@vocab", text("http://e/" + "a" * 100_000)), *MANY])),
    "contexts in a context": document(
        context(MANY), '"@graph":[' + ",".join(['{"@context":{"z":"x:z"},"@id":"x:t","z":1}'] * 2_000) + "]"
    ),
    "contexts of a term": document(
        context(MANY, ',"p":{"@id":"x:p","@context":{"z":"x:z"}}'),
        '"@graph":[' + ",".join(['{"@id":"x:t","p":{"z":1}}'] * 2_000) + "]",
    ),
    "an array of contexts": document("[" + ",".join([context(MANY)] * 100) + "]"),
    "a long base": document(context([("@base", text("http://e/" + "a" * IRI_CHARACTERS)), *MANY])),
    "a definition without an end": document('{"t":{' + ",".join('"@id":"x:a"' for _ in range(200)) + "}}"),
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
def test_contexts_that_would_grow_are_refused(body: bytes) -> None:
    with pytest.raises(InputError, match=r"context|base|definition"):
        decode(body, JSON_LD)


TAKEN = {
    "many terms": document(context(MANY), '"t7":1'),
    "many terms of a prefix": document(context([("p", text("http://example.org/")), *PREFIXED]), '"t7":1'),
    "a short chain": document(chain(100), '"t100":1'),
    "a context for each of many": b"[" + b",".join([document(context(MANY[:10]), '"t7":1')] * 500) + b"]",
}


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
def test_contexts_as_they_are_used_are_taken(body: bytes) -> None:
    (event,) = decode(body, JSON_LD)
    assert event.text.count("\n") == 0


@pytest.mark.parametrize("where", ['"@context":"{}"', '"@context":[{{}},"{}"]', '"@context":{{"@import":"{}"}}'])
def test_a_context_of_elsewhere_is_never_fetched(where: str) -> None:
    """Threat: an edge that asks an address for whoever publishes."""
    body = "{" + where.format("http://127.0.0.1:9/context") + ',"@id":"x:s","x:p":1}'
    with pytest.raises(InputError, match="remote"):
        decode(body.encode(), JSON_LD)
