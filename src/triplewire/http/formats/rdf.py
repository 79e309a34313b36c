"""RDF formats: endless N-Quads and TriG documents, RDF Message Logs, and Jelly frames.

In text formats, positions and notices are comments, so that any parser reads the statements; in Jelly they are
metadata of frames. An empty line ends each message.

    # event {"position":"000000000000002a"}
    <urn:e:1> <https://…#stream> "home" .
    <urn:s> <urn:p> "o" <urn:e:1> .
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import orjson

from triplewire.http.formats.messages import EntryPieces, MessageFormat, Notification, stream_token
from triplewire.model import format_position
from triplewire.rdf import N_QUADS, N_TRIPLES, TRIG, TURTLE, Syntax, to_ntriples
from triplewire.rdf.headers import HEADER_PROPERTIES, HeaderValues, format_headers
from triplewire.rdf.jelly import MEDIA_TYPE, encode_frame
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
        return MEDIA_TYPE

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        return encode_frame(statements, {"type": name.encode(), "data": orjson.dumps(fields)})


NQUADS_FORMAT = RdfFormat("nquads", N_QUADS)
TRIG_FORMAT = RdfFormat("trig", TRIG)
MESSAGE_LOGS = (
    MessageLogFormat("messages-nquads", N_QUADS),
    MessageLogFormat("messages-trig", TRIG),
    MessageLogFormat("messages-turtle", TURTLE),
    MessageLogFormat("messages-ntriples", N_TRIPLES),
)
JELLY = JellyFormat("jelly", N_QUADS)
