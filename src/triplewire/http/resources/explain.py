"""Dry run and explain: the events that a subscription would have matched, and why one matched an event or not. Both
read the log and take some seconds at worst: call them from a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triplewire.http.resources.ontologies import entailed_query, merge_ontologies, query_asked_by
from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.matching.canonical_form import canonical_form
from triplewire.matching.dry_run import DryRun, run_dry
from triplewire.matching.event_history import EventReader, VisibleEvents, find_newest, read_entry
from triplewire.matching.explain import EventExplanation, explain
from triplewire.matching.prepared_queries import build_query
from triplewire.model import Subscription, format_position, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest
from triplewire.security import EVERYONE, Principal, Visibility
from triplewire.sparql.entailment.ontologies import Ontology
from triplewire.storage.registry.ontologies import ONTOLOGY, ontology_from_change
from triplewire.storage.registry.ports import Registry, RegistryChange


@dataclass(frozen=True)
class MatchExplanation:
    """Whether a subscription matched an event, and why."""

    subscription: Subscription
    entry: Mapping[str, Any]
    explanation: EventExplanation

    @property
    def held(self) -> bool:
        """Whether the subscription existed at the event's position; otherwise there was no notification."""
        return self.subscription.floor < int(self.entry["position"]) < self.subscription.until

    def value(self) -> dict[str, Any]:
        about = {"subscription": self.subscription.id, "event": self.entry["event"]}
        return {
            **about,
            "position": format_position(self.entry["position"]),
            "held": self.held,
            **self.explanation.value(),
        }

    def text(self) -> str:
        late = "" if self.held else "the subscription did not exist when the event was published; otherwise:\n"
        return late + self.explanation.text()


@dataclass(frozen=True)
class SubscriptionExplainer:
    """Runs subscriptions, existing and proposed, against events of the log."""

    subscriptions: SubscriptionManager
    registry: Registry
    log: EventReader
    clock: Clock

    def dry_run(self, request: SubscriptionRequest, by: Principal = EVERYONE) -> DryRun:
        """Match recent events. Raises what creating the subscription would raise."""
        asked, loaded = self.subscriptions.asked(request), self.registry.list(ONTOLOGY)
        visibility = self.subscriptions.visibility.find(by).visibility
        query = build_query(asked) if request.entailment is None else entailed_query(asked, _ontology(loaded))
        begins, meant = self.subscriptions.begins(request), canonical_form(query, solutions=asked.solutions)
        return run_dry(meant, request.kind, self.log, self.clock, loaded, begins, visibility)

    def explain(self, id: str, event: str, by: Principal = EVERYONE) -> MatchExplanation:
        """Explain a match with an event, named by id or position, under the current ontologies and the owner's
        visibility. Raises NotFound, or QueryLimit if the event is too large to explain."""
        subscription = self.subscriptions.find(id, by)
        entry = self._entry(event, self.subscriptions.visibility.shown_by(subscription))
        asked, loaded = query_asked_by(subscription), self.registry.list(ONTOLOGY)
        query, ontology = build_query(asked), _ontology(() if subscription.entailment is None else loaded)
        if asked.narrowing.vocabulary:
            # Inferred triples are outside the vocabulary: the query is rewritten instead.
            query, ontology = entailed_query(asked, ontology), _ontology(())
        explanation = explain(query, entry, ontology=ontology, ontologies=loaded, clock=self.clock)
        return MatchExplanation(subscription, entry, explanation)

    def _entry(self, event: str, visibility: Visibility | None) -> dict[str, Any]:
        """The visible part of an event. One without a visible part raises the same NotFound as an unknown one."""
        seen = VisibleEvents(self.log, visibility)
        try:
            position = parse_position(event)
        except BadRequest:
            return find_newest(seen, event)
        return read_entry(seen, position)


def _ontology(loaded: Sequence[RegistryChange]) -> Ontology:
    return merge_ontologies([ontology_from_change(each) for each in loaded])
