"""Subscriptions, continuous queries and query templates as registry entries.

A lease says until when a subscription without listeners stays. A lane says which slow shapes are matched apart from
the others. A renewal asks continuous queries to rebuild their state from log and lake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from triplewire.model import Subscription
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.storage.registry.codec import EntryCodec
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


_SUBSCRIPTIONS = EntryCodec(Subscription, key="id", position="since", without=("until",))
subscription_to_value = _SUBSCRIPTIONS.to_value
subscription_from_change = _SUBSCRIPTIONS.from_change


def narrowing_fields(subscription: Subscription) -> dict[str, Any]:
    """The fields that say of which events alone it is told, those that say anything."""
    return {name: given for name in NARROWING if (given := getattr(subscription, name)) is not None}


def revise_subscription(
    subscription: Subscription, shape: str, constants: tuple[str, ...], visibility: str | None = None
) -> Subscription:
    """Its next version, which begins where it is stored, and shows what is in a visibility."""
    earlier = (*subscription.earlier, subscription.since)[-VERSIONS:]
    asked = replace(subscription, shape=shape, constants=constants, visibility=visibility)
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


LEASE = "lease"
EXPIRY = "expiry"
"""The kind of an entry per lease whose key sorts by time, so that only leases that may have expired are read. An entry
of a renewed lease is found when the old time is over, and put again."""


@dataclass(frozen=True)
class Lease:
    """The lease of a subscription: how many seconds it lasts, and its end in microseconds of the wall clock."""

    id: str
    seconds: float
    until: int

    @classmethod
    def begun(cls, id: str, seconds: float, at: int) -> Lease:
        return cls(id, seconds, at + round(seconds * 1_000_000))


_LEASES = EntryCodec(Lease, key="id")
lease_to_value = _LEASES.to_value
lease_from_change = _LEASES.from_change


def expiry_key(until: int, id: str = "") -> str:
    """The key of an entry that is looked at from a time on; without an id one that comes after all before that time."""
    return f"{until:020}.{id}"


def parse_expiry_key(change: RegistryChange) -> str:
    """The id of the subscription that an entry of this kind is of."""
    return change.key.partition(".")[2]


LANE = "lane"


@dataclass(frozen=True)
class Lane:
    """A shape that is matched in the slow lane, for events at positions above `since`."""

    shape: str
    cost: float
    """The CPU seconds that an event took when it was moved."""
    since: int = 0


_LANES = EntryCodec(Lane, key="shape", position="since")
lane_to_value = _LANES.to_value
lane_from_change = _LANES.from_change


TEMPLATE = "template"


@dataclass(frozen=True)
class QueryTemplate:
    """A query text whose `$` variables are parameters, each with the type that its values must have. `version` is the
    position at which it was put."""

    name: str
    sparql: str
    parameters: Mapping[str, str]
    version: int = 0


_TEMPLATES = EntryCodec(QueryTemplate, key="name", position="version")
template_to_value = _TEMPLATES.to_value
template_from_change = _TEMPLATES.from_change


QUERY = "query"


def queries_owned_by(name: str) -> str:
    """The kind of an entry beside each query of somebody, under its id, to find them by."""
    return f"query of {name}"


def queries_publishing_to(stream: str) -> str:
    """The kind of an entry beside each query that publishes into a stream, under its id. It says which streams that
    query reads."""
    return f"query into {stream}"


_QUERIES = EntryCodec(ContinuousQuery, key="id", position="since", without=("until",))
query_to_value = _QUERIES.to_value


def query_from_change(change: RegistryChange) -> ContinuousQuery:
    """The query that a change has registered. Raises ValueError for a removal.

    A query that was put again, because it was suspended, was registered at `first`.
    """
    value = dict(change.value or {})
    first = value.pop("first", change.position)
    return replace(_QUERIES.from_change(replace(change, value=change.value and value)), since=first)


RENEWAL = "renewal"
"""The kind of the entry. From its position on they go by what was made anew."""
_KEY = "continuous"


def request_renewal(registry: Registry) -> None:
    registry.put([(RENEWAL, _KEY, {})])


def newest_renewal(registry: Registry) -> RegistryChange | None:
    """The last that was asked for."""
    return registry.get(RENEWAL, _KEY)
