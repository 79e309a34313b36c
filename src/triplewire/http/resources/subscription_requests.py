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

from triplewire.http.openapi.documents import SubscriptionRequestDocument, WebhookDocument
from triplewire.http.openapi.schemas import ABSENT, present
from triplewire.http.resources.bodies import (
    check_members,
    check_query_size,
    parse_choice,
    parse_printable,
    parse_stream,
)
from triplewire.matching import filters
from triplewire.matching.event_history import EventReader, find_position
from triplewire.matching.shape_requests import EventSelector, ShapeRequest
from triplewire.model import START, Kind, format_position, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, InvalidField
from triplewire.model.subscriptions import Names
from triplewire.security.webhooks import WEBHOOK_ATTEMPTS_MOST, AllowedNetworks, check_secret, new_secret, parse_target
from triplewire.storage.registry.subscriptions import (
    LEASE_SECONDS_LEAST,
    LEASE_SECONDS_MOST,
    NARROWING,
    SELECTOR_VALUES,
)
from triplewire.storage.webhooks import Webhook, WebhookStore

_WEBHOOK_MEMBERS = ("url", "secret", "attempts")


@dataclass(frozen=True)
class WebhookRequest:
    """A webhook to register. Whether its address may be called is not checked yet."""

    url: str
    secret: str = field(repr=False)
    attempts: int | None = None
    fresh: bool = False
    """The secret was generated here, and is returned once."""

    @classmethod
    def from_json(cls, value: object) -> WebhookRequest:
        """Raises InvalidField, which never repeats a secret."""
        if not isinstance(value, dict) or not isinstance(value.get("url"), str):
            raise InvalidField("webhook", 'webhook must be an object with a URL: {"url": "https://example.org/hook"}')
        for name in (each for each in value if each not in _WEBHOOK_MEMBERS):
            raise InvalidField("webhook", f"a webhook has no {name}; it has {', '.join(_WEBHOOK_MEMBERS)}")
        given = value.get("secret")
        secret = new_secret() if given is None else _parse_secret(given)
        return cls(value["url"], secret, _parse_attempts(value.get("attempts")), given is None)

    def document(self) -> WebhookDocument:
        """The response to its creator."""
        secret = self.secret if self.fresh else ABSENT
        return WebhookDocument(url=self.url, attempts=present(self.attempts), secret=secret)


@dataclass(frozen=True)
class WebhookRegistrar:
    """Makes webhooks of requests, for targets in allowed networks, and stores their secrets."""

    secrets: WebhookStore
    networks: AllowedNetworks

    def make(self, id: str, request: WebhookRequest, created: int) -> Webhook:
        """The webhook of a subscription. Raises InvalidField for a target that may not be called."""
        try:
            target = parse_target(request.url, self.networks)
        except BadRequest as error:
            raise InvalidField("webhook", f"url: {error}") from None
        return Webhook(id, target.url, attempts=request.attempts, created=created)

    def keep(self, secrets: Mapping[str, str]) -> None:
        """Store secrets by id. Call this before the webhooks are put."""
        if secrets:
            self.secrets.put_secrets(secrets)


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


EARLIEST = "earliest"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ACCEPTED = (
    "`earliest`, a position, which is 16 hexadecimal digits such as the `id` of a message, "
    "or a time with its zone such as 2026-11-15T08:30:00Z"
)


@dataclass(frozen=True)
class BackfillStart:
    """A position, or a time in microseconds since the epoch: one of the two."""

    position: int | None = None
    time: int | None = None

    @classmethod
    def from_json(cls, given: object) -> BackfillStart:
        """Raises InvalidField."""
        if isinstance(given, str) and _TIME.fullmatch(given):
            return cls(time=_parse_time(given))
        try:
            return cls(position=parse_position(given if isinstance(given, str) else ""))
        except BadRequest:
            raise _bad_start(given) from None


def format_start(position: int) -> str:
    """The start as shown to clients: `earliest`, or a position, to which times are resolved."""
    return EARLIEST if position == START else format_position(position)


class BackfillStarts:
    """Resolves the start of backfills. It blocks; any thread may use it."""

    def __init__(self, events: EventReader, clock: Clock) -> None:
        self._events = events
        self._clock = clock
        self._first = lru_cache(maxsize=64)(self._find)

    def position(self, start: BackfillStart) -> int:
        """The first position of a backfill. For a time: all events from there on, and none before, were received then
        or later. Raises InvalidField for the future."""
        if start.time is not None:
            if start.time > self._clock.now():
                raise InvalidField("from", "from must be a time in the past; future events need no from")
            return self._first(start.time)
        position, head = start.position or START, self._events.head()
        if position > head:
            raise InvalidField(
                "from",
                f"from must be a position up to {format_position(head)}, not {format_position(position)}",
            )
        return position

    def _find(self, time: int) -> int:
        """Cached, since a bulk request may name one time a thousand times; later events do not change the result."""
        return find_position(self._events, time, self._events.head()) + 1


