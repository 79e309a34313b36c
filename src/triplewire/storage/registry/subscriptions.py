"""Subscriptions, continuous queries and query templates as registry entries.

A lease says until when a subscription without listeners stays. A lane says which slow shapes are matched apart from
the others. A renewal asks continuous queries to rebuild their state from log and lake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from triplewire.model import Kind, Subscription
from triplewire.model.errors import BadRequest
from triplewire.model.subscriptions import (
    ContinuousQuery,
    LatePolicy,
    Names,
    Owner,
    QueryState,
    TimeDomain,
    query_to_value,
)
from triplewire.sparql.syntax.windows import STREAM_NAME_CHARACTERS
from triplewire.storage.registry.ports import Registry, RegistryChange

SELECTOR_VALUES: Final = 256
"""Streams, sources, applications or vocabularies that one subscription lists; each is a comparison with every event."""

LEASE_SECONDS_LEAST: Final = 10.0
"""The shortest `ttl` of a subscription: a few times the interval at which edges check leases."""

LEASE_SECONDS_MOST: Final = 30 * 24 * 3600.0
"""The longest `ttl` of a subscription: one that nobody used for a month ends, or has no `ttl`."""

VERSIONS: Final = 64
"""Versions of a subscription, one for each change to an ontology, of which the notifications can still be asked for."""


SUBSCRIPTION = "subscription"
SHAPE = "shape"
ENTAILED = "entailed"
"""The kind of an entry beside each subscription that follows ontologies, under its id, to find them by."""

NARROWING = ("stream", "source", "application", "vocabulary")


def subscriptions_owned_by(name: str) -> str:
    """The kind of an entry beside each subscription of somebody, under its id, to find them by."""
    return f"subscription of {name}"


def subscription_to_value(subscription: Subscription) -> Mapping[str, Any]:
    """What is stored under (`subscription`, id). `since` is not in it: it is the position of the change itself."""
    return {
        "sparql": subscription.sparql,
        "kind": subscription.kind.value,
        "shape": subscription.shape,
        "constants": subscription.constants,
        "created": subscription.created,
        **narrowing_fields(subscription),
        **({} if subscription.filter is None else {"filter": subscription.filter}),
        **({} if subscription.ttl is None else {"ttl": subscription.ttl}),
        **({} if subscription.entailment is None else {"entailment": subscription.entailment}),
        **({} if subscription.begins is None else {"from": subscription.begins, "ontologies": subscription.ontologies}),
        **({} if subscription.first is None else {"first": subscription.first, "earlier": subscription.earlier}),
        **({} if subscription.owner is None else {"owner": vars(subscription.owner)}),
        **({} if subscription.sight is None else {"sight": subscription.sight}),
        **({} if subscription.template is None else {"template": subscription.template}),
        **({} if subscription.template is None else {"values": subscription.values}),
    }


def subscription_from_change(change: RegistryChange) -> Subscription:
    """The subscription that a change made. A removal makes none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = change.value
    return Subscription(
        id=change.key,
        sparql=value["sparql"],
        kind=Kind(value["kind"]),
        shape=value["shape"],
        constants=tuple(value["constants"]),
        template=tuple(value["template"]) if "template" in value else None,
        values=tuple((name, term) for name, term in value.get("values", ())),
        filter=value.get("filter"),
        ttl=value.get("ttl"),
        entailment=value.get("entailment"),
        begins=value.get("from"),
        ontologies=tuple(value.get("ontologies", ())),
        earlier=tuple(value.get("earlier", ())),
        first=value.get("first"),
        owner=parse_owner(value.get("owner")),
        sight=value.get("sight"),
        created=value["created"],
        since=change.position,
        stream=_parse_names(value.get("stream")),
        source=_parse_names(value.get("source")),
        application=_parse_names(value.get("application")),
        vocabulary=_parse_names(value.get("vocabulary")),
    )


def narrowing_fields(subscription: Subscription) -> dict[str, Any]:
    """The fields that say of which events alone it is told, those that say anything."""
    return {name: given for name in NARROWING if (given := getattr(subscription, name)) is not None}


def revise_subscription(
    subscription: Subscription, shape: str, constants: tuple[str, ...], sight: str | None = None
) -> Subscription:
    """Its next version, which begins where it is stored, and shows what is in a sight."""
    earlier = (*subscription.earlier, subscription.since)[-VERSIONS:]
    asked = replace(subscription, shape=shape, constants=constants, sight=sight)
    return replace(asked, earlier=earlier, first=subscription.made)


def read_versions(registry: Registry, newest: Subscription) -> list[Subscription]:
    """All versions of a subscription that are remembered, in order, each with its end."""
    changes = [change for since in newest.earlier for change in registry.changes(since - 1, since)]
    begun = [*(subscription_from_change(change) for change in changes), newest]
    return [*(end_subscription(one, after.since) for one, after in pairwise(begun)), newest]


def read_original(registry: Registry, newest: Subscription) -> Subscription:
    """The first version of a subscription, by which its past is matched."""
    (change,) = registry.changes(newest.made - 1, newest.made)
    return subscription_from_change(change)


def end_subscription(subscription: Subscription, position: int) -> Subscription:
    """The same subscription, ended at a position."""
    return replace(subscription, until=position)


