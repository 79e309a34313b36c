"""Subscriptions in the registry: create, find, list and end them. Pure over the registry port; it blocks, so call it
from a thread.

A subscription is compiled for the visibility of its owner, and again whenever the policy changes that: then it is
put anew under its id in the transaction of the change, so that each event is matched by the visibility that held at its
position. Subscriptions that ask the same are evaluated once, and counted.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from threading import Lock

from triplewire.http.resources.ontologies import SubscriptionEntailment, query_asked_by
from triplewire.http.resources.registry_resource import BulkRegistration, KnownEntries, RegistryEntry, RegistryResource
from triplewire.http.resources.subscription_requests import (
    BackfillStarts,
    SubscriptionRequest,
    TemplateInstance,
    WebhookRegistrar,
    resolve_start,
)
from triplewire.http.resources.templates import TemplateManager, fill_values
from triplewire.matching.canonical_form import ConstantSymmetries
from triplewire.matching.prepared_queries import PreparedShapes
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.matching.shapes import LiftedShape, Shape
from triplewire.model import END, START, Subscription, errors, format_position
from triplewire.model.clock import Clock
from triplewire.security import EVERYONE, Policy, Principal, Verb, visibility_of
from triplewire.security.principals import owner_of, principal_of
from triplewire.security.visibility import NONE_VISIBLE, Visibility
from triplewire.storage import webhooks
from triplewire.storage.registry import subscriptions as registered
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.security import VISIBILITY, PolicyStore, VisibilityStore, visibility_name
from triplewire.storage.webhooks import WEBHOOK, Webhook, WebhookState

_CHANGES_AT_ONCE = 10_000
"""Positions whose registry changes are read at once: some 20 MB."""


class SharingCounter:
    """Counts subscriptions that have the same shape and constants, and so are evaluated once. Any thread may use it.

    It reads the registry when it is first asked, and keeps two numbers for each subscription, some 200 bytes.
    """

    def __init__(self, registry: Registry, head: Callable[[], int] | None = None) -> None:
        """`head` returns the registry's newest position; without it all changes are read at once."""
        self._registry = registry
        self._head = head
        self._lock = Lock()
        self._position = 0
        self._asked: dict[int, int] = {}
        self._counts: dict[int, int] = {}

    def count(self, id: str) -> int:
        """The number of subscriptions that ask the same, itself included; 0 for an unknown id."""
        with self._lock:
            self._follow()
            asked = self._asked.get(_digest(id))
            return 0 if asked is None else self._counts[asked]

    def _follow(self) -> None:
        if self._head is None:
            self._take(self._registry.changes(self._position, END))
            return
        head = self._head()
        while self._position < head:
            end = min(head, self._position + _CHANGES_AT_ONCE)
            self._take(self._registry.changes(self._position, end))
            self._position = end

    def _take(self, changes: Iterable[RegistryChange]) -> None:
        for change in changes:
            self._position = max(self._position, change.position)
            if change.kind == registered.SUBSCRIPTION:
                self._drop(_digest(change.key))
                if change.value is not None:
                    asked = _digest(change.value["shape"], *change.value["constants"])
                    self._asked[_digest(change.key)] = asked
                    self._counts[asked] = self._counts.get(asked, 0) + 1

    def _drop(self, id: int) -> None:
        asked = self._asked.pop(id, None)
        if asked is not None:
            self._counts[asked] -= 1
            if not self._counts[asked]:
                del self._counts[asked]


def _digest(*texts: str) -> int:
    """A 64-bit hash: among a million texts two collide once in ten million times."""
    hashed = blake2b(digest_size=8)
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        hashed.update(len(encoded).to_bytes(4, "big") + encoded)
    return int.from_bytes(hashed.digest(), "big")


logger = logging.getLogger(__name__)


FindTemplate = Callable[[str], registered.QueryTemplate]


@dataclass(frozen=True)
class VersionedVisibility:
    """The visibility of a principal under a version of the policy."""

    visibility: Visibility | None
    version: int

    @property
    def name(self) -> str | None:
        return None if self.visibility is None else visibility_name(self.visibility)


