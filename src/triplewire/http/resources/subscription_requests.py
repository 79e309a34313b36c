"""Subscription requests, validated field by field: the query or filter, the webhook, and the start of a backfill.

The start of a backfill is `earliest`, a position, or a time in the past, which is resolved to the first position of
that time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson

from triplewire.matching import filters
from triplewire.matching.event_history import EventReader, find_position
from triplewire.matching.shape_requests import EventSelector, ShapeRequest
from triplewire.model import START, Kind, format_position, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField
from triplewire.model.subscriptions import Names
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.security.webhooks import WEBHOOK_ATTEMPTS_MOST, AllowedNetworks, check_secret, new_secret, parse_target
from triplewire.sparql.syntax.queries import QUERY_BYTES
from triplewire.storage.registry.streams import check_stream_name
from triplewire.storage.registry.subscriptions import (
    LEASE_SECONDS_LEAST,
    LEASE_SECONDS_MOST,
    NARROWING,
    SELECTOR_VALUES,
)
from triplewire.storage.webhooks import SecretStore
from triplewire.storage.webhooks import Webhook as Webhook_webhooks

# Webhooks: what a client says of where its notifications are to be sent, and what is kept of that.

WEBHOOK_FIELDS = ("url", "secret", "attempts")


@dataclass(frozen=True)
class WebhookRequest:
    """Checked, but for whether the address may be called."""

    url: str
    secret: str = field(repr=False)
    attempts: int | None = None
    fresh: bool = False
    """The secret was made here, and is told once."""

    @classmethod
    def from_json(cls, value: object) -> WebhookRequest:
        """Raises InvalidField, which never repeats a secret."""
        if not isinstance(value, dict) or not isinstance(value.get("url"), str):
            raise InvalidField("webhook", 'webhook is an object with an address: {"url": "https://example.org/hook"}')
        for name in value:
            if name not in WEBHOOK_FIELDS:
                raise InvalidField("webhook", f"a webhook has no {name}; it has {', '.join(WEBHOOK_FIELDS)}")
        given = value.get("secret")
        secret = new_secret() if given is None else _parse_secret(given)
        return cls(value["url"], secret, _parse_attempts(value.get("attempts")), given is None)

    def told(self) -> dict[str, Any]:
        """To whoever made it, once."""
        told = {"url": self.url} | ({} if self.attempts is None else {"attempts": self.attempts})
        return {**told, "secret": self.secret} if self.fresh else told


@dataclass(frozen=True)
class WebhookRegistrar:
    """Where secrets are kept, and who may be called."""

    secrets: SecretStore
    networks: AllowedNetworks

    def hook(self, id: str, wanted: WebhookRequest, created: int) -> Webhook_webhooks:
        """Of a subscription. Raises InvalidField for an address that may not be called."""
        try:
            target = parse_target(wanted.url, self.networks)
        except BadRequest as error:
            raise InvalidField("webhook", f"url: {error}") from None
        return Webhook_webhooks(id, target.url, attempts=wanted.attempts, created=created)

    def keep(self, secrets: Mapping[str, str]) -> None:
        """Before the hooks are there."""
        if secrets:
            self.secrets.keep(secrets)


def _parse_secret(given: object) -> str:
    try:
        return check_secret(given if isinstance(given, str) else "")
    except BadRequest as error:
        raise InvalidField("webhook", str(error)) from None


def _parse_attempts(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= WEBHOOK_ATTEMPTS_MOST:
        raise InvalidField("webhook", f"attempts must be a whole number from 1 to {WEBHOOK_ATTEMPTS_MOST}")
    return given


# Beginnings: from where on a subscription asks for the past, as a client says it and as a position.

EARLIEST = "earliest"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ACCEPTED = (
    "`earliest`, a position, which is 16 hexadecimal digits such as the `id` of a message, "
    "or a time with its zone such as 2026-11-15T08:30:00Z"
)


@dataclass(frozen=True)
class BackfillStart:
    """A position, or a moment in microseconds since the epoch: one of the two."""

    position: int | None = None
    moment: int | None = None

    @classmethod
    def from_json(cls, given: object) -> BackfillStart:
        """Raises InvalidField for what is neither."""
        if isinstance(given, str) and _TIME.fullmatch(given):
            return cls(moment=_parse_time(given))
        try:
            return cls(position=parse_position(given if isinstance(given, str) else ""))
        except BadRequest:
            raise _bad_start(given) from None


def format_start(position: int) -> str:
    """How a client is told of the position that it asked for, or that its time came to."""
    return EARLIEST if position == START else format_position(position)


class BackfillStarts:
    """Finds positions. It blocks; any thread may use it."""

    def __init__(self, events: EventReader, clock: Clock) -> None:
        self._events = events
        self._clock = clock
        self._first = lru_cache(maxsize=64)(self._sought)

    def position(self, beginning: BackfillStart) -> int:
        """The first position that is meant. Of a time it is one from which on every event was taken in then or later,
        and before which none was. Raises InvalidField for what lies in the future."""
        if beginning.moment is not None:
            if beginning.moment > self._clock.now():
                raise InvalidField("from", "from must be a time of the past; what is to come needs no from")
            return self._first(beginning.moment)
        position, head = beginning.position or START, self._events.head()
        if position > head:
            raise InvalidField(
                "from",
                f"from must be a position up to {format_position(head)}, not {format_position(position)}",
            )
        return position

    def _sought(self, moment: int) -> int:
        """Remembered, since what was taken in later is later: a bulk may ask a thousand times."""
        return find_position(self._events, moment, self._events.head()) + 1


def _parse_time(text: str) -> int:
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise _bad_start(text) from None


def _bad_start(given: object) -> InvalidField:
    return InvalidField("from", f"from must be {_ACCEPTED}, not {given!r}")


RDFS = "rdfs"
FILTER_FIELDS = ("filter", "filters", "prefixes")
SUBSCRIPTION_FIELDS = (
    "sparql",
    *FILTER_FIELDS,
    "template",
    "values",
    "version",
    "kind",
    "ttl",
    "entailment",
    "from",
    "webhook",
    *NARROWING,
)


@dataclass(frozen=True)
class TemplateInstance:
    """A template by its name, and what stands for its parameters. `version` is the one that the client goes by."""

    template: str
    values: Mapping[str, Any]
    version: int | None = None


@dataclass(frozen=True)
class SubscriptionRequest:
    """What a client asks for, checked, but for what its query says."""

    sparql: str | None
    kind: Kind
    stream: Names = None
    source: Names = None
    application: Names = None
    vocabulary: Names = None
    instance: TemplateInstance | None = None
    filter: str | None = None
    """The fields that make up a filter, as JSON."""
    ttl: float | None = None
    entailment: str | None = None
    begins: BackfillStart | None = None
    """From where on the past is asked for; the field `from`."""
    webhook: WebhookRequest | None = None
    """Where notifications are to be sent."""

    @classmethod
    def from_json(cls, value: object) -> SubscriptionRequest:
        """Raises BadRequest for what is no object, InvalidField for a field that does not fit, with its name."""
        if not isinstance(value, dict):
            raise BadRequest('a subscription is a JSON object such as {"sparql": "SELECT …", "kind": "signal"}')
        for name in value:
            if name not in SUBSCRIPTION_FIELDS:
                raise InvalidField(name, f"a subscription has no {name}; it has {', '.join(SUBSCRIPTION_FIELDS)}")
        given: dict[str, Any] = {
            name: _parse_names(name, value[name]) for name in NARROWING if value.get(name) is not None
        }
        instance, filter = _parse_instance(value), _parse_filter(value)
        text = _parse_sparql(value, alone=bool(given)) if instance is None and filter is None else None
        given |= {
            "instance": instance,
            "filter": filter,
            "ttl": _parse_ttl(value),
            "entailment": _parse_entailment(value),
        }
        given["begins"] = None if value.get("from") is None else BackfillStart.from_json(value["from"])
        given["webhook"] = None if value.get("webhook") is None else WebhookRequest.from_json(value["webhook"])
        return cls(text, _parse_kind(value), **given)

    @property
    def asked(self) -> ShapeRequest:
        """What is to be lifted, but for what a template adds. Raises InvalidField for a filter that is none."""
        fields = (
            _as_tuple(self.stream),
            _as_tuple(self.source),
            _as_tuple(self.application),
            _as_tuple(self.vocabulary),
        )
        asked = ShapeRequest(self.sparql, self.kind is Kind.BINDINGS, EventSelector(*fields))
        if self.filter is None:
            return asked
        form, terms = filters.parse_form(orjson.loads(self.filter))
        return replace(asked, form=form, values=tuple([("", term) for term in terms]))


def _parse_filter(value: Mapping[str, Any]) -> str | None:
    given = {field: value[field] for field in FILTER_FIELDS if value.get(field) is not None}
    if not given:
        return None
    (first, *_) = given
    if first == "prefixes":
        raise InvalidField("prefixes", "prefixes stands beside filter or filters, which are not there")
    for other in ("sparql", "template"):
        if value.get(other) is not None:
            raise InvalidField(first, f"{first} stands in the place of {other}, not beside it")
    return orjson.dumps(given).decode()


def _parse_instance(value: Mapping[str, Any]) -> TemplateInstance | None:
    name, values, version = (value.get(field) for field in ("template", "values", "version"))
    if name is None:
        for field in ("values", "version"):
            if value.get(field) is not None:
                raise InvalidField(field, f"{field} stands beside template, which is not there")
        return None
    if value.get("sparql") is not None:
        raise InvalidField("template", "template stands in the place of sparql, not beside it")
    if not isinstance(name, str):
        raise InvalidField("template", f"template must be the name of one, not {name!r}")
    if values is not None and not isinstance(values, dict):
        raise InvalidField("values", f"values must be an object with a value for each parameter, not {values!r}")
    return TemplateInstance(name, values or {}, None if version is None else _parse_version(version))


def _parse_ttl(value: Mapping[str, Any]) -> float | None:
    given, least, most = value.get("ttl"), LEASE_SECONDS_LEAST, LEASE_SECONDS_MOST
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not least <= given <= most:
        raise InvalidField("ttl", f"ttl must be a number of seconds from {least:g} to {most:g}, not {given!r}")
    return given


def _parse_entailment(value: Mapping[str, Any]) -> str | None:
    given = value.get("entailment")
    if given is None:
        return None
    if given != RDFS:
        raise InvalidField("entailment", f"entailment must be {RDFS}, not {given!r}")
    if value.get("sparql") is None and value.get("template") is None:
        raise InvalidField("entailment", "entailment says how a query is meant, and there is none")
    return RDFS


def _parse_version(given: object) -> int:
    try:
        return parse_position(given if isinstance(given, str) else "")
    except BadRequest:
        raise InvalidField("version", f"version must be that of a template, not {given!r}") from None


def _parse_sparql(value: Mapping[str, Any], *, alone: bool) -> str | None:
    text = value.get("sparql")
    if text is None and alone:
        return None
    if not isinstance(text, str) or not text.strip():
        others = ", ".join(("filter", "filters", "template", *NARROWING))
        raise InvalidField("sparql", f"sparql must hold the text of a query; without it there must be one of {others}")
    if len(text) * 4 > QUERY_BYTES and len(text.encode(errors="replace")) > QUERY_BYTES:
        raise BodyTooLarge("the query", QUERY_BYTES)
    return text


def _parse_kind(value: Mapping[str, Any]) -> Kind:
    given = value.get("kind")
    if given is None:
        return Kind.SIGNAL
    if not isinstance(given, str) or given not in _KINDS:
        raise InvalidField("kind", f"kind must be one of {', '.join(_KINDS)}, not {given!r}")
    return _KINDS[given]


_KINDS = {kind.value: kind for kind in Kind}


def _parse_names(field: str, given: object) -> str | tuple[str, ...]:
    """One name, or each of several once, in order: who lists the same ones asks the same."""
    if isinstance(given, str):
        return _parse_name(field, given)
    if not isinstance(given, list) or not given or not all(isinstance(each, str) for each in given):
        raise InvalidField(field, f"{field} must be a text or a list of some, not {given!r}")
    if len(given) > SELECTOR_VALUES:
        raise InvalidField(field, f"{field} lists {len(given)} texts, over the limit of {SELECTOR_VALUES}")
    return tuple(sorted({_parse_name(field, each) for each in given}))


def _parse_name(field: str, text: str) -> str:
    if field == "stream":
        return _parse_stream(text)
    if not text or len(text) > HEADER_CHARACTERS or not text.isprintable():
        raise InvalidField(field, f"{field} is printable text of 1 to {HEADER_CHARACTERS} characters, not {text!r}")
    return text


def _parse_stream(text: str) -> str:
    try:
        return check_stream_name(text)
    except BadRequest as error:
        raise InvalidField("stream", str(error)) from None


def _as_tuple(names: Names) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else names
