"""Manifests: which cases a suite has, and what each is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyoxigraph as ox

from tests.conformance.graphs import RDF, RDFS, Graph, Resource, Term, path_of

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_APPROVALS = ("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#approval", "http://www.w3.org/ns/rdftest#approval")
_REGIME = "http://www.w3.org/ns/sparql-service-description#entailmentRegime"


class Kind(StrEnum):
    EVALUATION = "evaluation"
    SYNTAX = "syntax"
    UPDATE = "update"
    OTHER = "other"
    """Of protocols, service descriptions and whatever else has no query and answer."""


@dataclass(frozen=True)
class Case:
    """One entry of a manifest. Documents are named by IRI: those of files where the suite gives files."""

    name: str
    """Unique: the folder in its suite, and the entry in it."""
    label: str
    type: str
    """The local name of the entry's class."""
    query: str | None
    data: tuple[str, ...] = ()
    graphs: tuple[tuple[str, str], ...] = ()
    """Named graphs, each with the document that holds it."""
    result: str | None = None
    lax: bool = False
    """May duplicates be missing?"""
    remote: bool = False
    """Are other endpoints asked?"""
    withdrawn: bool = False
    regimes: tuple[str, ...] = ()
    """The entailment regimes, by local name, under any of which the result is right. None is simple entailment."""

    @property
    def kind(self) -> Kind:
        if "Update" in self.type:
            return Kind.UPDATE
        if self.type in ("QueryEvaluationTest", "CSVResultFormatTest"):
            return Kind.EVALUATION
        return Kind.SYNTAX if self.type.startswith(("PositiveSyntaxTest", "NegativeSyntaxTest")) else Kind.OTHER

    @property
    def negative(self) -> bool:
        return self.type.startswith("Negative")


class NoManifest(Exception):
    """A folder in which, and below which, there is no manifest."""


def find(places: Iterable[Path]) -> list[Path]:
    """The manifests in these folders and below, with all that they include; each once."""
    found: dict[Path, None] = {}
    for place in places:
        manifests = [place] if place.is_file() else sorted(place.rglob("manifest.ttl"))
        if not manifests:
            raise NoManifest(f"{place} holds no manifest.ttl, nor does a folder below it")
        for manifest in manifests:
            _include(manifest.resolve(), found)
    return list(found)


def _include(manifest: Path, found: dict[Path, None]) -> None:
    if manifest in found:
        return
    found[manifest] = None
    for item in _listed(Graph.read(manifest), MF + "include"):
        if isinstance(item, ox.NamedNode) and (path := path_of(item.value)) and path.is_file():
            _include(path.resolve(), found)


def _listed(graph: Graph, predicate: str) -> Iterator[Term]:
    """What a manifest lists; some repeat the property instead of giving a list."""
    for statement in graph.statements.quads_for_predicate(ox.NamedNode(predicate)):
        yield from list(graph.items(statement.object)) or [statement.object]


def cases(manifest: Path) -> Iterator[Case]:
    """The entries of one manifest, in its order."""
    graph = Graph.read(manifest)
    folder = "/".join(manifest.parts[-3:-1])
    for entry in _listed(graph, MF + "entries"):
        # An empty list is its own end.
        if isinstance(entry, ox.NamedNode | ox.BlankNode) and entry != ox.NamedNode(RDF + "nil"):
            yield _case(_Entry(graph, entry), folder)


@dataclass(frozen=True)
class _Entry:
    """A node of the manifest, and what is said of it."""

    graph: Graph
    node: Resource

    @property
    def action(self) -> _Entry:
        """What is to be done: a node with the parts of a test, or the query itself."""
        found = self.graph.value(self.node, MF + "action")
        return _Entry(self.graph, found if isinstance(found, ox.NamedNode | ox.BlankNode) else ox.BlankNode())

    def texts(self, predicate: str) -> tuple[str, ...]:
        return tuple(_text(each) for each in self.graph.values(self.node, predicate))

    def text(self, predicate: str) -> str | None:
        return next(iter(self.texts(predicate)), None)

    def locals(self, predicate: str) -> tuple[str, ...]:
        """Local names of the values; a value may be a list of them."""
        values = self.graph.values(self.node, predicate)
        return tuple(_local(_text(item)) for each in values for item in list(self.graph.items(each)) or [each])

    def graphs(self) -> Iterator[tuple[str, str]]:
        """Named graphs with their documents: a document is named by itself, or by a label."""
        for value in self.graph.values(self.node, QT + "graphData"):
            if isinstance(value, ox.BlankNode):
                inner = _Entry(self.graph, value)
                document = inner.text(QT + "graph") or ""
                yield inner.text(RDFS + "label") or document, document
            else:
                yield _text(value), _text(value)


def _case(entry: _Entry, folder: str) -> Case:
    action, local = entry.action, _local(_text(entry.node))
    own = _text(action.node) if isinstance(action.node, ox.NamedNode) else None
    return Case(
        name=f"{folder}#{local}",
        label=entry.text(MF + "name") or local,
        type=_type(entry.locals(RDF + "type")),
        query=action.text(QT + "query") or own,
        data=action.texts(QT + "data"),
        graphs=tuple(action.graphs()),
        result=entry.text(MF + "result"),
        lax="LaxCardinality" in entry.locals(MF + "resultCardinality"),
        remote=bool(action.texts(QT + "serviceData")),
        withdrawn=any(each in ("Withdrawn", "Obsoleted") for name in _APPROVALS for each in entry.locals(name)),
        regimes=action.locals(_REGIME) + entry.locals(_REGIME),
    )


def _type(names: tuple[str, ...]) -> str:
    """An entry may be of other classes beside that of its test; one of none asks for an evaluation, as of old."""
    return next((each for each in names if "Test" in each), "".join(names[:1]) or "QueryEvaluationTest")


def _local(iri: str) -> str:
    return iri.replace("#", "/").rsplit("/", 1)[-1]


def _text(term: Term) -> str:
    return str(term) if isinstance(term, ox.Triple) else term.value
