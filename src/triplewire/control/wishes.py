"""Wishes: what a client asks for when it subscribes, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from triplewire.config import limits
from triplewire.control.beginnings import Beginning
from triplewire.control.webhooks import Webhook
from triplewire.matching import filters
from triplewire.matching.shape_requests import EventSelector, ShapeRequest
from triplewire.model import Kind, parse_position
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField
from triplewire.model.subscriptions import Names
from triplewire.storage.registry.streams import check_stream_name
from triplewire.storage.registry.subscriptions import NARROWING

RDFS = "rdfs"
FILTER = ("filter", "filters", "prefixes")
FIELDS = (
    "sparql",
    *FILTER,
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
class Instance:
    """A template by its name, and what stands for its parameters. `version` is the one that the client goes by."""

    template: str
    values: Mapping[str, Any]
    version: int | None = None


@dataclass(frozen=True)
class Wish:
    """What a client asks for, checked, but for what its query says."""

    sparql: str | None
    kind: Kind
    stream: Names = None
    source: Names = None
    application: Names = None
    vocabulary: Names = None
    instance: Instance | None = None
    filter: str | None = None
    """The fields that make up a filter, as JSON."""
    ttl: float | None = None
    entailment: str | None = None
    begins: Beginning | None = None
    """From where on the past is asked for; the field `from`."""
    webhook: Webhook | None = None
    """Where notifications are to be sent."""

    @classmethod
    def from_json(cls, value: object) -> Wish:
        """Raises BadRequest for what is no object, Unfit for a field that does not fit, with its name."""
        if not isinstance(value, dict):
            raise BadRequest('a subscription is a JSON object such as {"sparql": "SELECT …", "kind": "signal"}')
        for field in value:
            if field not in FIELDS:
                raise InvalidField(field, f"a subscription has no {field}; it has {', '.join(FIELDS)}")
        given: dict[str, Any] = {name: _names(name, value[name]) for name in NARROWING if value.get(name) is not None}
        instance, filter = _instance(value), _filter(value)
        text = _sparql(value, alone=bool(given)) if instance is None and filter is None else None
        given |= {"instance": instance, "filter": filter, "ttl": _ttl(value), "entailment": _entailment(value)}
        given["begins"] = None if value.get("from") is None else Beginning.from_json(value["from"])
        given["webhook"] = None if value.get("webhook") is None else Webhook.from_json(value["webhook"])
        return cls(text, _kind(value), **given)

    @property
    def asked(self) -> ShapeRequest:
        """What is to be lifted, but for what a template adds. Raises Unfit for a filter that is none."""
        fields = (_several(self.stream), _several(self.source), _several(self.application), _several(self.vocabulary))
        asked = ShapeRequest(self.sparql, self.kind is Kind.BINDINGS, EventSelector(*fields))
        if self.filter is None:
            return asked
        form, terms = filters.parse_form(orjson.loads(self.filter))
        return replace(asked, form=form, values=tuple([("", term) for term in terms]))


def _filter(value: Mapping[str, Any]) -> str | None:
    given = {field: value[field] for field in FILTER if value.get(field) is not None}
    if not given:
        return None
    (first, *_) = given
    if first == "prefixes":
        raise InvalidField("prefixes", "prefixes stands beside filter or filters, which are not there")
    for other in ("sparql", "template"):
        if value.get(other) is not None:
            raise InvalidField(first, f"{first} stands in the place of {other}, not beside it")
    return orjson.dumps(given).decode()


def _instance(value: Mapping[str, Any]) -> Instance | None:
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
    return Instance(name, values or {}, None if version is None else _version(version))


def _ttl(value: Mapping[str, Any]) -> float | None:
    given, least, most = value.get("ttl"), limits.LEASE_SECONDS_LEAST, limits.LEASE_SECONDS_MOST
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not least <= given <= most:
        raise InvalidField("ttl", f"ttl must be a number of seconds from {least:g} to {most:g}, not {given!r}")
    return given


def _entailment(value: Mapping[str, Any]) -> str | None:
    given = value.get("entailment")
    if given is None:
        return None
    if given != RDFS:
        raise InvalidField("entailment", f"entailment must be {RDFS}, not {given!r}")
    if value.get("sparql") is None and value.get("template") is None:
        raise InvalidField("entailment", "entailment says how a query is meant, and there is none")
    return RDFS


def _version(given: object) -> int:
    try:
        return parse_position(given if isinstance(given, str) else "")
    except BadRequest:
        raise InvalidField("version", f"version must be that of a template, not {given!r}") from None


def _sparql(value: Mapping[str, Any], *, alone: bool) -> str | None:
    text = value.get("sparql")
    if text is None and alone:
        return None
    if not isinstance(text, str) or not text.strip():
        others = ", ".join(("filter", "filters", "template", *NARROWING))
        raise InvalidField("sparql", f"sparql must hold the text of a query; without it there must be one of {others}")
    if len(text) * 4 > limits.QUERY_BYTES and len(text.encode(errors="replace")) > limits.QUERY_BYTES:
        raise BodyTooLarge("the query", limits.QUERY_BYTES)
    return text


def _kind(value: Mapping[str, Any]) -> Kind:
    given = value.get("kind")
    if given is None:
        return Kind.SIGNAL
    if not isinstance(given, str) or given not in _KINDS:
        raise InvalidField("kind", f"kind must be one of {', '.join(_KINDS)}, not {given!r}")
    return _KINDS[given]


_KINDS = {kind.value: kind for kind in Kind}


def _names(field: str, given: object) -> str | tuple[str, ...]:
    """One name, or each of several once, in order: who lists the same ones asks the same."""
    if isinstance(given, str):
        return _name(field, given)
    if not isinstance(given, list) or not given or not all(isinstance(each, str) for each in given):
        raise InvalidField(field, f"{field} must be a text or a list of some, not {given!r}")
    if len(given) > limits.NARROWING_VALUES:
        raise InvalidField(field, f"{field} lists {len(given)} texts, over the limit of {limits.NARROWING_VALUES}")
    return tuple(sorted({_name(field, each) for each in given}))


def _name(field: str, text: str) -> str:
    if field == "stream":
        return _stream(text)
    if not text or len(text) > limits.HEADER_CHARACTERS or not text.isprintable():
        raise InvalidField(
            field, f"{field} is printable text of 1 to {limits.HEADER_CHARACTERS} characters, not {text!r}"
        )
    return text


def _stream(text: str) -> str:
    try:
        return check_stream_name(text)
    except BadRequest as error:
        raise InvalidField("stream", str(error)) from None


def _several(names: Names) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else names
