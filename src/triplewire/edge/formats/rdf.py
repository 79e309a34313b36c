"""Streams that are RDF documents without an end.

What is not RDF stands in comments: before each message what it is and at which position, as JSON, and an empty line
after it. So any parser reads the statements, and who reads lines finds the messages.

```
# event {"position":"000000000000002a"}
<urn:e:1> <https://…#stream> "home" .
<urn:s> <urn:p> "o" <urn:e:1> .

```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import orjson

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats.ports import Finding, Flowing, Format, stream_mark
from triplewire.model import format_position
from triplewire.rdf import N_QUADS as NQ
from triplewire.rdf import TRIG as TG
from triplewire.rdf import Syntax, to_ntriples
from triplewire.rdf.headers import HEADER_PROPERTIES, HeaderValues, format_headers
from triplewire.rdf.serializer import write_result_set


class Rdf(Flowing):
    """N-Quads or TriG. Each event comes with triples about it: its stream, source, application, times and
    extensions."""

    comment = b"#\n"

    def __init__(self, name: str, syntax: Syntax, *, marks: bool = False) -> None:
        self.name = name
        self._syntax = syntax
        self._marks = marks

    @cached_property
    def marked(self) -> Format:
        return type(self)(self.name, self._syntax, marks=True)

    @property
    def media_type(self) -> str:
        return self._syntax.media_type

    def event(self, pieces: Pieces, position: int) -> bytes:
        told = {"position": format_position(position)} | ({"id": stream_mark(position)} if self._marks else {})
        return self._message("event", told, self._whole(pieces, position))

    def finding(self, pieces: Pieces, finding: Finding) -> bytes:
        told = {"position": format_position(finding.position), finding.of: finding.id, "kind": finding.kind}
        told |= {"id": finding.mark} if self._marks else {}
        told |= {name: value for name, value in finding.said.items() if name == "limit"}
        return self._message("notification", told, "".join(self._found(pieces, finding)))

    def notice(self, name: str, **fields: object) -> bytes:
        return self._message(name, fields, "")

    def reached(self, position: int) -> bytes:
        return b"" if self._marks else self.notice("position", position=format_position(position))

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        return b"# %b %b\n%b\n" % (name.encode(), orjson.dumps(fields), statements.encode())

    def _found(self, pieces: Pieces, finding: Finding) -> Iterator[str]:
        if finding.whole:
            yield self._whole(pieces, finding.position)
            return
        yield _headers(pieces, finding.position)
        if "graph" in finding.said:
            yield finding.said["graph"]
        elif "results" in finding.said:
            yield write_result_set(finding.said["results"], f"n{finding.position:x}")

    def _whole(self, pieces: Pieces, position: int) -> str:
        entry = pieces.entry(position)
        if self._syntax is NQ:
            return _headers(pieces, position) + pieces.nquads(position)
        return f"{_headers(pieces, position)}<{entry['event']}> {{\n{to_ntriples(entry['text'])}}}\n"


def _headers(pieces: Pieces, position: int) -> str:
    entry = pieces.entry(position)
    return format_headers(entry["event"], HeaderValues(**{name: entry[name] for name in HEADER_PROPERTIES}))


N_QUADS = Rdf("nquads", NQ)
TRIG = Rdf("trig", TG)
