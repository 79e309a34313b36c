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
from triplewire.model.errors import BadRequest
from triplewire.model.terms import TW, XSD, is_iri, is_literal, literal, parse_literal
from triplewire.rdf.terms import HEADER_CHARACTERS

EXTENSIONS: Final = 32
"""Headers of its own that one event may have. They are stored and sent with it: at worst some 40 kB."""

EXTENSION_NAME_CHARACTERS: Final = 128
"""The name of such a header."""


# Extensions: headers of the publisher's own, which are stored and sent on with an event.

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
RESERVED_HEADERS = ("event-id", "source-id", "syntax", "application-id", "timestamp", "body-length")
"""Headers of items that mean something already, in small letters."""


def check_extension(name: str, value: str) -> tuple[str, str]:
    """A header of the publisher's own, if it is one that may be stored and sent on. Raises BadRequest."""
    if not HEADER_NAME.fullmatch(name) or len(name) > EXTENSION_NAME_CHARACTERS or name.lower() in RESERVED_HEADERS:
        raise BadRequest(f"{name[:60]!r} is no name for a header of one's own; letters, digits and - are")
    if len(value) > HEADER_CHARACTERS or not value.isprintable():
        # A line end in it would begin another header for whoever reads it next.
        raise BadRequest(f"the header {name} holds printable text, at most {HEADER_CHARACTERS} characters")
    return name, value.strip()


def extensions_to_json(extensions: Mapping[str, str]) -> str | None:
    """As log and lake keep them; None where there are none."""
    return orjson.dumps(dict(extensions)).decode() if extensions else None


def extensions_from_json(name: str, text: str | None) -> dict[str, str]:
    """What `to_json` made. Raises BadRequest, which says what `name` must be, for what may not be stored."""
    try:
        found = orjson.loads(text) if text is not None else {}
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or len(found) > EXTENSIONS or not all(map(_is_text, found.values())):
        raise BadRequest(f"{name} must be a JSON object of at most {EXTENSIONS} texts, not {str(text)[:60]}")
    return dict(check_extension(*each) for each in found.items())


def _is_text(value: object) -> bool:
    return isinstance(value, str)


# They are those that a query asks for: `tw:stream`, `tw:source`, `tw:application`, `tw:time`, `tw:received`; and
# `tw:extensions`, which no query asks for: the headers of its publisher's own, as JSON.

HEADER_PROPERTIES = ("stream", "source", "application", "time", "received", "extensions")
_TIMES = ("time", "received")
_DATE_TIME = XSD + "dateTime"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORBIDDEN = "\"'\\"


@dataclass(frozen=True)
class HeaderValues:
    """What is said of one event; None where nothing is. Times are microseconds since the epoch."""

    stream: str | None = None
    source: str | None = None
    application: str | None = None
    time: int | None = None
    received: int | None = None
    extensions: str | None = None
    """A JSON object of texts."""


NO_HEADER_VALUES = HeaderValues()


def check_header(name: str, text: str) -> str:
    """A source, an application or another header, if it is one that may be stored and sent on. Raises BadRequest."""
    if len(text) > HEADER_CHARACTERS:
        raise BadRequest(f"{name} has {len(text)} characters; at most {HEADER_CHARACTERS} are taken")
    if not text or not text.isprintable() or any(character in _FORBIDDEN for character in text):
        raise BadRequest(f"{name} must hold printable text without quotes and backslashes, not {text!r}")
    return text


def parse_time(name: str, text: str) -> int:
    """The microseconds of a time as ISO 8601 writes it. Raises BadRequest."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"{name} must be ISO 8601, such as 2026-11-15T08:30:00Z, not {text!r}") from None
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def merge_headers(own: EventHeaders, others: EventHeaders) -> EventHeaders:
    """What an event says of itself, and else what is said of all of them."""
    return EventHeaders(
        source=own.source if own.source is not None else others.source,
        application=own.application if own.application is not None else others.application,
        time=own.time if own.time is not None else others.time,
        extensions={**others.extensions, **own.extensions},
    )


def parse_headers(lines: Iterable[str]) -> dict[str, HeaderValues]:
    """What triples, `subject⇥predicate⇥object` each, say of events, by their ids. Raises BadRequest for a triple that
    says something else, or something else than another."""
    found: dict[str, dict[str, str | int]] = {}
    for line in lines:
        subject, name, value = _parse_header(*line.split("\t"))
        given = found.setdefault(subject[1:-1], {})
        if given.setdefault(name, value) != value:
            raise BadRequest(f"tw:{name} of {subject} is said twice: {given[name]!r} and {value!r}")
    return {id: HeaderValues(**given) for id, given in found.items()}  # type: ignore[arg-type]


def format_headers(id: str, said: HeaderValues) -> str:
    """Lines of N-Quads that say it."""
    values = {name: getattr(said, name) for name in HEADER_PROPERTIES}
    objects = {
        name: literal(format_time(value), _DATE_TIME) if name in _TIMES else literal(value)
        for name, value in values.items()
        if value is not None
    }
    return "".join(f"<{id}> <{TW}{name}> {each} .\n" for name, each in objects.items())


def make_headers(said: HeaderValues, syntax: str = EventHeaders.syntax) -> EventHeaders:
    """The headers of an event of which that is said. Raises BadRequest for extensions that may not be stored."""
    others = extensions_from_json("extensions", said.extensions)
    return EventHeaders(said.source, said.application, said.time, syntax, others)


def _parse_header(subject: str, predicate: str, obj: str) -> tuple[str, str, str | int]:
    name = predicate.removeprefix(f"<{TW}").removesuffix(">")
    if name not in HEADER_PROPERTIES or not is_iri(subject):
        raise BadRequest(
            f"{subject} {predicate} {obj} stands outside of a graph and is no header of an event; "
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


def format_time(microseconds: int) -> str:
    """A time as ISO 8601, in UTC."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")
