"""Datasets: the graphs that a case is asked on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import urljoin

import pyoxigraph as ox

from tests.conformance import graphs
from tests.conformance.graphs import path_of
from tests.conformance.manifests import Case

_SKIPPED = r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_FROM = re.compile(
    rf"(?P<skip>{_SKIPPED})|(?P<from>(?<![?$:\w])FROM\s+(?:NAMED\s+)?)?<(?P<iri>[^<>\"{{}}|^`\\\s]*)>|#[^\n]*",
    re.IGNORECASE | re.DOTALL,
)
_BASE = re.compile(r"\bBASE\s*<([^>]*)>", re.IGNORECASE)


@dataclass(frozen=True)
class Dataset:
    """A default graph and named ones by IRI; blank nodes of one document are the same wherever it is.

    `spare` are graphs that only a query that names them may use.
    """

    default: tuple[ox.Triple, ...] = ()
    named: Mapping[str, tuple[ox.Triple, ...]] = field(default_factory=dict)
    spare: Mapping[str, tuple[ox.Triple, ...]] = field(default_factory=dict)


def load(case: Case, query: str) -> Dataset:
    """What the manifest gives, and the documents that the query itself names by FROM."""
    named: dict[str, tuple[ox.Triple, ...]] = {}
    for name, document in case.graphs:
        named[name] = (*named.get(name, ()), *_triples(document))
    spare = {iri: tuple(_triples(iri)) for iri in sources(query, case.query or "") if iri not in named}
    return Dataset(tuple(chain.from_iterable(map(_triples, case.data))), named, spare)


def sources(query: str, base: str) -> Iterator[str]:
    """The IRIs after FROM and FROM NAMED, resolved. Only names of files are of use, so prefixes are not expanded."""
    declared = _BASE.search(query)
    against = urljoin(base, declared[1]) if declared else base
    for found in _FROM.finditer(query):
        if found["from"]:
            yield urljoin(against, found["iri"])


def _triples(iri: str) -> Iterable[ox.Triple]:
    path = path_of(iri)
    if path is None or not path.is_file():
        return ()
    return dict.fromkeys(quad.triple for quad in graphs.read(path))
