"""Graphs: one RDF document, read into memory, and the few questions that manifests and results ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import pyoxigraph as ox

Term: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
Resource: TypeAlias = ox.NamedNode | ox.BlankNode

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"

_UNREGISTERED = {"owl": ox.RdfFormat.RDF_XML, "xml": ox.RdfFormat.RDF_XML, "n3": ox.RdfFormat.TURTLE}
"""Extensions that suites use beside the registered ones."""
_ENOUGH = 64
"""Documents that are kept: most tests of a folder share theirs."""


def path_of(iri: str) -> Path | None:
    """The file that an IRI names; None for one that names none."""
    parts = urlsplit(iri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


@lru_cache(maxsize=_ENOUGH)
def read(path: Path) -> tuple[ox.Quad, ...]:
    """The statements of a document, relative IRIs resolved against its own. Its blank nodes are no other's."""
    extension = path.suffix.removeprefix(".").lower()
    syntax = _UNREGISTERED.get(extension) or ox.RdfFormat.from_extension(extension)
    if syntax is None:
        raise ValueError(f"{path.name} has an extension that stands for no RDF syntax")
    return tuple(ox.parse(path=path, format=syntax, base_iri=path.as_uri(), rename_blank_nodes=True))


@dataclass(frozen=True)
class Graph:
    """A document as a graph; its named graphs, if any, are taken with it."""

    statements: ox.Dataset

    @classmethod
    def read(cls, path: Path) -> Graph:
        return cls(ox.Dataset(read(path)))

    def values(self, subject: Resource, predicate: str) -> list[Term]:
        found = self.statements.quads_for_subject(subject)
        return [each.object for each in found if each.predicate.value == predicate]

    def value(self, subject: Resource, predicate: str) -> Term | None:
        """The one value; any of them where there are more."""
        return next(iter(self.values(subject, predicate)), None)

    def resources(self, subject: Resource, predicate: str) -> list[Resource]:
        return [each for each in self.values(subject, predicate) if isinstance(each, Resource)]

    def subjects(self, predicate: str, value: Term) -> list[Resource]:
        found = self.statements.quads_for_object(value)
        return [
            each.subject for each in found if each.predicate.value == predicate and isinstance(each.subject, Resource)
        ]

    def items(self, head: Term | None) -> Iterator[Term]:
        """The members of a collection, in order."""
        while isinstance(head, Resource) and (first := self.value(head, RDF + "first")) is not None:
            yield first
            head = self.value(head, RDF + "rest")
