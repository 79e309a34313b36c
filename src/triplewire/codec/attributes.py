"""Attributes: what CloudEvents say beside their data, as headers of events and back, with nothing lost.

| attribute | of an event |
|---|---|
| `id` | its id where it is an absolute IRI; else the IRI `urn:cloudevents:{source}:{id}` |
| `source` | the source; `/streams/{stream}` for an event that has none |
| `time` | the time |
| `type`, `subject`, `dataschema` | the headers `ce-type`, `ce-subject`, `ce-dataschema` |
| an extension | the header of the same name |
| `twapplication` | the application |
| `twheaders` | a JSON object of all headers whose names no attribute may have |
| `twsource` | the source as it is, where it is no URI reference |
| `twstream`, `twposition`, … | said on the way out, passed over on the way in |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

import orjson

from triplewire.codec.extensions import extension
from triplewire.codec.headers import clean, instant, written
from triplewire.codec.ids import check_id
from triplewire.config import limits
from triplewire.model import EventHeaders
from triplewire.model.errors import BadRequest

VERSION = "1.0"
TYPE = "dev.triplewire.event"
"""The type of events whose publishers gave them none."""

_NAMED = ("type", "subject", "dataschema")
_OWN = (*_NAMED, "id", "source", "specversion", "datacontenttype", "time", "data", "data_base64")
_OURS = ("twstream", "twposition", "twsubscription", "twkind", "twsource", "twapplication", "twheaders")
_NAME = re.compile(r"[a-z0-9]{1,20}")
_GIVEN = re.compile(r"[a-z0-9]+")
_REFERENCE = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&()*+,;=%]+")
_SAFE = "-._~!$&()*+,;=@/"

Attributes = Mapping[str, str]


def attributes_of(event_id: str, headers: EventHeaders, stream: str, **told: str) -> dict[str, str]:
    """What is said of an event of a stream; `told` are attributes of ours, such as `twposition`."""
    source = headers.source or f"/streams/{stream}"
    reference = source if _REFERENCE.fullmatch(source) else quote(source, safe=_SAFE)
    given, others = _split(headers.extensions)
    said = {
        "specversion": VERSION,
        "id": _id_in(event_id, reference),
        "source": reference,
        "type": given.pop("type", TYPE),
        **given,
        "time": None if headers.time is None else written(headers.time),
        "twsource": None if reference == source else source,
        "twapplication": headers.application,
        "twheaders": orjson.dumps(others).decode() if others else None,
        "twstream": stream,
        **told,
    }
    return {name: value for name, value in said.items() if value is not None}


def headers_of(attributes: Attributes) -> tuple[str, EventHeaders]:
    """The id of the event that is meant, and its headers; they may be stored and sent on. Raises BadRequest."""
    for name in ("specversion", "id", "source", "type"):
        if not attributes.get(name):
            raise BadRequest(f"a CloudEvent has the attribute `{name}`, and it is not empty")
    if attributes["specversion"] != VERSION:
        raise BadRequest(f"CloudEvents of version {VERSION} are taken, not {attributes['specversion'][:60]!r}")
    reference = clean("`source`", attributes["source"])
    application, time = attributes.get("twapplication"), attributes.get("time")
    headers = EventHeaders(
        source=_source(attributes, reference),
        application=None if application is None else clean("`twapplication`", application),
        time=None if time is None else instant("`time`", time),
        extensions=_extensions(attributes),
    )
    return _id_of(attributes["id"], reference), headers


def _split(extensions: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Headers that are attributes, by their names as such, and all others."""
    given = {name: value for name in _NAMED if (value := extensions.get(f"ce-{name}"))}
    others: dict[str, str] = {}
    for name, value in extensions.items():
        if name.removeprefix("ce-") in given and name.startswith("ce-"):
            continue
        plain = _NAME.fullmatch(name) and name not in _OWN and name not in _OURS
        (given if plain else others)[name] = value
    return given, others


def _extensions(attributes: Attributes) -> dict[str, str]:
    found = dict(_stored(attributes))
    if attributes["type"] != TYPE:
        found["ce-type"] = attributes["type"]
    for name, value in _others(attributes.get("twheaders")).items():
        found[name] = value
    if len(found) > limits.EXTENSIONS:
        raise BadRequest(f"a CloudEvent says {len(found)} things of its own; at most {limits.EXTENSIONS} are taken")
    return dict(extension(*each) for each in found.items())


def _stored(attributes: Attributes) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if name in ("subject", "dataschema"):
            yield f"ce-{name}", value
        elif name not in _OWN and name not in _OURS:
            if not _GIVEN.fullmatch(name):
                raise BadRequest(f"{name[:60]!r} is no attribute of a CloudEvent; small letters and digits are")
            yield name, value


def _others(text: str | None) -> dict[str, str]:
    try:
        found: Any = {} if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise BadRequest("`twheaders` is a JSON object of texts")
    return found


def _source(attributes: Attributes, reference: str) -> str | None:
    stream, given = attributes.get("twstream"), attributes.get("twsource")
    if stream is not None and reference == f"/streams/{stream}":
        return None
    if given is not None and quote(given, safe=_SAFE) == reference:
        return clean("`twsource`", given)
    return reference


def _id_of(text: str, source: str) -> str:
    """The id of an event as an IRI. One that is none is of its source alone, as CloudEvents have it. What looks as if
    it had been made so is made again, so that the way back is the same for all."""
    if len(text) <= limits.HEADER_CHARACTERS and _is_iri(text) and _id_in(text, source) == text:
        return text
    return check_id(f"{_made(source)}{quote(text, safe=_SAFE)}")


def _id_in(event_id: str, source: str) -> str:
    """The other way round."""
    start = _made(source)
    if not event_id.startswith(start):
        return event_id
    text = unquote(event_id.removeprefix(start))
    return text if text and _id_of(text, source) == event_id else event_id


def _made(source: str) -> str:
    return f"urn:cloudevents:{quote(source, safe=_SAFE)}:"


def _is_iri(text: str) -> bool:
    try:
        return bool(check_id(text))
    except BadRequest:
        return False
