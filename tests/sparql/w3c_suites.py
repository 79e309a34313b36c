"""The W3C's SPARQL test suites, as `make w3c` unpacks them, or in the folder that TRIPLEWIRE_W3C names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pyoxigraph as ox

ROOT = Path(os.environ.get("TRIPLEWIRE_W3C") or Path(__file__).parents[2] / ".w3c").resolve()
MISSING = "no W3C suites: `make w3c` downloads them, or TRIPLEWIRE_W3C names a folder that has them"

_MANIFEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_ACTION = ox.NamedNode(_MANIFEST + "action")


class Syntax(NamedTuple):
    """A query file that must parse, or must not."""

    path: Path
    positive: bool

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def syntax_tests() -> list[Syntax]:
    """Return all syntax tests of all manifests; none if there is no suite."""
    return sorted({test for manifest in ROOT.glob("**/manifest.ttl") for test in _tests(manifest)})


def query_files() -> list[Path]:
    """All query files of all folders."""
    return sorted(ROOT.glob("**/*.rq"))


def _tests(manifest: Path) -> Iterator[Syntax]:
    triples = [quad.triple for quad in ox.parse(path=manifest, format=ox.RdfFormat.TURTLE, base_iri=manifest.as_uri())]
    kinds = {each.subject: str(each.object) for each in triples if each.predicate == _TYPE}
    for each in triples:
        kind = kinds.get(each.subject, "")
        if each.predicate == _ACTION and "SyntaxTest" in kind and isinstance(each.object, ox.NamedNode):
            yield Syntax(Path(unquote(urlsplit(each.object.value).path)), "Positive" in kind)
