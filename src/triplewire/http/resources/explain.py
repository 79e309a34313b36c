"""Dry run and explain: the events that a subscription would have matched, and why one matched an event or not. Both
read the log and take some seconds at worst: call them from a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triplewire.http.resources.ontologies import query_asked_by
from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.matching.canonical_form import canonical_form
from triplewire.matching.dry_run import DryRun, run_dry
from triplewire.matching.event_history import EventReader, VisibleEvents, find_newest, read_entry
from triplewire.matching.explain import EventExplanation, explain
from triplewire.matching.prepared_queries import build_query
from triplewire.matching.shape_requests import NO_SELECTOR, ShapeRequest, restrict_query
from triplewire.model import Subscription, format_position, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest
from triplewire.security import EVERYONE, Principal, Visibility
from triplewire.sparql import Query
from triplewire.sparql.entailment.ontologies import Ontology, build_ontology
from triplewire.sparql.entailment.rewriting import rewrite_query
from triplewire.storage.registry.ontologies import ONTOLOGY, ontology_from_change
from triplewire.storage.registry.ports import Registry, RegistryChange


@dataclass(frozen=True)
class MatchExplanation:
    """What became of an event, as far as a subscription is concerned."""

    subscription: Subscription
    entry: Mapping[str, Any]
    explanation: EventExplanation

    @property
    def held(self) -> bool:
        """Whether the subscription was there when the event came. One that was not had no notification of it."""
        return self.subscription.floor < int(self.entry["position"]) < self.subscription.until

    def value(self) -> dict[str, Any]:
        """As JSON."""
        about = {"subscription": self.subscription.id, "event": self.entry["event"]}
        return {
            **about,
            "position": format_position(self.entry["position"]),
            "held": self.held,
            **self.explanation.value(),
        }

    def text(self) -> str:
        """For people."""
        late = "" if self.held else "the subscription was made after the event came; had it been there:\n"
        return late + self.explanation.text()


class SubscriptionExplainer:
    """Looks at subscriptions, those that are and those that may be, beside the events of the log."""

    def __init__(self, subscriptions: SubscriptionManager, registry: Registry, log: EventReader, clock: Clock) -> None:
        self._subscriptions = subscriptions
        self._registry = registry
        self._log = log
        self._clock = clock

    def rehearse(self, wish: SubscriptionRequest, by: Principal = EVERYONE) -> DryRun:
        """What would become of it, for somebody. Raises what making it would raise."""
        asked, loaded = self._subscriptions.asked(wish), self._registry.list(ONTOLOGY)
        sight = self._subscriptions.sightings.of(by).sight
        query = build_query(asked) if wish.entailment is None else _entailed_query(asked, _merge_ontologies(loaded))
        begins, meant = self._subscriptions.begins(wish), canonical_form(query, solutions=asked.solutions)
        return run_dry(meant, wish.kind, self._log, self._clock, loaded, begins, sight)

    def explain(self, id: str, event: str, by: Principal = EVERYONE) -> MatchExplanation:
        """Why it matched an event, named by its id or its position, or not; by the ontologies as they are now, of what
        its owner sees. Raises NotFound, or QueryLimit where the event is too much to explain."""
        subscription = self._subscriptions.find(id, by)
        entry = self._entry(event, self._subscriptions.sightings.shown_by(subscription))
        asked, loaded = query_asked_by(subscription), self._registry.list(ONTOLOGY)
        query, ontology = build_query(asked), _merge_ontologies(() if subscription.entailment is None else loaded)
        if asked.narrowing.vocabulary:
            # What follows from an event is not of its vocabulary: all ways to entail the query are told instead.
            query, ontology = _entailed_query(asked, ontology), _merge_ontologies(())
        told = explain(query, entry, ontology=ontology, ontologies=loaded, clock=self._clock)
        return MatchExplanation(subscription, entry, told)

    def _entry(self, event: str, sight: Visibility | None) -> dict[str, Any]:
        """What is in sight of it. One of which nothing is is not found, in the words for one that is not there."""
        seen = VisibleEvents(self._log, sight)
        try:
            position = parse_position(event)
        except BadRequest:
            return find_newest(seen, event)
        return read_entry(seen, position)


def _entailed_query(asked: ShapeRequest, ontology: Ontology) -> Query:
    """The query with all ways to entail it. What narrows it is not entailed."""
    meant = rewrite_query(build_query(replace(asked, narrowing=NO_SELECTOR)), ontology)
    return restrict_query(meant, asked.narrowing, solutions=asked.solutions)


def _merge_ontologies(loaded: Sequence[RegistryChange]) -> Ontology:
    lines = (line.split("\t") for change in loaded for line in ontology_from_change(change).text.split("\n"))
    return build_ontology((subject, predicate, object_) for subject, predicate, object_ in lines)
