"""Envelope formats: CloudEvents, as JSON lines or as a batch for polls, and Ztreamy items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from triplewire.http.formats.messages import (
    ConcatenatedFormat,
    EntryPieces,
    MessageFormat,
    Notification,
    format_time,
    stream_token,
)
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


class CloudEventsFormat(ConcatenatedFormat):
    """A CloudEvent for each message, on a line. `twposition` is where to resume; what is about the connection itself
    has a type that says what it is, such as `dev.triplewire.gap`."""

    name = "cloudevents"
    media_type = STRUCTURED
    comment = b"\n"
    _end = b"\n"

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks

    @cached_property
    def marked(self) -> MessageFormat:
        return type(self)(marks=True)

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        entry, id = pieces.entry(position), stream_token(position) if self._marks else format_position(position)
        return self._message(to_cloud_event(entry, twposition=id))

    def finding(self, pieces: EntryPieces, finding: Notification) -> bytes:
        entry = pieces.entry(finding.position)
        id = finding.mark if self._marks else format_position(finding.position)
        told = {"twposition": id, f"tw{finding.of}": finding.id, "twkind": finding.kind}
        return self._message(
            to_cloud_event(entry, **told) if finding.whole else _notification_event(entry, finding, told)
        )

    def notice(self, name: str, **fields: object) -> bytes:
        said = {"specversion": VERSION, "id": new_id(), "source": "/", "type": NOTICES + name}
        told = {"twposition": str(fields["position"])} if "position" in fields else {}
        return self._message(CloudEvent({**said, **told}, _JSON, orjson.dumps(fields)))

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else self.notice("position", position=format_position(position))

    def _message(self, event: CloudEvent) -> bytes:
        return write_structured(event) + self._end


class CloudEventsBatchFormat(CloudEventsFormat):
    """The same as the elements of an array."""

    name = "cloudevents-batch"
    media_type = BATCH
    endless = False
    _end = b",\n"

    def document(self, messages: Sequence[bytes]) -> bytes:
        return b"[%b]\n" % b"".join(messages).removesuffix(self._end)


def to_cloud_event(entry: Mapping[str, Any], **told: str) -> CloudEvent:
    """An entry of the log as a CloudEvent; `told` are attributes of ours."""
    kept = orjson.loads(entry["extensions"]) if entry.get("extensions") else {}
    headers = EventHeaders(entry["source"], entry["application"], entry["time"], extensions=kept)
    return make_cloud_event(Event(entry["event"], entry["text"], headers), entry["stream"], **told)


def _notification_event(entry: Mapping[str, Any], finding: Notification, told: Mapping[str, str]) -> CloudEvent:
    """What was found in an event, which is its subject."""
    said = {
        "specversion": VERSION,
        "id": format_position(finding.position),
        "source": finding.path,
        "type": f"{NOTICES}notification",
        "subject": entry["event"],
        "time": format_time(entry["time"]),
        "twstream": entry["stream"],
        **told,
    }
    if "graph" in finding.said:
        return CloudEvent(said, finding.said.get("format", N_TRIPLES.media_type), finding.said["graph"].encode())
    if "results" in finding.said:
        return CloudEvent(said, _RESULTS, orjson.dumps(finding.said["results"]))
    return CloudEvent(said, _JSON, orjson.dumps(finding.said)) if finding.said else CloudEvent(said, None, b"")


CLOUD_EVENTS = CloudEventsFormat()
CLOUD_BATCH = CloudEventsBatchFormat()


# Ztreamy items: headers, an empty line, and a body of as many bytes as they say.

_NOTICE = "urn:triplewire:notice"
"""The id of items that are about the connection itself."""


class ZtreamyFormat(ConcatenatedFormat):
    """An item for each message. `Position` is where to resume; `Subscription` and `Kind` stand on notifications; what
    is about the connection itself has a `Notice` that says what it is, and JSON in its body."""

    name = "ztreamy"
    media_type = MEDIA_TYPE
    comment = b"\n"

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks

    @cached_property
    def marked(self) -> MessageFormat:
        return ZtreamyFormat(marks=True)

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        entry, id = pieces.entry(position), stream_token(position) if self._marks else format_position(position)
        return encode_event_item(entry["event"], entry["text"], _ztreamy_headers(entry, Position=id))

    def finding(self, pieces: EntryPieces, finding: Notification) -> bytes:
        entry = pieces.entry(finding.position)
        id = finding.mark if self._marks else format_position(finding.position)
        told = {"Position": id, finding.of.title(): finding.id, "Kind": finding.kind}
        if finding.whole:
            return encode_event_item(entry["event"], entry["text"], _ztreamy_headers(entry, **told))
        syntax, body = _ztreamy_content(finding)
        return encode_item(entry["event"], _ztreamy_headers(entry, syntax, **told), body)

    def notice(self, name: str, **fields: object) -> bytes:
        return encode_item(_NOTICE, EventHeaders(syntax=_JSON, extensions={"Notice": name}), orjson.dumps(fields))

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else self.notice("position", position=format_position(position))


def _ztreamy_headers(entry: Mapping[str, Any], syntax: str = N_TRIPLES.media_type, **told: str) -> EventHeaders:
    kept = orjson.loads(entry["extensions"]) if entry["extensions"] else {}
    return EventHeaders(entry["source"], entry["application"], entry["time"], syntax, {**kept, **told})


def _ztreamy_content(finding: Notification) -> tuple[str, bytes]:
    if "graph" in finding.said:
        return finding.said["format"], finding.said["graph"].encode()
    if "results" in finding.said:
        return _RESULTS, orjson.dumps(finding.said["results"])
    return _JSON, orjson.dumps(finding.said) if finding.said else b""


ZTREAMY = ZtreamyFormat()
