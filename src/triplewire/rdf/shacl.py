"""SHACL shapes: a document is checked and stored as triples.

Only SHACL Core is accepted: shapes that run programs, or refer to themselves, are refused. Validation runs in a
process of its own, `rdf.shacl_worker`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from triplewire.model.errors import BodyTooLarge, InputError, Unsupported
from triplewire.model.terms import RDF
from triplewire.rdf.parser import decode
from triplewire.rdf.syntaxes import Syntax

SHAPES_BYTES: Final = 1024 * 1024
"""The document of a stream's shapes, and the validation report of one event."""

SHAPES_TRIPLES: Final = 20_000
"""Triples of a stream's shapes: some thousand shapes."""


SH = "http://www.w3.org/ns/shacl#"

_NEVER = (
    *("sparql", "select", "ask", "construct", "update", "prefixes", "validator", "nodeValidator", "propertyValidator"),
    *("rule", "target", "js", "jsLibrary", "jsFunctionName", "expression"),
)
"""Properties that run programs, or are not part of SHACL Core."""
_LEADS = frozenset(
    [f"<{SH}{name}>" for name in ("node", "property", "not", "and", "or", "xone", "qualifiedValueShape")]
    + [f"<{RDF}{name}>" for name in ("first", "rest")]
)
"""Properties by which a shape refers to others."""


def parse_shapes(body: bytes, syntax: Syntax) -> str:
    """Parse all triples of a document, of whatever graph, to lines `subject⇥predicate⇥object`. Blank nodes become IRIs.

    Raises MalformedRdf; BodyTooLarge or InputError over a limit; Unsupported for shapes that run programs, SPARQL
    included, and for shapes that refer to themselves.
    """
    if len(body) > SHAPES_BYTES:
        raise BodyTooLarge("the shapes", SHAPES_BYTES)
    lines = list(dict.fromkeys(line for event in decode(body, syntax) for line in event.text.split("\n")))
    if len(lines) > SHAPES_TRIPLES:
        raise InputError(f"the shapes have {len(lines)} triples, over the limit of {SHAPES_TRIPLES}")
    if not any(f"\t<{SH}" in line for line in lines):
        raise InputError(f"the document has no term of SHACL, {SH}")
    _check_words(lines)
    _check_circles(lines)
    return "\n".join(lines)


def _check_words(lines: Iterable[str]) -> None:
    names = {f"<{SH}{name}>": name for name in _NEVER}
    for line in lines:
        name = names.get(line.split("\t")[1])
        if name is not None:
            raise Unsupported(f"sh:{name}", hint="use shapes of SHACL Core, which run no programs")


def _check_circles(lines: Iterable[str]) -> None:
    leads: dict[str, list[str]] = {}
    for line in lines:
        subject, predicate, obj = line.split("\t")
        if predicate in _LEADS:
            leads.setdefault(subject, []).append(obj)
    if circle := _circle(leads):
        raise Unsupported("a shape that refers to itself", hint=f"{circle} leads back to itself")


def _circle(leads: Mapping[str, list[str]]) -> str | None:
    """Return a node that leads back to itself, if there is one."""
    done, open_ = set[str](), set[str]()
    for start in leads:
        path: list[tuple[str, Iterator[str]]] = [] if start in done else [(start, iter(leads[start]))]
        open_.update(node for node, _ in path)
        while path:
            node, following = path[-1]
            after = next(following, None)
            if after is None:
                path.pop()
                open_.discard(node)
                done.add(node)
            elif after in open_:
                return after
            elif after not in done and after in leads:
                open_.add(after)
                path.append((after, iter(leads[after])))
    return None