def resolve_start(start: BackfillStart | None, starts: BackfillStarts | None) -> int | None:
    """The first position of a backfill, if there is one. Raises InvalidField, also where no events are retained."""
    if start is None:
        return None
    if starts is None:
        raise InvalidField("from", "from is not possible here: no events are retained")
    return starts.position(start)


def _parse_time(text: str) -> int:
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise _bad_start(text) from None


def _bad_start(given: object) -> InvalidField:
    return InvalidField("from", f"from must be {_ACCEPTED}, not {given!r}")


RDFS = "rdfs"
FILTER_FIELDS = ("filter", "filters", "prefixes")


@dataclass(frozen=True)
class TemplateInstance:
    """A template by name, and the values of its parameters. `version` is the one that the client expects."""

    template: str
    values: Mapping[str, Any]
    version: int | None = None


@dataclass(frozen=True)
class SubscriptionRequest:
    """A subscription to create. Its query is not parsed yet."""

    sparql: str | None
    kind: Kind
    stream: Names = None
    source: Names = None
    application: Names = None
    vocabulary: Names = None
    instance: TemplateInstance | None = None
    filter: str | None = None
    """The members of the filter, as JSON."""
    ttl: float | None = None
    entailment: str | None = None
    begins: BackfillStart | None = None
    """The member `from`: the start of the backfill."""
    webhook: WebhookRequest | None = None

    @classmethod
    def from_json(cls, value: object) -> SubscriptionRequest:
        """Raises BadRequest for anything but an object, InvalidField with the member that does not fit."""
        if not isinstance(value, dict):
            raise BadRequest('a subscription is a JSON object such as {"sparql": "SELECT …", "kind": "signal"}')
        check_members(value, "a subscription", SubscriptionRequestDocument)
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
        return cls(text, parse_choice("kind", value.get("kind"), Kind.SIGNAL), **given)

    @property
    def asked(self) -> ShapeRequest:
        """The query to lift, without template values. Raises InvalidField for an invalid filter."""
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


def parse_bulk_subscription(value: object) -> SubscriptionRequest:
    """Parse a line of a bulk request. Its results have no secrets, so that a webhook must come with one."""
    request = SubscriptionRequest.from_json(value)
    if request.webhook is not None and request.webhook.fresh:
        raise InvalidField("webhook", "the response to lines has no secrets: give each webhook one")
    return request


def _parse_filter(value: Mapping[str, Any]) -> str | None:
    given = {field: value[field] for field in FILTER_FIELDS if value.get(field) is not None}
    if not given:
        return None
    (first, *_) = given
    if first == "prefixes":
        raise InvalidField("prefixes", "prefixes needs filter or filters")
    for other in ("sparql", "template"):
        if value.get(other) is not None:
            raise InvalidField(first, f"{first} and {other} exclude each other")
    return orjson.dumps(given).decode()


def _parse_instance(value: Mapping[str, Any]) -> TemplateInstance | None:
    name, values, version = (value.get(field) for field in ("template", "values", "version"))
    if name is None:
        for field in ("values", "version"):
            if value.get(field) is not None:
                raise InvalidField(field, f"{field} needs template")
        return None
    if value.get("sparql") is not None:
        raise InvalidField("template", "template and sparql exclude each other")
    if not isinstance(name, str):
        raise InvalidField("template", f"template must be the name of a template, not {name!r}")
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
        raise InvalidField("entailment", "entailment needs sparql or template")
    return RDFS


def _parse_version(given: object) -> int:
    try:
        return parse_position(given if isinstance(given, str) else "")
    except BadRequest:
        raise InvalidField("version", f"version must be the version of a template, not {given!r}") from None


def _parse_sparql(value: Mapping[str, Any], *, alone: bool) -> str | None:
    text = value.get("sparql")
    if text is None and alone:
        return None
    if not isinstance(text, str) or not text.strip():
        others = ", ".join(("filter", "filters", "template", *NARROWING))
        raise InvalidField("sparql", f"sparql must be the text of a query; without it, give one of {others}")
    return check_query_size(text)


def _parse_names(field: str, given: object) -> str | tuple[str, ...]:
    """One name, or several without duplicates, sorted: equal sets are shared."""
    parse = parse_stream if field == "stream" else parse_printable
    if isinstance(given, str):
        return parse(field, given)
    if not isinstance(given, list) or not given or not all(isinstance(each, str) for each in given):
        raise InvalidField(field, f"{field} must be a text or a list of texts, not {given!r}")
    if len(given) > SELECTOR_VALUES:
        raise InvalidField(field, f"{field} lists {len(given)} texts, over the limit of {SELECTOR_VALUES}")
    return tuple(sorted({parse(field, each) for each in given}))


def _as_tuple(names: Names) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else names
