"""RDF formats: endless N-Quads and TriG documents, RDF Message Logs, Jelly frames, and envelopes (CloudEvents as JSON
lines or as a batch for polls, and Ztreamy items).

In text formats, positions and notices are comments, so that any parser reads the statements; in Jelly they are
metadata of frames. An empty line ends each message.

    # event {"position":"000000000000002a"}
    <urn:e:1> <https://…#stream> "home" .
    <urn:s> <urn:p> "o" <urn:e:1> .
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from triplewire.http.formats.messages import EntryPieces, MessageFormat, Notification, format_time, stream_token
from triplewire.model import Event, EventHeaders, format_position
from triplewire.rdf import N_QUADS, N_TRIPLES, TRIG, TURTLE, Syntax, cloudevents, jelly, new_id, to_ntriples, ztreamy
from triplewire.rdf.headers import HEADER_PROPERTIES, HeaderValues, format_headers
from triplewire.rdf.messages import END, HEAD, message_media_type
from triplewire.rdf.serializer import write_result_set


class RdfFormat(MessageFormat):
    """N-Quads or TriG. Each event comes with triples about it: stream, source, application, times and extensions."""

    comment = b"#\n"

    def __init__(self, name: str, syntax: Syntax, *, tokens: bool = False) -> None:
        super().__init__(tokens=tokens)
        self.name = name
        self.media_type = self._media_type(syntax)
        self._syntax = syntax

    @cached_property
    def with_tokens(self) -> MessageFormat:
        return type(self)(self.name, self._syntax, tokens=True)

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        id = {"id": stream_token(position)} if self._tokens else {}
        return self._message("event", {"position": format_position(position), **id}, self._event(pieces, position))

    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        fields: dict[str, Any] = {
            "position": format_position(notification.position),
            notification.noun: notification.id,
            "kind": notification.kind,
        }
        fields |= {"id": str(notification.token)} if self._tokens else {}
        fields |= {name: value for name, value in notification.content.items() if name == "limit"}
        return self._message("notification", fields, "".join(self._statements(pieces, notification)))

    def notice(self, name: str, **fields: object) -> bytes:
        return self._message(name, fields, "")

    def _media_type(self, syntax: Syntax) -> str:
        return syntax.media_type

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        return b"# %b %b\n%b\n" % (name.encode(), orjson.dumps(fields), statements.encode())

    def _statements(self, pieces: EntryPieces, notification: Notification) -> Iterator[str]:
        if notification.whole:
            yield self._event(pieces, notification.position)
            return
        yield _headers(pieces.entry(notification.position))
        if "graph" in notification.content:
            yield notification.content["graph"]
        elif "results" in notification.content:
            yield write_result_set(notification.content["results"], f"n{notification.position:x}")

    def _event(self, pieces: EntryPieces, position: int) -> str:
        entry = pieces.entry(position)
        if self._syntax is N_QUADS:
            return _headers(entry) + pieces.nquads(position)
        return f"{_headers(entry)}<{entry['event']}> {{\n{to_ntriples(entry['text'])}}}\n"


def _headers(entry: Mapping[str, Any]) -> str:
    return format_headers(entry["event"], HeaderValues(**{name: entry[name] for name in HEADER_PROPERTIES}))


class MessageLogFormat(RdfFormat):
    """RDF Message Logs: an event is a message, which the keyword `MESSAGE` ends; comments are no messages. In a syntax
    without graphs an event has its own statements only."""

    head = HEAD

    def _media_type(self, syntax: Syntax) -> str:
        return message_media_type(syntax)

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        message = super()._message(name, fields, statements)
        return message[:-1] + END + b"\n" if statements else message

    def _event(self, pieces: EntryPieces, position: int) -> str:
        if self._syntax.graphs:
            return super()._event(pieces, position)
        return to_ntriples(pieces.entry(position)["text"])


class JellyFormat(RdfFormat):
    """A Jelly frame for each message: a dataset with the statements of N-Quads. Its metadata have the `type` of the
    message and its `data` as JSON. An empty frame keeps the connection open."""

    comment = b"\x00"

    def _media_type(self, syntax: Syntax) -> str:
        return jelly.MEDIA_TYPE

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        return jelly.encode_frame(statements, {"type": name.encode(), "data": orjson.dumps(fields)})


_JSON = "application/json"
_RESULTS = "application/sparql-results+json"
_NOTICE = "urn:triplewire:notice"
"""Id of Ztreamy items about the connection."""


class CloudEventsFormat(MessageFormat):
    """A CloudEvent on a line for each message. `twposition` is the position to resume from; a notice has a type such as
    `dev.triplewire.gap`."""

    name = "cloudevents"
    media_type = cloudevents.STRUCTURED
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
        attributes = {
            "specversion": cloudevents.VERSION,
            "id": new_id(),
            "source": "/",
            "type": cloudevents.NOTICES + name,
        }
        if "position" in fields:
            attributes["twposition"] = str(fields["position"])
        return self._message(cloudevents.CloudEvent(attributes, _JSON, orjson.dumps(fields)))

    def _message(self, event: cloudevents.CloudEvent) -> bytes:
        return cloudevents.write_structured(event) + self._end


class CloudEventsBatchFormat(CloudEventsFormat):
    """CloudEvents as the elements of an array."""

    name = "cloudevents-batch"
    media_type = cloudevents.BATCH
    endless = False
    _end = b",\n"

    def document(self, messages: Sequence[bytes]) -> bytes:
        return b"[%b]\n" % b"".join(messages).removesuffix(self._end)


def to_cloud_event(entry: Mapping[str, Any], **attributes: str) -> cloudevents.CloudEvent:
    """Return a log entry as a CloudEvent with extension attributes."""
    headers = EventHeaders(entry["source"], entry["application"], entry["time"], extensions=_extensions(entry))
    return cloudevents.make_cloud_event(Event(entry["event"], entry["text"], headers), entry["stream"], **attributes)


def _extensions(entry: Mapping[str, Any]) -> dict[str, Any]:
    return orjson.loads(entry["extensions"]) if entry.get("extensions") else {}


def _notification_event(
    entry: Mapping[str, Any], notification: Notification, attributes: Mapping[str, str]
) -> cloudevents.CloudEvent:
    """Return a match as a CloudEvent whose subject is the event that matched."""
    standard = {
        "specversion": cloudevents.VERSION,
        "id": format_position(notification.position),
        "source": notification.path,
        "type": f"{cloudevents.NOTICES}notification",
        "subject": entry["event"],
        "time": format_time(entry["time"]),
        "twstream": entry["stream"],
    }
    media_type, body = _content(notification.content)
    return cloudevents.CloudEvent({**standard, **attributes}, media_type if body else None, body)


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
    media_type = ztreamy.MEDIA_TYPE
    comment = b"\n"

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        entry = pieces.entry(position)
        return ztreamy.encode_event_item(
            entry["event"], entry["text"], _event_headers(entry, Position=self._event_id(position))
        )

    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        entry = pieces.entry(notification.position)
        headers = {
            "Position": self._notification_id(notification),
            notification.noun.title(): notification.id,
            "Kind": notification.kind,
        }
        if notification.whole:
            return ztreamy.encode_event_item(entry["event"], entry["text"], _event_headers(entry, **headers))
        syntax, body = _content(notification.content)
        return ztreamy.encode_item(entry["event"], _event_headers(entry, syntax, **headers), body)

    def notice(self, name: str, **fields: object) -> bytes:
        return ztreamy.encode_item(
            _NOTICE, EventHeaders(syntax=_JSON, extensions={"Notice": name}), orjson.dumps(fields)
        )


def _event_headers(entry: Mapping[str, Any], syntax: str = N_TRIPLES.media_type, **more: str) -> EventHeaders:
    extensions = {**_extensions(entry), **more}
    return EventHeaders(entry["source"], entry["application"], entry["time"], syntax, extensions)


NQUADS_FORMAT = RdfFormat("nquads", N_QUADS)
TRIG_FORMAT = RdfFormat("trig", TRIG)
MESSAGE_LOGS = (
    MessageLogFormat("messages-nquads", N_QUADS),
    MessageLogFormat("messages-trig", TRIG),
    MessageLogFormat("messages-turtle", TURTLE),
    MessageLogFormat("messages-ntriples", N_TRIPLES),
)
JELLY = JellyFormat("jelly", N_QUADS)
CLOUD_EVENTS = CloudEventsFormat()
CLOUD_BATCH = CloudEventsBatchFormat()
ZTREAMY = ZtreamyFormat()
