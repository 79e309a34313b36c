"""Ontologies in the registry, and the subscriptions that follow them. Pure over the registry port; it blocks, so call
it from a thread.

A subscription with entailment is rewritten by the ontologies that are loaded when it is made, and again whenever one
of them changes: then it is put anew under its id in the transaction of the change, so that each event is matched by
the one version that holds at its position.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import Any, Final

from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.matching.canonical_form import CACHED_SKELETONS
from triplewire.matching.prepared_queries import PreparedShapes, build_query, lift_query_as
from triplewire.matching.shape_requests import NO_SELECTOR, ShapeRequest, restrict_query
from triplewire.matching.shapes import LiftedShape
from triplewire.model import Subscription
from triplewire.model.errors import (
    BodyTooLarge,
    Conflict,
    InputError,
    InvalidField,
    NotFound,
    QueryLimit,
    TriplewireError,
)
from triplewire.rdf import Syntax, decode
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.sparql.entailment.ontologies import Ontology, build_ontology
from triplewire.sparql.entailment.rewriting import rewrite_query
from triplewire.storage.registry.codec import check_name
from triplewire.storage.registry.ontologies import (
    NEWEST_ONTOLOGIES,
    ONTOLOGIES_VERSION,
    ONTOLOGY,
    LoadedOntology,
    ontology_from_change,
    ontology_to_value,
)
from triplewire.storage.registry.ontologies import ontology_from_change as loaded_by
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import VisibilityStore
from triplewire.storage.registry.subscriptions import (
    ENTAILED,
    SHAPE,
    SUBSCRIPTION,
    revise_subscription,
    subscription_from_change,
    subscription_to_value,
)

ONTOLOGY_BYTES: Final = 8 * 1024 * 1024
"""An ontology as it is sent. It is parsed in memory, and every version of it stays in the registry."""

ONTOLOGY_TRIPLES: Final = 100_000
"""Triples of one ontology. Whoever reads the registry's changes reads them: at worst about 20 MB of text."""


# Entailments: subscriptions that follow the ontologies, from version to version.
#
# Such a subscription is rewritten by the ontologies that are loaded when it is made, and again whenever one of them
# changes: then it is put anew under its id, in the transaction of the change, so that each event is matched by the one
# version that holds at its position.

Entry = tuple[str, str, Mapping[str, Any] | None]

logger = logging.getLogger(__name__)


