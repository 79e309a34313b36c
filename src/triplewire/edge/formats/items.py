"""Ztreamy items: headers, an empty line, and a body of as many bytes as they say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import orjson

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats.ports import Finding, Flowing, Format, stream_mark
from triplewire.model import EventHeaders, format_position
from triplewire.rdf import N_TRIPLES
from triplewire.rdf.ztreamy import MEDIA_TYPE, encode_event_item, encode_item

_JSON = "application/json"
_RESULTS = "application/sparql-results+json"
_NOTICE = "urn:triplewire:notice"
"""The id of items that are about the connection itself."""


class Items(Flowing):
    """An item for each message. `Position` is where to resume; `Subscription` and `Kind` stand on notifications; what
    is about the connection itself has a `Notice` that says what it is, and JSON in its body."""

    name = "ztreamy"
    media_type = MEDIA_TYPE
    comment = b"\n"

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks

    @cached_property
    def marked(self) -> Format:
        return Items(marks=True)

    def event(self, pieces: Pieces, position: int) -> bytes:
        entry, id = pieces.entry(position), stream_mark(position) if self._marks else format_position(position)
        return encode_event_item(entry["event"], entry["text"], _headers(entry, Position=id))

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        entry = pieces.entry(finding.position)
        id = finding.mark if self._marks else format_position(finding.position)
        told = {"Position": id, finding.of.title(): finding.id, "Kind": finding.kind}
        if finding.whole:
            return encode_event_item(entry["event"], entry["text"], _headers(entry, **told))
        syntax, body = _content(finding)
        return encode_item(entry["event"], _headers(entry, syntax, **told), body)

    def notice(self, name: str, **fields: object) -> bytes:
        return encode_item(_NOTICE, EventHeaders(syntax=_JSON, extensions={"Notice": name}), orjson.dumps(fields))

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else self.notice("position", position=format_position(position))


def _headers(entry: Mapping[str, Any], syntax: str = N_TRIPLES.media_type, **told: str) -> EventHeaders:
    kept = orjson.loads(entry["extensions"]) if entry["extensions"] else {}
    return EventHeaders(entry["source"], entry["application"], entry["time"], syntax, {**kept, **told})


def _content(finding: Finding) -> tuple[str, bytes]:
    if "graph" in finding.said:
        return finding.said["format"], finding.said["graph"].encode()
    if "results" in finding.said:
        return _RESULTS, orjson.dumps(finding.said["results"])
    return _JSON, orjson.dumps(finding.said) if finding.said else b""


ITEMS = Items()
