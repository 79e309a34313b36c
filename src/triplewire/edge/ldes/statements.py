"""Statements: nodes of a history as lines of N-Quads, in the words of TREE and LDES 1.0.

The stream is the collection, its events are the members. What is said of an event beside its quads stands outside of
its graph, which is named by its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triplewire.edge.ldes.trees import Branch, Node
from triplewire.model import format_position
from triplewire.model.terms import RDF_TYPE, XSD, iri, literal
from triplewire.rdf import to_nquads
from triplewire.rdf.headers import HeaderValues, format_headers, format_time
from triplewire.rdf.serializer import expand_name

_HEADERS = ("stream", "source", "application", "time", "received")
_DAY = 86_400


@dataclass(frozen=True)
class Addresses:
    """Of a stream and of the nodes of its history."""

    base: str
    """Of the edge, without a slash at its end."""
    name: str

    @property
    def stream(self) -> str:
        return f"{self.base}/streams/{self.name}"

    @property
    def view(self) -> str:
        return f"{self.stream}/ldes"

    def of(self, node: Node | None) -> str:
        """None is the first."""
        return self.view if node is None else f"{self.view}/{node}"


@dataclass(frozen=True)
class Promise:
    """What a stream promises to those who read its history."""

    age: float | None = None
    """For how many seconds events are kept; None is for good."""
    version_of: str | None = None
    """By which predicate an event names that of which it is a version."""
    conform: bool = False
    """Do all events that come conform to the stream's shapes?"""


def view(at: Addresses, promise: Promise) -> Iterator[str]:
    """Of the collection as a whole."""
    stream, root = iri(at.stream), iri(at.view)
    yield _line(stream, expand_name("ldes:timestampPath"), expand_name("tw:received"))
    yield _line(stream, expand_name("ldes:sequencePath"), expand_name("tw:position"))
    if promise.version_of is not None:
        yield _line(stream, expand_name("ldes:versionOfPath"), iri(promise.version_of))
    if promise.conform:
        yield _line(stream, expand_name("tree:shape"), iri(f"{at.stream}/shapes"))
    if promise.age is not None:
        policy, lasting = iri(f"{at.view}#retention"), literal(duration(promise.age), XSD + "duration")
        yield _line(root, expand_name("ldes:retentionPolicy"), policy)
        yield _line(policy, RDF_TYPE, expand_name("ldes:RetentionPolicy"))
        yield _line(policy, RDF_TYPE, expand_name("ldes:DurationAgoPolicy"))
        yield _line(policy, expand_name("ldes:fullLogDuration"), lasting)
        yield _line(policy, expand_name("tree:value"), lasting)


def node(at: Addresses, place: Node | None, *, complete: bool) -> Iterator[str]:
    """Of a node, whatever it has; None is the first."""
    stream, here = iri(at.stream), iri(at.of(place))
    yield _line(stream, RDF_TYPE, expand_name("ldes:EventStream"))
    yield _line(stream, expand_name("tree:view"), iri(at.view))
    yield _line(here, RDF_TYPE, expand_name("tree:Node"))
    if place is not None:
        yield _line(here, expand_name("dcterms:isPartOf"), iri(at.view))
    if complete:
        yield _line(here, expand_name("ldes:immutable"), literal("true", XSD + "boolean"))


def relations(at: Addresses, place: Node | None, branches: Iterable[Branch]) -> Iterator[str]:
    """From a node to those below it."""
    here = iri(at.of(place))
    for branch in branches:
        bounds = [("GreaterThanOrEqualTo", branch.since), ("LessThanOrEqualTo", branch.until)]
        known = [each for each in bounds if each[1] is not None]
        for kind, bound in known or [("", None)]:
            name = f"_:r{branch.node.level}n{branch.node.number}{kind[:1].lower()}"
            yield _line(here, expand_name("tree:relation"), name)
            yield _line(name, RDF_TYPE, expand_name(f"tree:{kind}Relation"))
            yield _line(name, expand_name("tree:node"), iri(at.of(branch.node)))
            if bound is not None:
                yield _line(name, expand_name("tree:path"), expand_name("tw:received"))
                yield _line(name, expand_name("tree:value"), literal(format_time(bound), XSD + "dateTime"))


def members(at: Addresses, entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Events of the stream, as rows of `ENTRIES`."""
    stream = iri(at.stream)
    for entry in entries:
        event = iri(entry["event"])
        yield _line(stream, expand_name("tree:member"), event)
        yield format_headers(entry["event"], HeaderValues(**{name: entry[name] for name in _HEADERS}))
        yield _line(event, expand_name("tw:position"), literal(format_position(entry["position"])))
        yield to_nquads(entry["event"], entry["text"])


def duration(seconds: float) -> str:
    """As XML Schema writes it."""
    whole = int(seconds)
    return f"P{whole // _DAY}D" if whole % _DAY == 0 else f"PT{whole}S"


def _line(subject: str, predicate: str, obj: str) -> str:
    return f"{subject} {predicate} {obj} .\n"
