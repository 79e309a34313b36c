"""Ontologies in the registry, and the subscriptions that follow them. Pure over the registry port; it blocks, so call
it from a thread.

A subscription with entailment is rewritten by the ontologies that are loaded when it is made, and again whenever one
of them changes: then it is put anew under its id in the transaction of the change, so that each event is matched by
the one version that holds at its position.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import Final

from aiohttp import web

from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.openapi.documents import OntologyDocument
from triplewire.http.resources import registry_resource as resource
from triplewire.http.resources.bodies import negotiate_rdf, read_body_within
from triplewire.http.resources.registry_resource import RegistryEntry, RegistryResource
from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.matching.canonical_form import CACHED_SKELETONS
from triplewire.matching.prepared_queries import PreparedShapes, build_query, lift_query_as
from triplewire.matching.shape_requests import NO_SELECTOR, ShapeRequest, restrict_query
from triplewire.matching.shapes import LiftedShape
from triplewire.model import Subscription, errors, format_position
from triplewire.rdf import Syntax, decode, find_syntax
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.security import EVERYONE, Principal
from triplewire.sparql import Query
from triplewire.sparql.entailment.ontologies import Ontology, build_ontology
from triplewire.sparql.entailment.rewriting import rewrite_query
from triplewire.storage.registry import ontologies as stored
from triplewire.storage.registry.codec import check_name
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
"""The body of an ontology. It is parsed in memory, and every version of it stays in the registry."""

ONTOLOGY_TRIPLES: Final = 100_000
"""Triples of one ontology. Every reader of registry changes reads them: at worst about 20 MB of text."""


logger = logging.getLogger(__name__)


class SubscriptionEntailment:
    """Rewrites subscriptions by the ontologies of the registry (RDFS entailment). Any thread may use it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._visibility = VisibilityStore(registry)
        self._lock = Lock()
        self._version = -1
        self._ontology = build_ontology(())
        self._texts = _prepared_queries(self._ontology)
        self._positions: tuple[int, tuple[int, ...]] = (-1, ())
        """A version, and the positions at which its ontologies were loaded."""

    def version(self) -> int:
        """The position of the newest ontology change."""
        newest = self._registry.get(stored.ONTOLOGIES_VERSION, stored.NEWEST_ONTOLOGIES)
        return 0 if newest is None else newest.position

    def loaded(self) -> tuple[int, ...]:
        """The positions at which the current ontologies were loaded."""
        version = self.version()
        with self._lock:
            if self._positions[0] != version:
                self._positions = (version, tuple(change.position for change in self._registry.list(stored.ONTOLOGY)))
            return self._positions[1]

    def lift(self, asked: ShapeRequest, version: int) -> LiftedShape:
        """Lift a query under the ontologies of a version. Raises InvalidField if the rewriting is over a limit."""
        try:
            return self._current(version)[1].lift(asked)
        except errors.QueryLimit as error:
            raise errors.InvalidField("entailment", f"entailment is not possible: {error}") from None

    def following(self, name: str, loaded: stored.LoadedOntology | None) -> list[RegistryEntry]:
        """Entries to put with a change to an ontology, so that subscriptions follow it.

        Raises Conflict with the first subscription that cannot.
        """
        with self._lock:
            others = [each for each in self._loaded() if each.name != name]
        ontology = merge_ontologies([*others, *([] if loaded is None else [loaded])])
        return [entry for found in self._entailed() for entry in self._revision(found, ontology)]

    def settle(self) -> None:
        """Update subscriptions that were created, or whose ontologies changed, concurrently."""
        entries: list[RegistryEntry] = []
        ontology, _ = self._current(self.version())
        for found in self._entailed():
            try:
                entries += self._revision(found, ontology)
            except errors.TriplewireError:
                logger.warning("subscription %s stays as it was", found.id, exc_info=True)
        if entries:
            self._registry.put(entries)

    def _entailed(self) -> Iterator[Subscription]:
        for marker in self._registry.list(ENTAILED):
            change = self._registry.get(SUBSCRIPTION, marker.key)
            if change is not None:
                yield subscription_from_change(change)

    def _revision(self, found: Subscription, ontology: Ontology) -> Iterator[RegistryEntry]:
        try:
            lifted = _entail_and_lift(
                replace(query_asked_by(found), visibility=self._visibility.find(found.visibility)), ontology
            )
        except errors.TriplewireError as error:
            raise errors.Conflict(f"subscription {found.id} cannot follow: {error}") from None
        if (lifted.shape.key, lifted.constants) == (found.shape, found.constants):
            return
        if self._registry.get(SHAPE, lifted.shape.key) is None:
            yield SHAPE, lifted.shape.key, lifted.shape.to_value()
        yield (
            SUBSCRIPTION,
            found.id,
            subscription_to_value(revise_subscription(found, lifted.shape.key, lifted.constants, found.visibility)),
        )

    def _current(self, version: int) -> tuple[Ontology, PreparedShapes]:
        """The merged ontologies, and prepared queries under them; of a version or a later one."""
        with self._lock:
            if version != self._version:
                self._ontology = merge_ontologies(self._loaded())
                self._texts = _prepared_queries(self._ontology)
                self._version = version
            return self._ontology, self._texts

    def _loaded(self) -> list[stored.LoadedOntology]:
        return [stored.ontology_from_change(change) for change in self._registry.list(stored.ONTOLOGY)]


def query_asked_by(made: Subscription) -> ShapeRequest:
    """The query of a subscription, before entailment and visibility."""
    request = SubscriptionRequest(made.sparql, made.kind, made.stream, made.source, made.application, made.vocabulary)
    asked = replace(request, filter=made.filter).asked
    return asked if made.template is None else replace(asked, values=made.values)


