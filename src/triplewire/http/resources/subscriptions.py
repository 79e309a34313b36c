"""Subscriptions in the registry: make, find, list and end them. Pure over the registry port; it blocks, so call it
from a thread.

A subscription is compiled for the visibility of its owner, and again whenever the policy changes that: then it is
put
anew under its id in the transaction of the change, so that each event is matched by the visibility that held at its
position. Subscriptions that ask the same are evaluated once, and counted.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from threading import Lock
from typing import Any

from triplewire.http.resources.bodies import ResourcePage, list_page
from triplewire.http.resources.documents import BULK_LINES
from triplewire.http.resources.ontologies import SubscriptionEntailment, query_asked_by
from triplewire.http.resources.subscription_requests import (
    BackfillStarts,
    SubscriptionRequest,
    TemplateInstance,
    WebhookRegistrar,
)
from triplewire.http.resources.templates import TemplateManager, fill_values
from triplewire.matching.canonical_form import CACHED_SKELETONS, ConstantSymmetries
from triplewire.matching.prepared_queries import PreparedShapes
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.matching.shapes import LiftedShape, Shape
from triplewire.model import END, START, Subscription, format_position
from triplewire.model.clock import Clock
from triplewire.model.errors import (
    Conflict,
    InputError,
    InvalidField,
    NotFound,
    QueryLimit,
    TriplewireError,
    Unavailable,
)
from triplewire.security import EVERYONE, Policy, Principal, Verb, visibility_of
from triplewire.security.principals import may_see, owner_of, principal_of
from triplewire.security.visibility import NONE_VISIBLE, Visibility
from triplewire.storage import webhooks
from triplewire.storage.registry import subscriptions
from triplewire.storage.registry.ports import PAGE_ENTRIES, Registry, RegistryChange
from triplewire.storage.registry.security import VISIBILITY, PolicyStore, VisibilityStore, visibility_name
from triplewire.storage.registry.subscriptions import (
    ENTAILED,
    EXPIRY,
    LANE,
    LEASE,
    SHAPE,
    SUBSCRIPTION,
    Lane,
    Lease,
    QueryTemplate,
    revise_subscription,
    subscription_from_change,
    subscription_to_value,
    subscriptions_owned_by,
)
from triplewire.storage.webhooks import WEBHOOK, Webhook, WebhookState

# Sharing: how many subscriptions ask the same, and are evaluated once.

_CHANGES_AT_ONCE = 10_000
"""Positions whose changes are read at once: some 20 MB."""


class SharingCounter:
    """Counts subscriptions by what they ask, from the first time that somebody wants to know. Any thread may use it.

    It keeps two numbers for each subscription, some 200 bytes.
    """

    def __init__(self, registry: Registry, head: Callable[[], int] | None = None) -> None:
        """`head` tells how far the registry is; without it all its changes are read at once."""
        self._registry = registry
        self._head = head
        self._turn = Lock()
        self._position = 0
        self._asked: dict[int, int] = {}
        self._counts: dict[int, int] = {}

    def count(self, id: str) -> int:
        """How many ask what this one does, itself included; 0 for one that is not there."""
        with self._turn:
            self._follow()
            asked = self._asked.get(_digest(id))
            return 0 if asked is None else self._counts[asked]

    def _follow(self) -> None:
        if self._head is None:
            self._take(self._registry.changes(self._position, END))
            return
        head = self._head()
        while self._position < head:
            upto = min(head, self._position + _CHANGES_AT_ONCE)
            self._take(self._registry.changes(self._position, upto))
            self._position = upto

    def _take(self, changes: Iterable[RegistryChange]) -> None:
        for change in changes:
            self._position = max(self._position, change.position)
            if change.kind == SUBSCRIPTION:
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
    """A number that tells texts apart: two of a million are the same once in ten million times."""
    told = blake2b(digest_size=8)
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        told.update(len(encoded).to_bytes(4, "big") + encoded)
    return int.from_bytes(told.digest(), "big")


# Sights: what the owners of subscriptions see, from version to version of the policy.
#
# A subscription is compiled for what its owner sees when it is made, and again whenever the policy changes that: then
# it is put anew under its id, in the transaction of the change, so that each event is matched by what was in sight at
# its position.

Entry = tuple[str, str, Mapping[str, Any] | None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class VersionedVisibility:
    """What somebody sees by a version of the policy."""

    sight: Visibility | None
    version: int

    @property
    def name(self) -> str | None:
        return None if self.sight is None else visibility_name(self.sight)


class SubscriptionVisibility:
    """What is in sight by the registry's policy. It blocks; any thread may use it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._policies = PolicyStore(registry)
        self._sights = VisibilityStore(registry)
        self._entailments = SubscriptionEntailment(registry)
        self._texts = PreparedShapes()
        self._symmetries = ConstantSymmetries()

    def version(self) -> int:
        """Where the policy was changed last."""
        return self._policies.current().version

    def of(self, principal: Principal) -> VersionedVisibility:
        """What somebody is told of who subscribes now."""
        enacted = self._policies.current()
        return VersionedVisibility(visibility_of(principal, Verb.SUBSCRIBE, enacted.policy), enacted.version)

    def shown_by(self, subscription: Subscription) -> Visibility | None:
        """What a subscription, as it is now, shows of events."""
        return self._sights.find(subscription.sight)

    def missing(self, sights: Sequence[Visibility | None]) -> Iterator[Entry]:
        """What is to be put for those of which the registry does not know."""
        for sight in dict.fromkeys(sights):
            if sight is not None and self._sights.missing(sight):
                yield VISIBILITY, visibility_name(sight), sight.to_json()

    def following(self, policy: Policy | None) -> list[Entry]:
        """What is to be put with a change of policy, so that the subscriptions follow it."""
        sights, shapes, revisions = list[Visibility | None](), dict[str, Shape](), list[Entry]()
        for found in self._all():
            seen = VersionedVisibility(visibility_of(principal_of(found.owner), Verb.SUBSCRIBE, policy), START)
            if seen.name != found.sight:
                seen, lifted = self._lifted(found, seen)
                sights.append(seen.sight)
                shapes |= {} if lifted is None else {lifted.shape.key: lifted.shape}
                shape, constants = (found.shape, found.constants) if lifted is None else _shape_and_constants(lifted)
                revisions.append(
                    (
                        SUBSCRIPTION,
                        found.id,
                        subscription_to_value(revise_subscription(found, shape, constants, seen.name)),
                    )
                )
        fresh = ((key, each) for key, each in shapes.items() if self._registry.get(SHAPE, key) is None)
        return [*self.missing(sights), *((SHAPE, key, each.to_value()) for key, each in fresh), *revisions]

    def settle(self) -> int:
        """Bring those up to date that were made while the policy changed; the position from which on all are."""
        enacted = self._policies.current()
        return max([enacted.version, *self._registry.put(self.following(enacted.policy))])

    def _lifted(self, found: Subscription, seen: VersionedVisibility) -> tuple[VersionedVisibility, LiftedShape | None]:
        """What a subscription asks of what is in sight. A policy does not wait for one that cannot be asked so: nothing
        is in its sight any more."""
        asked = replace(query_asked_by(found), sight=seen.sight)
        try:
            if found.entailment is None:
                return seen, self._symmetries.sort_constants(self._texts.lift(asked))
            return seen, self._entailments.lift(asked, self._entailments.version())
        except TriplewireError:
            logger.warning("subscription %s cannot follow the policy and is told of nothing", found.id, exc_info=True)
            return replace(seen, sight=NONE_VISIBLE), None

    def _all(self) -> Iterator[Subscription]:
        after: int = START
        while changes := self._registry.list(SUBSCRIPTION, after=after, limit=BULK_LINES):
            yield from map(subscription_from_change, changes)
            after = changes[-1].position