class SubscriptionEntailment:
    """The ontologies as the registry holds them, and what follows from them. Any thread may use it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._sights = VisibilityStore(registry)
        self._turn = Lock()
        self._version = -1
        self._ontology = build_ontology(())
        self._texts = _prepared_queries(self._ontology)
        self._positions: tuple[int, tuple[int, ...]] = (-1, ())
        """Where those of a version were loaded."""

    def version(self) -> int:
        """Where an ontology was changed last."""
        newest = self._registry.get(ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES)
        return 0 if newest is None else newest.position

    def loaded(self) -> tuple[int, ...]:
        """Where those were loaded that are loaded now."""
        version = self.version()
        with self._turn:
            if self._positions[0] != version:
                self._positions = (version, tuple(change.position for change in self._registry.list(ONTOLOGY)))
            return self._positions[1]

    def lift(self, asked: ShapeRequest, version: int) -> LiftedShape:
        """What is asked by what is loaded now, of this version. Raises InvalidField where that is too much of the
        ontologies."""
        try:
            return self._current(version)[1].lift(asked)
        except QueryLimit as error:
            raise InvalidField("entailment", f"entailment is not possible: {error}") from None

    def following(self, name: str, loaded: LoadedOntology | None) -> list[Entry]:
        """What is to be put with a change to an ontology, so that the subscriptions follow it.

        Raises Conflict, with the subscription, where one cannot.
        """
        with self._turn:
            others = [each for each in self._loaded() if each.name != name]
        ontology = _merge_ontologies([*others, *([] if loaded is None else [loaded])])
        return [entry for found in self._entailed() for entry in self._revision(found, ontology)]

    def settle(self) -> None:
        """Bring those up to date that were made, or whose ontologies changed, while others did the same."""
        entries: list[Entry] = []
        ontology, _ = self._current(self.version())
        for found in self._entailed():
            try:
                entries += self._revision(found, ontology)
            except TriplewireError:
                logger.warning("subscription %s stays as it was", found.id, exc_info=True)
        if entries:
            self._registry.put(entries)

    def _entailed(self) -> Iterator[Subscription]:
        for marker in self._registry.list(ENTAILED):
            change = self._registry.get(SUBSCRIPTION, marker.key)
            if change is not None:
                yield subscription_from_change(change)

    def _revision(self, found: Subscription, ontology: Ontology) -> Iterator[Entry]:
        try:
            lifted = _entail_and_lift(replace(query_asked_by(found), sight=self._sights.find(found.sight)), ontology)
        except TriplewireError as error:
            raise Conflict(f"subscription {found.id} cannot follow: {error}") from None
        if (lifted.shape.key, lifted.constants) == (found.shape, found.constants):
            return
        if self._registry.get(SHAPE, lifted.shape.key) is None:
            yield SHAPE, lifted.shape.key, lifted.shape.to_value()
        yield (
            SUBSCRIPTION,
            found.id,
            subscription_to_value(revise_subscription(found, lifted.shape.key, lifted.constants, found.sight)),
        )

    def _current(self, version: int) -> tuple[Ontology, PreparedShapes]:
        """The ontologies together, and what was lifted by them. Those of a version, or of one after it."""
        with self._turn:
            if version != self._version:
                self._ontology = _merge_ontologies(self._loaded())
                self._texts = _prepared_queries(self._ontology)
                self._version = version
            return self._ontology, self._texts

    def _loaded(self) -> list[LoadedOntology]:
        return [loaded_by(change) for change in self._registry.list(ONTOLOGY)]


def query_asked_by(made: Subscription) -> ShapeRequest:
    """What a subscription was made of, but for what it entails, and of what is in sight."""
    wish = SubscriptionRequest(made.sparql, made.kind, made.stream, made.source, made.application, made.vocabulary)
    asked = replace(wish, filter=made.filter).asked
    return asked if made.template is None else replace(asked, values=made.values)


def _entail_and_lift(asked: ShapeRequest, ontology: Ontology) -> LiftedShape:
    """Only the query is entailed, not what narrows it: the ontology itself is of no stream and no vocabulary."""
    meant = rewrite_query(build_query(replace(asked, narrowing=NO_SELECTOR)), ontology)
    return lift_query_as(restrict_query(meant, asked.narrowing, solutions=asked.solutions), asked)


def _prepared_queries(ontology: Ontology) -> PreparedShapes:
    """Queries that differ in names of which the ontologies say nothing are rewritten once. A name may be written with a
    prefix, so that only its end is seen: one that ends like any of theirs may be theirs."""
    names = {term for triple in (*ontology.facts, *ontology.schema) for term in triple}
    ends = "\n".join(names | ontology.classes | ontology.properties)
    return PreparedShapes(
        lambda asked: _entail_and_lift(asked, ontology), known=lru_cache(CACHED_SKELETONS)(ends.__contains__)
    )


def _merge_ontologies(loaded: list[LoadedOntology]) -> Ontology:
    ordered = sorted(loaded, key=lambda each: each.name)
    lines = (line.split("\t") for each in ordered for line in each.text.split("\n"))
    return build_ontology((subject, predicate, object_) for subject, predicate, object_ in lines)


class OntologyManager:
    """What is known of classes and properties, as the registry holds it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._entailments = SubscriptionEntailment(registry)

    def load(self, name: str, body: bytes, syntax: Syntax) -> LoadedOntology:
        """All triples of the body, of whatever graph, in place of what had the name. Blank nodes become IRIs.

        Raises BadRequest for a name that is none, MalformedRdf, InputError for what is over a limit, or Conflict if a
        subscription cannot follow it.
        """
        drafted = _parse_ontology(check_name(name, "an ontology"), body, syntax)
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


def format_ontology(loaded: LoadedOntology, syntax: Syntax) -> bytes:
    """The ontology as a document. Raises NotAcceptable for terms that the syntax cannot write."""
    around = find_frame(syntax)
    lines = loaded.text.replace("\t", " ").replace("\n", " .\n") + " .\n"
    return around.head + write_fragment(lines.encode(), syntax) + around.tail


def _parse_ontology(name: str, body: bytes, syntax: Syntax) -> LoadedOntology:
    if len(body) > ONTOLOGY_BYTES:
        raise BodyTooLarge("the ontology", ONTOLOGY_BYTES)
    lines = list(dict.fromkeys(line for event in decode(body, syntax) for line in event.text.split("\n")))
    if len(lines) > ONTOLOGY_TRIPLES:
        raise InputError(f"the ontology has {len(lines)} triples, over the limit of {ONTOLOGY_TRIPLES}")
    ontology = build_ontology(_split_triple(line) for line in lines)
    return LoadedOntology(name, "\n".join(lines), len(lines), len(ontology.classes), len(ontology.properties))


def _split_triple(line: str) -> tuple[str, str, str]:
    subject, predicate, object_ = line.split("\t")
    return subject, predicate, object_