def _entail_and_lift(asked: ShapeRequest, ontology: Ontology) -> LiftedShape:
    return lift_query_as(entailed_query(asked, ontology), asked)


def entailed_query(asked: ShapeRequest, ontology: Ontology) -> Query:
    """Rewrite a query by an ontology. Its selector is not rewritten: ontologies have no stream and no vocabulary."""
    rewritten = rewrite_query(build_query(replace(asked, narrowing=NO_SELECTOR)), ontology)
    return restrict_query(rewritten, asked.narrowing, solutions=asked.solutions)


def _prepared_queries(ontology: Ontology) -> PreparedShapes:
    """Queries that differ only in names that the ontologies do not mention are rewritten once. A name may be written
    with a prefix, so that only its end is compared."""
    names = {term for triple in (*ontology.facts, *ontology.schema) for term in triple}
    ends = "\n".join(names | ontology.classes | ontology.properties)
    return PreparedShapes(
        lambda asked: _entail_and_lift(asked, ontology), known=lru_cache(CACHED_SKELETONS)(ends.__contains__)
    )


def merge_ontologies(loaded: Iterable[stored.LoadedOntology]) -> Ontology:
    ordered = sorted(loaded, key=lambda each: each.name)
    return build_ontology(_split_triple(line) for each in ordered for line in each.text.split("\n"))


class OntologyManager(RegistryResource[stored.LoadedOntology]):
    """Loads, finds and removes ontologies in the registry."""

    kind = stored.ONTOLOGY
    noun = "ontology"
    from_change = staticmethod(stored.ontology_from_change)

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._entailments = SubscriptionEntailment(registry)

    def load(self, name: str, body: bytes, syntax: Syntax) -> stored.LoadedOntology:
        """Create or replace an ontology with all triples of a body, of any graph. Blank nodes become IRIs.

        Raises BadRequest for an invalid name, MalformedRdf, InputError above a limit, or Conflict if a subscription
        cannot follow it.
        """
        drafted = _parse_ontology(check_name(name, "an ontology"), body, syntax)
        version = self._put(name, drafted)
        return replace(drafted, version=version)

    def remove(self, name: str, by: Principal = EVERYONE) -> None:
        """Raises NotFound."""
        self.find(name)
        self._put(name, None)

    def _put(self, name: str, loaded: stored.LoadedOntology | None) -> int:
        """Put the change, and with it the subscriptions that follow it; its position."""
        value = None if loaded is None else stored.ontology_to_value(loaded)
        following = self._entailments.following(name, loaded)
        _, version, *_ = self._registry.put(
            [(stored.ONTOLOGIES_VERSION, stored.NEWEST_ONTOLOGIES, {}), (stored.ONTOLOGY, name, value), *following]
        )
        self._entailments.settle()
        return version


def format_ontology(loaded: stored.LoadedOntology, syntax: Syntax) -> bytes:
    """Serialize an ontology. Raises NotAcceptable for terms that the syntax cannot write."""
    around = find_frame(syntax)
    lines = loaded.text.replace("\t", " ").replace("\n", " .\n") + " .\n"
    return around.head + write_fragment(lines.encode(), syntax) + around.tail


def _parse_ontology(name: str, body: bytes, syntax: Syntax) -> stored.LoadedOntology:
    if len(body) > ONTOLOGY_BYTES:
        raise errors.BodyTooLarge("the ontology", ONTOLOGY_BYTES)
    lines = list(dict.fromkeys(line for event in decode(body, syntax) for line in event.text.split("\n")))
    if len(lines) > ONTOLOGY_TRIPLES:
        raise errors.InputError(f"the ontology has {len(lines)} triples, over the limit of {ONTOLOGY_TRIPLES}")
    ontology = build_ontology(_split_triple(line) for line in lines)
    return stored.LoadedOntology(name, "\n".join(lines), len(lines), len(ontology.classes), len(ontology.properties))


def _split_triple(line: str) -> tuple[str, str, str]:
    subject, predicate, object_ = line.split("\t")
    return subject, predicate, object_


def ontology_routes(ontologies: OntologyManager) -> list[web.RouteDef]:
    async def put(name: str, request: web.Request) -> OntologyDocument:
        syntax = find_syntax(request.headers.get("Content-Type"))
        body = await read_body_within(request, "the ontology", ONTOLOGY_BYTES)
        return ontology_document(await asyncio.to_thread(ontologies.load, name, body, syntax))

    @serves(resource_operations.FIND_ONTOLOGY)
    async def find(request: web.Request) -> web.Response:
        loaded = await asyncio.to_thread(ontologies.find, request.match_info["name"])
        syntax = negotiate_rdf(request)
        body = await asyncio.to_thread(format_ontology, loaded, syntax)
        headers = {"ETag": f'"{format_position(loaded.version)}"', "Vary": "Accept"}
        return web.Response(body=body, content_type=syntax.media_type, headers=headers)

    return routes_of(
        resource.handle_list(resource_operations.ONTOLOGIES, "ontologies", ontologies.all, ontology_document),
        resource.handle_put(resource_operations.LOAD_ONTOLOGY, put),
        find,
        resource.handle_delete(resource_operations.REMOVE_ONTOLOGY, ontologies.remove),
    )


def ontology_document(loaded: stored.LoadedOntology) -> OntologyDocument:
    """An ontology without its triples."""
    return OntologyDocument(
        name=loaded.name,
        version=format_position(loaded.version),
        triples=loaded.triples,
        classes=loaded.classes,
        properties=loaded.properties,
    )
