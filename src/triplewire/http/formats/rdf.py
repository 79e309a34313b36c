"""RDF formats: endless N-Quads and TriG documents, RDF Message Logs, and Jelly frames.

In text formats, positions and notices are comments, so that any parser reads the statements; in Jelly they are
metadata of frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import orjson

from triplewire.http.formats.messages import ConcatenatedFormat, EntryPieces, MessageFormat, Notification, stream_token
from triplewire.model import format_position
from triplewire.rdf import N_QUADS, N_TRIPLES, TRIG, TURTLE, Syntax, to_ntriples
from triplewire.rdf import N_QUADS as NQ
from triplewire.rdf import TRIG as TG
from triplewire.rdf.headers import HEADER_PROPERTIES, HeaderValues, format_headers
from triplewire.rdf.jelly import MEDIA_TYPE, encode_frame
from triplewire.rdf.messages import END, HEAD, message_media_type
from triplewire.rdf.serializer import write_result_set

# What is not RDF stands in comments: before each message what it is and at which position, as JSON, and an empty line
# after it. So any parser reads the statements, and who reads lines finds the messages.
#
# ```
# # event {"position":"000000000000002a"}
# <urn:e:1> <https://…#stream> "home" .
# <urn:s> <urn:p> "o" <urn:e:1> .
#
# ```


class RdfFormat(ConcatenatedFormat):
    """N-Quads or TriG. Each event comes with triples about it: its stream, source, application, times and
    extensions."""

    comment = b"#\n"

    def __init__(self, name: str, syntax: Syntax, *, marks: bool = False) -> None:
        self.name = name
        self._syntax = syntax
        self._marks = marks

    @cached_property
    def marked(self) -> MessageFormat:
        return type(self)(self.name, self._syntax, marks=True)

    @property
    def media_type(self) -> str:
        return self._syntax.media_type

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        told = {"position": format_position(position)} | ({"id": stream_token(position)} if self._marks else {})
        return self._message("event", told, self._whole(pieces, position))

    def finding(self, pieces: EntryPieces, finding: Notification) -> bytes:
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

    def _found(self, pieces: EntryPieces, finding: Notification) -> Iterator[str]:
        if finding.whole:
            yield self._whole(pieces, finding.position)
            return
        yield _headers(pieces, finding.position)
        if "graph" in finding.said:
            yield finding.said["graph"]
        elif "results" in finding.said:
            yield write_result_set(finding.said["results"], f"n{finding.position:x}")

    def _whole(self, pieces: EntryPieces, position: int) -> str:
        entry = pieces.entry(position)
        if self._syntax is NQ:
            return _headers(pieces, position) + pieces.nquads(position)
        return f"{_headers(pieces, position)}<{entry['event']}> {{\n{to_ntriples(entry['text'])}}}\n"


def _headers(pieces: EntryPieces, position: int) -> str:
    entry = pieces.entry(position)
    return format_headers(entry["event"], HeaderValues(**{name: entry[name] for name in HEADER_PROPERTIES}))


NQUADS_FORMAT = RdfFormat("nquads", NQ)
TRIG_FORMAT = RdfFormat("trig", TG)


# RDF Message Logs: an event is a message, which `MESSAGE` ends.
#
# Positions and what is about the connection itself stand in comments, as in plain documents of RDF, so that they are
# no messages. Where the syntax has graphs each event comes with triples about it; else with nothing but its own.


class MessageLogFormat(RdfFormat):
    """Messages in one of the syntaxes that have them."""

    head = HEAD

    @property
    def media_type(self) -> str:
        return message_media_type(self._syntax)

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        told = super()._message(name, fields, statements)
        return told[:-1] + END + b"\n" if statements else told

    def _whole(self, pieces: EntryPieces, position: int) -> str:
        if self._syntax.graphs:
            return super()._whole(pieces, position)
        return to_ntriples(pieces.entry(position)["text"])


MESSAGE_LOGS = (
    MessageLogFormat("messages-nquads", N_QUADS),
    MessageLogFormat("messages-trig", TRIG),
    MessageLogFormat("messages-turtle", TURTLE),
    MessageLogFormat("messages-ntriples", N_TRIPLES),
)


# Jelly: a frame for each message, a dataset with the same statements as N-Quads have.
#
# Where to resume, and what is about the connection itself, stand in the metadata of frames.


class JellyFormat(RdfFormat):
    """Metadata have `type`, what the message is, and `data`, what is said of it, as JSON. An empty frame says
    nothing."""

    comment = b"\x00"

    def __init__(self, *, marks: bool = False) -> None:
        super().__init__("jelly", N_QUADS, marks=marks)

    @property
    def media_type(self) -> str:
        return MEDIA_TYPE

    @cached_property
    def marked(self) -> MessageFormat:
        return JellyFormat(marks=True)

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        return encode_frame(statements, {"type": name.encode(), "data": orjson.dumps(fields)})


JELLY = JellyFormat()