def _shape_and_constants(lifted: LiftedShape) -> tuple[str, tuple[str, ...]]:
    return lifted.shape.key, lifted.constants


FindTemplate = Callable[[str], QueryTemplate]


class SubscriptionManager:
    """The standing questions, as the registry holds them."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        head: Callable[[], int] | None = None,
        beginnings: BackfillStarts | None = None,
        webhooks: WebhookRegistrar | None = None,
    ) -> None:
        """`head` tells how far the registry is. Without `beginnings` no subscription may ask for the past, and without
        `webhooks` none to be told by POST."""
        self.sharing = SharingCounter(registry, head)
        self._registry = registry
        self._clock = clock
        self._new_id = new_id
        self._beginnings = beginnings
        self._webhooks = webhooks
        self.templates = TemplateManager(registry)
        self._entailments = SubscriptionEntailment(registry)
        self.sightings = SubscriptionVisibility(registry)
        self._texts = PreparedShapes()
        self._symmetries = ConstantSymmetries()
        self._shapes: set[str] = set()
        """Keys of some that are in the registry; shapes stay there."""

    def make(self, wishes: Sequence[SubscriptionRequest], by: Principal = EVERYONE) -> list[Subscription]:
        """All of them, or none: raises SparqlSyntax or Unsupported for the first that cannot be.

        Each sees every event whose publish is answered after this returns, and those at positions above its `since`, as
        far as who makes it does.
        """
        once = self._once(by)
        drafts = [self._drafted(wish, once) for wish in wishes]
        return [replace(each.made, since=at) for each, at in zip(drafts, self._registered(drafts), strict=True)]

    def make_each(
        self, wishes: Sequence[SubscriptionRequest | TriplewireError], by: Principal = EVERYONE
    ) -> list[tuple[str, int] | TriplewireError]:
        """Those that can be, in one transaction: the id of each and its position; in the place of another is what is
        wrong with it. What was an error before stays one. If the registry fails, none is made, and each has that
        error."""
        once = self._once(by)
        drafts = [self._attempted(wish, once) for wish in wishes]
        try:
            positions = iter(self._registered([each for each in drafts if not isinstance(each, TriplewireError)]))
        except TriplewireError as error:
            return [each if isinstance(each, TriplewireError) else error for each in drafts]
        return [each if isinstance(each, TriplewireError) else (each.made.id, next(positions)) for each in drafts]

    def asked(self, wish: SubscriptionRequest) -> ShapeRequest:
        """What would be lifted. Raises NotFound or Conflict for the template, InvalidField for its values."""
        if wish.instance is None:
            return wish.asked
        return _fill_template(wish, wish.instance, _find_template(wish.instance, self.templates.find))

    def begins(self, wish: SubscriptionRequest) -> int | None:
        """The first position of history that is asked for, if any is. Raises InvalidField for a position to come."""
        if wish.begins is None:
            return None
        if self._beginnings is None:
            raise InvalidField("from", "from is not possible here: no events are kept")
        return self._beginnings.position(wish.begins)

    def find(self, id: str, by: Principal = EVERYONE) -> Subscription:
        """Raises NotFound for one that is not there or was ended, or is somebody else's."""
        change = self._registry.get(SUBSCRIPTION, id)
        found = None if change is None else subscription_from_change(change)
        if found is None or not may_see(by, found.owner):
            raise NotFound(f"there is no subscription {id}")
        return found

    def page(
        self, after: int = START, limit: int = PAGE_ENTRIES, by: Principal = EVERYONE
    ) -> ResourcePage[Subscription]:
        """Those made after a position, as far as they are there for who asks."""
        own = None if by.may(Verb.ADMIN) else subscriptions_owned_by(by.name)
        changes, following = list_page(self._registry, SUBSCRIPTION, own, after, limit)
        return ResourcePage([subscription_from_change(each) for each in changes], following)

    def end(self, id: str, by: Principal = EVERYONE) -> None:
        """From here on it sees no more events. Raises NotFound for one that is not there, or is somebody else's."""
        found = self.find(id, by)
        leased: list[Entry] = [] if found.ttl is None else [(LEASE, id, None)]
        entailed: list[Entry] = [] if found.entailment is None else [(ENTAILED, id, None)]
        hook = self.hook(id)
        hooked: list[Entry] = (
            [] if hook is None else [(WEBHOOK, id, webhooks.webhook_to_value(replace(hook, state=WebhookState.ENDED)))]
        )
        owned: list[Entry] = [] if found.owner is None else [(subscriptions_owned_by(found.owner.name), id, None)]
        self._registry.put([(SUBSCRIPTION, id, None), *leased, *entailed, *owned, *hooked])

    def hook(self, id: str) -> Webhook | None:
        """Where its notifications are sent; None for one that is listened to."""
        change = self._registry.get(WEBHOOK, id)
        return None if change is None else webhooks.webhook_from_change(change)

    def lane(self, subscription: Subscription) -> Lane | None:
        """The lane in which it is matched apart from others; None for the one of all."""
        change = self._registry.get(LANE, subscription.shape)
        return None if change is None else subscriptions.lane_from_change(change)

    def lease(self, id: str) -> Lease | None:
        """Until when a subscription stays if nobody listens to it; None for one that stays."""
        change = self._registry.get(LEASE, id)
        return None if change is None else subscriptions.lease_from_change(change)

    def _registered(self, drafts: Sequence[_Draft]) -> list[int]:
        """The positions of the drafts, which are subscriptions now."""
        shapes = {each.shape.key: each.shape for each in drafts}
        missing = [*self._missing(shapes), *self.sightings.missing([each.seen.sight for each in drafts])]
        self._keep_secrets(drafts)
        made = [(SUBSCRIPTION, each.made.id, subscription_to_value(each.made)) for each in drafts]
        positions = self._registry.put([*missing, *made, *_companion_entries(drafts)])[
            len(missing) : len(missing) + len(drafts)
        ]
        self._remember(shapes)
        versions = {each.version for each in drafts} - {None}
        if versions and versions != {self._entailments.version()}:
            self._entailments.settle()
        if any(each.seen.version != self.sightings.version() for each in drafts[:1]):
            # Nobody knows of them yet, and nobody is to hear what they found by what is no longer in sight.
            for each in drafts:
                self.end(each.made.id)
            raise Unavailable("the policy changed while the subscriptions were made; make them again")
        return positions

    def _keep_secrets(self, drafts: Sequence[_Draft]) -> None:
        if self._webhooks is not None:
            self._webhooks.keep({each.hook.id: each.secret for each in drafts if each.hook is not None})

    def _hooked(self, made: Subscription, wish: SubscriptionRequest) -> Webhook | None:
        if wish.webhook is None:
            return None
        if self._webhooks is None:
            raise InvalidField("webhook", "webhook is not possible here: nobody delivers")
        return self._webhooks.hook(made.id, wish.webhook, made.created)

    def _missing(self, shapes: Mapping[str, Shape]) -> Iterator[Entry]:
        for key, shape in shapes.items():
            if key not in self._shapes and self._registry.get(SHAPE, key) is None:
                yield SHAPE, key, shape.to_value()

    def _remember(self, shapes: Mapping[str, Shape]) -> None:
        if len(self._shapes) > CACHED_SKELETONS:
            self._shapes = set()
        self._shapes |= shapes.keys()

    def _once(self, by: Principal) -> _RequestContext:
        return _RequestContext(cache(self.templates.find), cache(self._entailments.version), by, self.sightings.of(by))

    def _attempted(
        self, wish: SubscriptionRequest | TriplewireError, once: _RequestContext
    ) -> _Draft | TriplewireError:
        try:
            return wish if isinstance(wish, TriplewireError) else self._drafted(wish, once)
        except (InputError, QueryLimit, NotFound, Conflict) as error:
            return error

    def _drafted(self, wish: SubscriptionRequest, once: _RequestContext) -> _Draft:
        template = None if wish.instance is None else _find_template(wish.instance, once.find)
        asked = (
            wish.asked if wish.instance is None or template is None else _fill_template(wish, wish.instance, template)
        )
        asked = replace(asked, sight=once.seen.sight)
        version = None if wish.entailment is None else once.version()
        if version is None:
            lifted = self._symmetries.sort_constants(self._texts.lift(asked))
        else:
            lifted = self._entailments.lift(asked, version)
        made = Subscription(
            id=self._new_id(),
            sparql=asked.text,
            kind=wish.kind,
            shape=lifted.shape.key,
            constants=lifted.constants,
            stream=wish.stream,
            source=wish.source,
            application=wish.application,
            vocabulary=wish.vocabulary,
            template=None if template is None else (template.name, template.version),
            values=() if template is None else asked.values,
            filter=wish.filter,
            ttl=wish.ttl,
            entailment=wish.entailment,
            begins=self.begins(wish),
            ontologies=() if wish.begins is None else self._entailments.loaded(),
            owner=owner_of(once.by),
            sight=once.seen.name,
            created=self._clock.now(),
        )
        secret = "" if wish.webhook is None else wish.webhook.secret
        return _Draft(made, lifted.shape, once.seen, version, self._hooked(made, wish), secret)