def parse_owner(value: Mapping[str, Any] | None) -> Owner | None:
    """Who is kept so in an entry."""
    return None if value is None else Owner(value["name"], tuple(value["grants"]), tuple(value["roles"]))


def _parse_names(value: str | list[str] | None) -> Names:
    return tuple(value) if isinstance(value, list) else value


# Leases as registry entries: until when a subscription stays that nobody listens to.

LEASE = "lease"
EXPIRY = "expiry"
"""The kind of an entry for each lease, under a key that sorts by time: who looks after leases finds those that may have
run out, and reads no others. A lease that was renewed is met there when its old time is over, and put in again."""


@dataclass(frozen=True)
class Lease:
    """Of a subscription, by its id: how many seconds it lasts, and until when, in microseconds of the wall clock."""

    id: str
    seconds: float
    until: int

    @classmethod
    def begun(cls, id: str, seconds: float, at: int) -> Lease:
        return cls(id, seconds, at + round(seconds * 1_000_000))


def lease_to_value(lease: Lease) -> Mapping[str, Any]:
    """What is stored under (`lease`, id of the subscription)."""
    return {"seconds": lease.seconds, "until": lease.until}


def expiry_key(until: int, id: str = "") -> str:
    """The key of an entry that is looked at from a time on; without an id one that comes after all before that time."""
    return f"{until:020}.{id}"


def parse_expiry_key(change: RegistryChange) -> str:
    """The id of the subscription that an entry of this kind is of."""
    return change.key.partition(".")[2]


def lease_from_change(change: RegistryChange) -> Lease:
    """The lease that a change set. A removal sets none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return Lease(change.key, change.value["seconds"], change.value["until"])


# Lanes as registry entries: which shapes are matched apart from the others, because they take long.

LANE = "lane"


@dataclass(frozen=True)
class Lane:
    """Of a shape, by its key: events at positions above `since` are matched against it in the slow lane."""

    shape: str
    cost: float
    """The CPU seconds that an event took when it was moved."""
    since: int = 0


def lane_to_value(lane: Lane) -> Mapping[str, Any]:
    """What is stored under (`lane`, key of the shape)."""
    return {"cost": lane.cost}


def lane_from_change(change: RegistryChange) -> Lane:
    """The lane that a change set. A shape stays in it."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return Lane(change.key, change.value["cost"], change.position)


# Templates as registry entries: query texts with parameters.

TEMPLATE = "template"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")


@dataclass(frozen=True)
class QueryTemplate:
    """A query text whose `$` variables are parameters, each with the type that its values must have. `version` is the
    position at which it was put."""

    name: str
    sparql: str
    parameters: Mapping[str, str]
    version: int = 0


def template_to_value(template: QueryTemplate) -> Mapping[str, Any]:
    """What is stored under (`template`, name). The version is not in it: it is the position of the change itself."""
    return {"sparql": template.sparql, "parameters": dict(template.parameters)}


def template_from_change(change: RegistryChange) -> QueryTemplate:
    """The template that a change put. A removal puts none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return QueryTemplate(change.key, change.value["sparql"], change.value["parameters"], change.position)


def check_template_name(text: str) -> str:
    """The name, if it is one: it stands in addresses, so that nothing in it ever needs to be escaped."""
    if len(text) > STREAM_NAME_CHARACTERS:
        raise BadRequest(f"a template's name has at most {STREAM_NAME_CHARACTERS} characters, not {len(text)}")
    if not _NAME.fullmatch(text):
        raise BadRequest(f"{text!r} is no template's name: letters, digits and . _ ~ - are, a letter or digit first")
    return text


# Continuous queries as registry entries.

__all__ = ["QUERY", "queries_owned_by", "queries_publishing_to", "query_from_change", "query_to_value"]

QUERY = "query"


def queries_owned_by(name: str) -> str:
    """The kind of an entry beside each query of somebody, under its id, to find them by."""
    return f"query of {name}"


def queries_publishing_to(stream: str) -> str:
    """The kind of an entry beside each query that publishes into a stream, under its id. It says which streams that
    query reads."""
    return f"query into {stream}"


def query_from_change(change: RegistryChange) -> ContinuousQuery:
    """The query that a change registered. A removal registers none: raises ValueError.

    One that is set again, because it was suspended, was registered at `first`.
    """
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = dict(change.value)
    first = value.pop("first", change.position)
    streams = value.pop("streams", None)
    return ContinuousQuery(
        id=change.key,
        constants=tuple(value.pop("constants", ())),
        variables=tuple(value.pop("variables", ())),
        streams=None if streams is None else tuple(streams),
        time=TimeDomain(value.pop("time", TimeDomain.ARRIVAL)),
        late=LatePolicy(value.pop("late", LatePolicy.DROP)),
        state=QueryState(value.pop("state", QueryState.ON)),
        owner=parse_owner(value.pop("owner", None)),
        since=first,
        **value,
    )


# Renewals: that continuous queries are to make what they keep anew, from log and lake as they are then.

RENEWAL = "renewal"
"""The kind of the entry. From its position on they go by what was made anew."""
_KEY = "ongoing"


def request_renewal(registry: Registry) -> None:
    registry.put([(RENEWAL, _KEY, {})])


def newest_renewal(registry: Registry) -> RegistryChange | None:
    """The last that was asked for."""
    return registry.get(RENEWAL, _KEY)
