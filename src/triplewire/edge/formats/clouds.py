"""CloudEvents: a JSON object a line for as long as one listens, or an array of them, as a batch, by polls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from triplewire.edge.feeds.entries import Pieces, moment
from triplewire.edge.formats.ports import Finding, Flowing, Format, stream_mark
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

_JSON = "application/json"
_RESULTS = "application/sparql-results+json"


class Clouds(Flowing):
    """A CloudEvent for each message, on a line. `twposition` is where to resume; what is about the connection itself
    has a type that says what it is, such as `dev.triplewire.gap`."""

    name = "cloudevents"
    media_type = STRUCTURED
    comment = b"\n"
    _end = b"\n"

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks

    @cached_property
    def marked(self) -> Format:
        return type(self)(marks=True)

    def event(self, pieces: Pieces, position: int) -> bytes:
        entry, id = pieces.entry(position), stream_mark(position) if self._marks else format_position(position)
        return self._message(cloud_of(entry, twposition=id))

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        entry = pieces.entry(finding.position)
        id = finding.mark if self._marks else format_position(finding.position)
        told = {"twposition": id, f"tw{finding.of}": finding.id, "twkind": finding.kind}
        return self._message(cloud_of(entry, **told) if finding.whole else _found(entry, finding, told))

    def notice(self, name: str, **fields: object) -> bytes:
        said = {"specversion": VERSION, "id": new_id(), "source": "/", "type": NOTICES + name}
        told = {"twposition": str(fields["position"])} if "position" in fields else {}
        return self._message(CloudEvent({**said, **told}, _JSON, orjson.dumps(fields)))

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else self.notice("position", position=format_position(position))

    def _message(self, event: CloudEvent) -> bytes:
        return write_structured(event) + self._end


class CloudBatch(Clouds):
    """The same as the elements of an array."""

    name = "cloudevents-batch"
    media_type = BATCH
    endless = False
    _end = b",\n"

    def document(self, messages: Sequence[bytes]) -> bytes:
        return b"[%b]\n" % b"".join(messages).removesuffix(self._end)


def cloud_of(entry: Mapping[str, Any], **told: str) -> CloudEvent:
    """An entry of the log as a CloudEvent; `told` are attributes of ours."""
    kept = orjson.loads(entry["extensions"]) if entry.get("extensions") else {}
    headers = EventHeaders(entry["source"], entry["application"], entry["time"], extensions=kept)
    return make_cloud_event(Event(entry["event"], entry["text"], headers), entry["stream"], **told)


def _found(entry: Mapping[str, Any], finding: Finding, told: Mapping[str, str]) -> CloudEvent:
    """What was found in an event, which is its subject."""
    said = {
        "specversion": VERSION,
        "id": format_position(finding.position),
        "source": finding.path,
        "type": f"{NOTICES}notification",
        "subject": entry["event"],
        "time": moment(entry["time"]),
        "twstream": entry["stream"],
        **told,
    }
    if "graph" in finding.said:
        return CloudEvent(said, finding.said.get("format", N_TRIPLES.media_type), finding.said["graph"].encode())
    if "results" in finding.said:
        return CloudEvent(said, _RESULTS, orjson.dumps(finding.said["results"]))
    return CloudEvent(said, _JSON, orjson.dumps(finding.said)) if finding.said else CloudEvent(said, None, b"")


CLOUD_EVENTS = Clouds()
CLOUD_BATCH = CloudBatch()