@dataclass(frozen=True)
class _RequestContext:
    """What is looked up once for many: templates by name, the version of the ontologies, who asks and what they see."""

    find: FindTemplate
    version: Callable[[], int]
    by: Principal
    seen: VersionedVisibility


@dataclass(frozen=True)
class _Draft:
    """A subscription that is not registered yet, and its shape."""

    made: Subscription
    shape: Shape
    seen: VersionedVisibility
    version: int | None = None
    """Of the ontologies by which it was lifted; None for one that goes by none."""
    hook: Webhook | None = None
    secret: str = field(default="", repr=False)


def _companion_entries(drafts: Sequence[_Draft]) -> Iterator[Entry]:
    """What is stored beside subscriptions, so that those who look after them find them."""
    for each in drafts:
        if each.made.entailment is not None:
            yield ENTAILED, each.made.id, {}
        if each.hook is not None:
            yield WEBHOOK, each.hook.id, webhooks.webhook_to_value(each.hook)
        if each.made.owner is not None:
            yield subscriptions_owned_by(each.made.owner.name), each.made.id, {}
        if each.made.ttl is not None:
            lease = Lease.begun(each.made.id, each.made.ttl, each.made.created)
            yield LEASE, lease.id, subscriptions.lease_to_value(lease)
            yield EXPIRY, subscriptions.expiry_key(lease.until, lease.id), {}


def _find_template(wanted: TemplateInstance, find: FindTemplate) -> QueryTemplate:
    template = find(wanted.template)
    if wanted.version not in (None, template.version):
        raise Conflict(f"template {template.name} is of version {format_position(template.version)} by now")
    return template


def _fill_template(wish: SubscriptionRequest, wanted: TemplateInstance, template: QueryTemplate) -> ShapeRequest:
    return replace(wish.asked, text=template.sparql, values=fill_values(template, wanted.values))
