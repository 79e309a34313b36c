"""Ontologies: loading, seeing and removing them. Pure over the registry port; it blocks, so call it from a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triplewire.config import limits
from triplewire.control.entailments import Entailments
from triplewire.model.errors import BodyTooLarge, InputError, NotFound
from triplewire.rdf import Syntax, decode
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.sparql.entailment.ontologies import build_ontology
from triplewire.storage.registry.ontologies import (
    NEWEST_ONTOLOGIES,
    ONTOLOGIES_VERSION,
    ONTOLOGY,
    LoadedOntology,
    check_ontology_name,
    ontology_from_change,
    ontology_to_value,
)
from triplewire.storage.registry.ports import Registry


class Ontologies:
    """What is known of classes and properties, as the registry holds it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._entailments = Entailments(registry)

    def load(self, name: str, body: bytes, syntax: Syntax) -> LoadedOntology:
        """All triples of the body, of whatever graph, in place of what had the name. Blank nodes become IRIs.

        Raises BadRequest for a name that is none, MalformedRdf, InputError for what is over a limit, or Conflict if a
        subscription cannot follow it.
        """
        drafted = _drafted(check_ontology_name(name), body, syntax)
        version = self._put(name, drafted)
        return replace(drafted, version=version)

    def find(self, name: str) -> LoadedOntology:
        """Raises NotFound for one that is not there."""
        change = self._registry.get(ONTOLOGY, name)
        if change is None:
            raise NotFound(f"there is no ontology {name}")
        return ontology_from_change(change)

    def all(self) -> Sequence[LoadedOntology]:
        """In the order in which they were loaded."""
        return [ontology_from_change(change) for change in self._registry.list(ONTOLOGY)]

    def remove(self, name: str) -> None:
        """Raises NotFound for one that is not there."""
        self.find(name)
        self._put(name, None)

    def _put(self, name: str, loaded: LoadedOntology | None) -> int:
        """The position of the change. Subscriptions that follow ontologies do so from there on."""
        value = None if loaded is None else ontology_to_value(loaded)
        following = self._entailments.following(name, loaded)
        _, version, *_ = self._registry.put(
            [(ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES, {}), (ONTOLOGY, name, value), *following]
        )
        self._entailments.settle()
        return version


def written(loaded: LoadedOntology, syntax: Syntax) -> bytes:
    """The ontology as a document. Raises NotAcceptable for terms that the syntax cannot write."""
    around = find_frame(syntax)
    lines = loaded.text.replace("\t", " ").replace("\n", " .\n") + " .\n"
    return around.head + write_fragment(lines.encode(), syntax) + around.tail


def _drafted(name: str, body: bytes, syntax: Syntax) -> LoadedOntology:
    if len(body) > limits.ONTOLOGY_BYTES:
        raise BodyTooLarge("the ontology", limits.ONTOLOGY_BYTES)
    lines = list(dict.fromkeys(line for event in decode(body, syntax) for line in event.text.split("\n")))
    if len(lines) > limits.ONTOLOGY_TRIPLES:
        raise InputError(f"the ontology has {len(lines)} triples, over the limit of {limits.ONTOLOGY_TRIPLES}")
    ontology = build_ontology(_triple(line) for line in lines)
    return LoadedOntology(name, "\n".join(lines), len(lines), len(ontology.classes), len(ontology.properties))


def _triple(line: str) -> tuple[str, str, str]:
    subject, predicate, object_ = line.split("\t")
    return subject, predicate, object_
