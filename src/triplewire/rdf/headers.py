"""Event headers as triples: metadata beside the quads, about the event's id, in the default graph.

Queries can ask for `tw:stream`, `tw:source`, `tw:application`, `tw:time` and `tw:received`. `tw:extensions` holds the
publisher's own headers as a JSON object of texts; they are stored and sent on with the event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from triplewire.model import EventHeaders
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest
from triplewire.model.terms import TW, XSD, is_iri, is_literal, literal, parse_literal
from triplewire.rdf.terms import HEADER_CHARACTERS

EXTENSIONS: Final = 32
"""Extension headers of one event. They are stored and sent with it: at worst some 40 kB."""

EXTENSION_NAME_CHARACTERS: Final = 128
"""The name of an extension header."""


HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
RESERVED_HEADERS = ("event-id", "source-id", "syntax", "application-id", "timestamp", "body-length")
"""Headers of items with a meaning of their own, in lower case."""


def check_extension(name: str, value: str) -> tuple[str, str]:
    """Return an extension header that may be stored and sent on. Raises BadRequest."""
    if not HEADER_NAME.fullmatch(name) or len(name) > EXTENSION_NAME_CHARACTERS or name.lower() in RESERVED_HEADERS:
        raise BadRequest(f"{name[:60]!r} is not a name for an extension header; use letters, digits and -")
    if len(value) > HEADER_CHARACTERS or not value.isprintable():
        # A line end would begin another header.
        raise BadRequest(f"the header {name} holds printable text, at most {HEADER_CHARACTERS} characters")
    return name, value.strip()


def extensions_to_json(extensions: Mapping[str, str]) -> str | None:
    """Return extensions as log and lake store them; None if there are none."""
    return orjson.dumps(dict(extensions)).decode() if extensions else None


def extensions_from_json(name: str, text: str | None) -> dict[str, str]:
    """Parse extensions; `name` is that of their field in errors. Raises BadRequest."""
    try:
        document = orjson.loads(text) if text is not None else {}
    except orjson.JSONDecodeError:
        document = None
    if (
        not isinstance(document, dict)
        or len(document) > EXTENSIONS
        or not all(isinstance(value, str) for value in document.values())
    ):
        raise BadRequest(f"{name} must be a JSON object of at most {EXTENSIONS} texts, not {str(text)[:60]}")
    return dict(check_extension(*each) for each in document.items())


HEADER_PROPERTIES = ("stream", "source", "application", "time", "received", "extensions")
_TIMES = ("time", "received")
_DATE_TIME = XSD + "dateTime"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORBIDDEN = "\"'\\"


@dataclass(frozen=True)
class HeaderValues:
    """The headers of one event as triples have them; None if missing. Times are microseconds since the epoch."""

    stream: str | None = None
    source: str | None = None
    application: str | None = None
    time: int | None = None
    received: int | None = None
    extensions: str | None = None
    """A JSON object of texts."""


NO_HEADER_VALUES = HeaderValues()


def check_header(name: str, text: str) -> str:
    """Return a header value that may be stored and sent on. Raises BadRequest."""
    if len(text) > HEADER_CHARACTERS:
        raise BadRequest(f"{name} has {len(text)} characters; the limit is {HEADER_CHARACTERS}")
    if not text or not text.isprintable() or any(character in _FORBIDDEN for character in text):
        raise BadRequest(f"{name} must hold printable text without quotes and backslashes, not {text!r}")
    return text


def parse_time(name: str, text: str) -> int:
    """Return the microseconds since the epoch of an ISO 8601 time. Raises BadRequest."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"{name} must be ISO 8601, such as 2026-11-15T08:30:00Z, not {text!r}") from None
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def merge_headers(own: EventHeaders, others: EventHeaders) -> EventHeaders:
    """Return the headers of an event, completed by those of the whole body."""
    return EventHeaders(
        source=own.source if own.source is not None else others.source,
        application=own.application if own.application is not None else others.application,
        time=own.time if own.time is not None else others.time,
        extensions={**others.extensions, **own.extensions},
    )


def parse_headers(lines: Iterable[str]) -> dict[str, HeaderValues]:
    """Return header values by event id, from triples `subject⇥predicate⇥object`.

    Raises BadRequest for a triple that is not a header and for contradictory values.
    """
    headers: dict[str, dict[str, str | int]] = {}
    for line in lines:
        subject, name, value = _parse_header(*line.split("\t"))
        given = headers.setdefault(subject[1:-1], {})
        if given.setdefault(name, value) != value:
            raise BadRequest(f"tw:{name} of {subject} is given twice: {given[name]!r} and {value!r}")
    return {id: HeaderValues(**given) for id, given in headers.items()}  # type: ignore[arg-type]


def format_headers(id: str, given: HeaderValues) -> str:
    """Return the headers of an event as lines of N-Quads."""
    values = {name: getattr(given, name) for name in HEADER_PROPERTIES}
    objects = {
        name: literal(format_timestamp(value), _DATE_TIME) if name in _TIMES else literal(value)
        for name, value in values.items()
        if value is not None
    }
    return "".join(f"<{id}> <{TW}{name}> {each} .\n" for name, each in objects.items())


def make_headers(given: HeaderValues, syntax: str = EventHeaders.syntax) -> EventHeaders:
    """Return the headers of an event. Raises BadRequest for extensions that may not be stored."""
    extensions = extensions_from_json("extensions", given.extensions)
    return EventHeaders(given.source, given.application, given.time, syntax, extensions)


def _parse_header(subject: str, predicate: str, obj: str) -> tuple[str, str, str | int]:
    name = predicate.removeprefix(f"<{TW}").removesuffix(">")
    if name not in HEADER_PROPERTIES or not is_iri(subject):
        raise BadRequest(
            f"{subject} {predicate} {obj} stands outside of a graph and is not a header of an event; "
            f"known are {', '.join(f'tw:{each}' for each in HEADER_PROPERTIES)}"
        )
    if not is_literal(obj):
        raise BadRequest(f"tw:{name} of {subject} must be a literal, not {obj}")
    text = parse_literal(obj).lexical
    return subject, name, _parse_value(name, text)


def _parse_value(name: str, text: str) -> str | int:
    if name == "extensions":
        return extensions_to_json(extensions_from_json("tw:extensions", text)) or "{}"
    return parse_time(f"tw:{name}", text) if name in _TIMES else check_header(f"tw:{name}", text)
