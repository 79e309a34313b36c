"""Envelope formats: CloudEvents, as JSON lines or as a batch for polls, and Ztreamy items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from triplewire.http.formats.messages import EntryPieces, MessageFormat, Notification, format_time
from triplewire.model import Event, EventHeaders, format_position
from triplewire.rdf import N_TRIPLES, new_id
from triplewire.rdf.cloudevents import (
    BATCH,
    NOTICES,
    STRUCTURED,
    VERSION,
    CloudEvent,
    make_cloud_event,
    write_structured,
)
from triplewire.rdf.ztreamy import MEDIA_TYPE, encode_event_item, encode_item

_JSON = "application/json"
_RESULTS = "application/sparql-results+json"
_NOTICE = "urn:triplewire:notice"
"""Id of Ztreamy items about the connection."""


class CloudEventsFormat(MessageFormat):
    """A CloudEvent on a line for each message. `twposition` is the position to resume from; a notice has a type such as
    `dev.triplewire.gap`."""

    name = "cloudevents"
    media_type = STRUCTURED
    comment = b"\n"
    _end = b"\n"

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        return self._message(to_cloud_event(pieces.entry(position), twposition=self._event_id(position)))

    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        entry = pieces.entry(notification.position)
        attributes = {
            "twposition": self._notification_id(notification),
            f"tw{notification.noun}": notification.id,
            "twkind": notification.kind,
        }
        if notification.whole:
            return self._message(to_cloud_event(entry, **attributes))
        return self._message(_notification_event(entry, notification, attributes))

    def notice(self, name: str, **fields: object) -> bytes:
        attributes = {"specversion": VERSION, "id": new_id(), "source": "/", "type": NOTICES + name}
        if "position" in fields:
            attributes["twposition"] = str(fields["position"])
        return self._message(CloudEvent(attributes, _JSON, orjson.dumps(fields)))

    def _message(self, event: CloudEvent) -> bytes:
        return write_structured(event) + self._end


class CloudEventsBatchFormat(CloudEventsFormat):
    """CloudEvents as the elements of an array."""

    name = "cloudevents-batch"
    media_type = BATCH
    endless = False
    _end = b",\n"

    def document(self, messages: Sequence[bytes]) -> bytes:
        return b"[%b]\n" % b"".join(messages).removesuffix(self._end)


def to_cloud_event(entry: Mapping[str, Any], **attributes: str) -> CloudEvent:
    """Return a log entry as a CloudEvent with extension attributes."""
    headers = EventHeaders(entry["source"], entry["application"], entry["time"], extensions=_extensions(entry))
    return make_cloud_event(Event(entry["event"], entry["text"], headers), entry["stream"], **attributes)


def _extensions(entry: Mapping[str, Any]) -> dict[str, Any]:
    return orjson.loads(entry["extensions"]) if entry.get("extensions") else {}


def _notification_event(
    entry: Mapping[str, Any], notification: Notification, attributes: Mapping[str, str]
) -> CloudEvent:
    """Return a match as a CloudEvent whose subject is the event that matched."""
    standard = {
        "specversion": VERSION,
        "id": format_position(notification.position),
        "source": notification.path,
        "type": f"{NOTICES}notification",
        "subject": entry["event"],
        "time": format_time(entry["time"]),
        "twstream": entry["stream"],
    }
    media_type, body = _content(notification.content)
    return CloudEvent({**standard, **attributes}, media_type if body else None, body)


def _content(content: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the media type and the body of a notification; an empty body for one without solutions."""
    if "graph" in content:
        return content.get("format", N_TRIPLES.media_type), content["graph"].encode()
    if "results" in content:
        return _RESULTS, orjson.dumps(content["results"])
    return _JSON, orjson.dumps(content) if content else b""


class ZtreamyFormat(MessageFormat):
    """A Ztreamy item for each message: headers, an empty line, a body. `Position` is the position to resume from;
    notifications have `Subscription` and `Kind`, notices `Notice` and JSON in the body."""

    name = "ztreamy"
    media_type = MEDIA_TYPE
    comment = b"\n"

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        entry = pieces.entry(position)
        return encode_event_item(entry["event"], entry["text"], _headers(entry, Position=self._event_id(position)))

    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        entry = pieces.entry(notification.position)
        headers = {
            "Position": self._notification_id(notification),
            notification.noun.title(): notification.id,
            "Kind": notification.kind,
        }
        if notification.whole:
            return encode_event_item(entry["event"], entry["text"], _headers(entry, **headers))
        syntax, body = _content(notification.content)
        return encode_item(entry["event"], _headers(entry, syntax, **headers), body)

    def notice(self, name: str, **fields: object) -> bytes:
        return encode_item(_NOTICE, EventHeaders(syntax=_JSON, extensions={"Notice": name}), orjson.dumps(fields))


def _headers(entry: Mapping[str, Any], syntax: str = N_TRIPLES.media_type, **more: str) -> EventHeaders:
    extensions = {**_extensions(entry), **more}
    return EventHeaders(entry["source"], entry["application"], entry["time"], syntax, extensions)


CLOUD_EVENTS = CloudEventsFormat()
CLOUD_BATCH = CloudEventsBatchFormat()
ZTREAMY = ZtreamyFormat()
