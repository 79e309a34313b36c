"""Subscriptions: making, seeing and ending them. Pure over the registry port; it blocks, so call it from a thread."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from triplewire.access import EVERYONE, Principal, Verb
from triplewire.access.owners import may_see, owner_of
from triplewire.config import limits
from triplewire.control.beginnings import Beginnings
from triplewire.control.entailments import Entailments
from triplewire.control.pages import Page, paged
from triplewire.control.sharing import Sharing
from triplewire.control.sights import Seen, Sightings
from triplewire.control.templates import Templates, filled
from triplewire.control.webhooks import Webhooks
from triplewire.control.wishes import Instance, Wish
from triplewire.matching.canonical_form import ConstantSymmetries
from triplewire.matching.prepared_queries import PreparedShapes
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.matching.shapes import Shape
from triplewire.model import START, Subscription, format_position
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
from triplewire.storage import webhooks
from triplewire.storage.registry import subscriptions
from triplewire.storage.registry.ports import Registry
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
    subscription_from_change,
    subscription_to_value,
    subscriptions_owned_by,
)
from triplewire.storage.webhooks import WEBHOOK, Webhook, WebhookState

Entry = tuple[str, str, Mapping[str, Any] | None]
Find = Callable[[str], QueryTemplate]


class Subscriptions:
    """The standing questions, as the registry holds them."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        head: Callable[[], int] | None = None,
        beginnings: Beginnings | None = None,
        webhooks: Webhooks | None = None,
    ) -> None:
        """`head` tells how far the registry is. Without `beginnings` no subscription may ask for the past, and without
        `webhooks` none to be told by POST."""
        self.sharing = Sharing(registry, head)
        self._registry = registry
        self._clock = clock
        self._new_id = new_id
        self._beginnings = beginnings
        self._webhooks = webhooks
        self.templates = Templates(registry)
        self._entailments = Entailments(registry)
        self.sightings = Sightings(registry)
        self._texts = PreparedShapes()
        self._symmetries = ConstantSymmetries()
        self._shapes: set[str] = set()
        """Keys of some that are in the registry; shapes stay there."""

    def make(self, wishes: Sequence[Wish], by: Principal = EVERYONE) -> list[Subscription]:
        """All of them, or none: raises SparqlSyntax or Unsupported for the first that cannot be.

        Each sees every event whose publish is answered after this returns, and those at positions above its `since`, as
        far as who makes it does.
        """
        once = self._once(by)
        drafts = [self._drafted(wish, once) for wish in wishes]
        return [replace(each.made, since=at) for each, at in zip(drafts, self._registered(drafts), strict=True)]

    def make_each(
        self, wishes: Sequence[Wish | TriplewireError], by: Principal = EVERYONE
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

    def asked(self, wish: Wish) -> ShapeRequest:
        """What would be lifted. Raises NotFound or Conflict for the template, Unfit for its values."""
        if wish.instance is None:
            return wish.asked
        return _asked(wish, wish.instance, _template(wish.instance, self.templates.find))

    def begins(self, wish: Wish) -> int | None:
        """The first position of the past that is asked for, if any is. Raises Unfit for what lies in the future."""
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

    def page(self, after: int = START, limit: int = limits.PAGE, by: Principal = EVERYONE) -> Page[Subscription]:
        """Those made after a position, as far as they are there for who asks."""
        own = None if by.may(Verb.ADMIN) else subscriptions_owned_by(by.name)
        changes, following = paged(self._registry, SUBSCRIPTION, own, after, limit)
        return Page([subscription_from_change(each) for each in changes], following)

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
        positions = self._registry.put([*missing, *made, *_beside(drafts)])[len(missing) : len(missing) + len(drafts)]
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

    def _hooked(self, made: Subscription, wish: Wish) -> Webhook | None:
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
        if len(self._shapes) > limits.REMEMBERED_SKELETONS:
            self._shapes = set()
        self._shapes |= shapes.keys()

    def _once(self, by: Principal) -> _Once:
        return _Once(cache(self.templates.find), cache(self._entailments.version), by, self.sightings.of(by))

    def _attempted(self, wish: Wish | TriplewireError, once: _Once) -> _Draft | TriplewireError:
        try:
            return wish if isinstance(wish, TriplewireError) else self._drafted(wish, once)
        except (InputError, QueryLimit, NotFound, Conflict) as error:
            return error

    def _drafted(self, wish: Wish, once: _Once) -> _Draft:
        template = None if wish.instance is None else _template(wish.instance, once.find)
        asked = wish.asked if wish.instance is None or template is None else _asked(wish, wish.instance, template)
        asked = replace(asked, sight=once.seen.sight)
        version = None if wish.entailment is None else once.version()
        if version is None:
            lifted = self._symmetries.settled(self._texts.lift(asked))
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
class _Once:
    """What is looked up once for many: templates by name, the version of the ontologies, who asks and what they see."""

    find: Find
    version: Callable[[], int]
    by: Principal
    seen: Seen


@dataclass(frozen=True)
class _Draft:
    """A subscription that is not registered yet, and its shape."""

    made: Subscription
    shape: Shape
    seen: Seen
    version: int | None = None
    """Of the ontologies by which it was lifted; None for one that goes by none."""
    hook: Webhook | None = None
    secret: str = field(default="", repr=False)


def _beside(drafts: Sequence[_Draft]) -> Iterator[Entry]:
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


def _template(wanted: Instance, find: Find) -> QueryTemplate:
    template = find(wanted.template)
    if wanted.version not in (None, template.version):
        raise Conflict(f"template {template.name} is of version {format_position(template.version)} by now")
    return template


def _asked(wish: Wish, wanted: Instance, template: QueryTemplate) -> ShapeRequest:
    return replace(wish.asked, text=template.sparql, values=filled(template, wanted.values))