class Subscriptions(RegistryResource[Subscription]):
    """The subscriptions that the registry holds."""

    kind = registered.SUBSCRIPTION
    noun = "subscription"
    from_change = staticmethod(registered.subscription_from_change)
    owned_by = staticmethod(registered.subscriptions_owned_by)


class SubscriptionVisibility:
    """The visibility of subscriptions under the registry's policy. It blocks; any thread may use it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._policies = PolicyStore(registry)
        self._visibilities = VisibilityStore(registry)
        self._entailments = SubscriptionEntailment(registry)
        self._texts = PreparedShapes()
        self._symmetries = ConstantSymmetries()

    def version(self) -> int:
        """The position of the newest policy change."""
        return self._policies.current().version

    def find(self, principal: Principal) -> VersionedVisibility:
        """The visibility of a subscription that a principal creates now."""
        enacted = self._policies.current()
        return VersionedVisibility(visibility_of(principal, Verb.SUBSCRIBE, enacted.policy), enacted.version)

    def shown_by(self, subscription: Subscription) -> Visibility | None:
        """The visibility that a subscription was compiled for."""
        return self._visibilities.find(subscription.visibility)

    def missing(self, visibilities: Sequence[Visibility | None]) -> Iterator[RegistryEntry]:
        """Entries to put for those that the registry does not have."""
        for visibility in dict.fromkeys(visibilities):
            if visibility is not None and self._visibilities.missing(visibility):
                yield VISIBILITY, visibility_name(visibility), visibility.to_json()

    def following(self, policy: Policy | None) -> list[RegistryEntry]:
        """Entries to put with a policy change, so that subscriptions follow it."""
        visibilities, shapes, revisions = list[Visibility | None](), dict[str, Shape](), list[RegistryEntry]()
        for found in Subscriptions(self._registry).each():
            seen = VersionedVisibility(visibility_of(principal_of(found.owner), Verb.SUBSCRIBE, policy), START)
            if seen.name != found.visibility:
                seen, lifted = self._lifted(found, seen)
                visibilities.append(seen.visibility)
                shapes |= {} if lifted is None else {lifted.shape.key: lifted.shape}
                shape, constants = (found.shape, found.constants) if lifted is None else _shape_and_constants(lifted)
                revised = registered.revise_subscription(found, shape, constants, seen.name)
                revisions.append((registered.SUBSCRIPTION, found.id, registered.subscription_to_value(revised)))
        fresh = ((key, each) for key, each in shapes.items() if self._registry.get(registered.SHAPE, key) is None)
        return [
            *self.missing(visibilities),
            *((registered.SHAPE, key, each.to_value()) for key, each in fresh),
            *revisions,
        ]

    def settle(self) -> int:
        """Update subscriptions that were created during a policy change; the position from which all are current."""
        enacted = self._policies.current()
        return max([enacted.version, *self._registry.put(self.following(enacted.policy))])

    def _lifted(self, found: Subscription, seen: VersionedVisibility) -> tuple[VersionedVisibility, LiftedShape | None]:
        """Compile a subscription for a visibility. One that cannot be compiled must not block the policy: it sees
        nothing from then on."""
        asked = replace(query_asked_by(found), visibility=seen.visibility)
        try:
            if found.entailment is None:
                return seen, self._symmetries.sort_constants(self._texts.lift(asked))
            return seen, self._entailments.lift(asked, self._entailments.version())
        except errors.TriplewireError:
            logger.warning(
                "subscription %s cannot follow the policy and gets no notifications any more", found.id, exc_info=True
            )
            return replace(seen, visibility=NONE_VISIBLE), None


def _shape_and_constants(lifted: LiftedShape) -> tuple[str, tuple[str, ...]]:
    return lifted.shape.key, lifted.constants


class SubscriptionManager(
    Subscriptions, BulkRegistration[SubscriptionRequest, "_RequestContext", "_Draft", Subscription]
):
    """Creates, finds and ends subscriptions in the registry."""

    refusals = (errors.InputError, errors.QueryLimit, errors.NotFound, errors.Conflict)

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        head: Callable[[], int] | None = None,
        starts: BackfillStarts | None = None,
        webhooks: WebhookRegistrar | None = None,
    ) -> None:
        """`head` returns the registry's newest position. Without `starts` subscriptions have no backfill, and
        without `webhooks` no webhooks."""
        super().__init__(registry)
        self.sharing = SharingCounter(registry, head)
        self._clock = clock
        self._new_id = new_id
        self._starts = starts
        self._webhooks = webhooks
        self.templates = TemplateManager(registry)
        self._entailments = SubscriptionEntailment(registry)
        self.visibility = SubscriptionVisibility(registry)
        self._texts = PreparedShapes()
        self._symmetries = ConstantSymmetries()
        self._shapes = KnownEntries(registry, registered.SHAPE)

    def asked(self, request: SubscriptionRequest) -> ShapeRequest:
        """The query to lift. Raises NotFound or Conflict for the template, InvalidField for its values."""
        if request.instance is None:
            return request.asked
        return _fill_template(request, request.instance, _find_template(request.instance, self.templates.find))

    def begins(self, request: SubscriptionRequest) -> int | None:
        """The first position of the backfill, if there is one. Raises InvalidField for a future position."""
        return resolve_start(request.begins, self._starts)

    def end(self, id: str, by: Principal = EVERYONE) -> None:
        """End a subscription: it sees no later events. Raises NotFound."""
        found = self.find(id, by)
        leased: list[RegistryEntry] = [] if found.ttl is None else [(registered.LEASE, id, None)]
        entailed: list[RegistryEntry] = [] if found.entailment is None else [(registered.ENTAILED, id, None)]
        hook = self.hook(id)
        hooked: list[RegistryEntry] = (
            [] if hook is None else [(WEBHOOK, id, webhooks.webhook_to_value(replace(hook, state=WebhookState.ENDED)))]
        )
        owned: list[RegistryEntry] = (
            [] if found.owner is None else [(registered.subscriptions_owned_by(found.owner.name), id, None)]
        )
        self._registry.put([(registered.SUBSCRIPTION, id, None), *leased, *entailed, *owned, *hooked])

    def hook(self, id: str) -> Webhook | None:
        """Its webhook, if it has one."""
        change = self._registry.get(WEBHOOK, id)
        return None if change is None else webhooks.webhook_from_change(change)

    def lane(self, subscription: Subscription) -> registered.Lane | None:
        """The slow lane, if its shape is matched there."""
        change = self._registry.get(registered.LANE, subscription.shape)
        return None if change is None else registered.lane_from_change(change)

    def lease(self, id: str) -> registered.Lease | None:
        """Its lease, if it has one."""
        change = self._registry.get(registered.LEASE, id)
        return None if change is None else registered.lease_from_change(change)

    def _store(self, drafts: Sequence[_Draft], context: _RequestContext) -> list[int]:
        shapes = {each.shape.key: each.shape for each in drafts}
        missing = [*self._shapes.missing(shapes), *self.visibility.missing([each.seen.visibility for each in drafts])]
        self._keep_secrets(drafts)
        made = [
            (registered.SUBSCRIPTION, each.resource.id, registered.subscription_to_value(each.resource))
            for each in drafts
        ]
        positions = self._registry.put([*missing, *made, *_companion_entries(drafts)])[
            len(missing) : len(missing) + len(drafts)
        ]
        self._shapes.remember(shapes)
        versions = {each.version for each in drafts} - {None}
        if versions and versions != {self._entailments.version()}:
            self._entailments.settle()
        if any(each.seen.version != self.visibility.version() for each in drafts[:1]):
            # No client knows their ids yet, and none may see what they matched under the old visibility.
            for each in drafts:
                self.end(each.resource.id)
            raise errors.Unavailable("the policy changed while the subscriptions were created; create them again")
        return positions

    def _keep_secrets(self, drafts: Sequence[_Draft]) -> None:
        if self._webhooks is not None:
            self._webhooks.keep({each.hook.id: each.secret for each in drafts if each.hook is not None})

    def _hooked(self, made: Subscription, request: SubscriptionRequest) -> Webhook | None:
        if request.webhook is None:
            return None
        if self._webhooks is None:
            raise errors.InvalidField("webhook", "webhook is not possible here: this edge delivers none")
        return self._webhooks.make(made.id, request.webhook, made.created)

    def _context(self, by: Principal) -> _RequestContext:
        return _RequestContext(
            cache(self.templates.find), cache(self._entailments.version), by, self.visibility.find(by)
        )

    def _draft(self, request: SubscriptionRequest, context: _RequestContext) -> _Draft:
        template = None if request.instance is None else _find_template(request.instance, context.find)
        asked = (
            request.asked
            if request.instance is None or template is None
            else _fill_template(request, request.instance, template)
        )
        asked = replace(asked, visibility=context.seen.visibility)
        version = None if request.entailment is None else context.version()
        if version is None:
            lifted = self._symmetries.sort_constants(self._texts.lift(asked))
        else:
            lifted = self._entailments.lift(asked, version)
        made = Subscription(
            id=self._new_id(),
            sparql=asked.text,
            kind=request.kind,
            shape=lifted.shape.key,
            constants=lifted.constants,
            stream=request.stream,
            source=request.source,
            application=request.application,
            vocabulary=request.vocabulary,
            template=None if template is None else (template.name, template.version),
            values=() if template is None else asked.values,
            filter=request.filter,
            ttl=request.ttl,
            entailment=request.entailment,
            begins=self.begins(request),
            ontologies=() if request.begins is None else self._entailments.loaded(),
            owner=owner_of(context.by),
            visibility=context.seen.name,
            created=self._clock.now(),
        )
        secret = "" if request.webhook is None else request.webhook.secret
        return _Draft(made, lifted.shape, context.seen, version, self._hooked(made, request), secret)


@dataclass(frozen=True)
class _RequestContext:
    """Templates by name, the version of the ontologies, the principal and its visibility, looked up once."""

    find: FindTemplate
    version: Callable[[], int]
    by: Principal
    seen: VersionedVisibility


@dataclass(frozen=True)
class _Draft:
    """A subscription that is not registered yet."""

    resource: Subscription
    shape: Shape
    seen: VersionedVisibility
    version: int | None = None
    """The version of the ontologies by which it was lifted; None without entailment."""
    hook: Webhook | None = None
    secret: str = field(default="", repr=False)


def _companion_entries(drafts: Sequence[_Draft]) -> Iterator[RegistryEntry]:
    """Entries by which leases, webhooks, entailment and owners find subscriptions."""
    for each in drafts:
        if each.resource.entailment is not None:
            yield registered.ENTAILED, each.resource.id, {}
        if each.hook is not None:
            yield WEBHOOK, each.hook.id, webhooks.webhook_to_value(each.hook)
        if each.resource.owner is not None:
            yield registered.subscriptions_owned_by(each.resource.owner.name), each.resource.id, {}
        if each.resource.ttl is not None:
            lease = registered.Lease.begun(each.resource.id, each.resource.ttl, each.resource.created)
            yield registered.LEASE, lease.id, registered.lease_to_value(lease)
            yield registered.EXPIRY, registered.expiry_key(lease.until, lease.id), {}


def _find_template(wanted: TemplateInstance, find: FindTemplate) -> registered.QueryTemplate:
    template = find(wanted.template)
    if wanted.version not in (None, template.version):
        raise errors.Conflict(f"template {template.name} has version {format_position(template.version)} by now")
    return template


def _fill_template(
    request: SubscriptionRequest, wanted: TemplateInstance, template: registered.QueryTemplate
) -> ShapeRequest:
    return replace(request.asked, text=template.sparql, values=fill_values(template, wanted.values))
