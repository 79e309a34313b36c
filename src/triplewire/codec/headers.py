"""Headers: what is said of events beside their quads, as triples about their ids in the default graph.

They are those that a query asks for: `tw:stream`, `tw:source`, `tw:application`, `tw:time`, `tw:received`;
and `tw:extensions`, which no query asks for: the headers of its publisher's own, as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from triplewire.codec.extensions import from_json, to_json
from triplewire.config import limits
from triplewire.model import EventHeaders
from triplewire.model.errors import BadRequest
from triplewire.model.terms import TW, XSD, is_iri, is_literal, literal, parse_literal

NAMES = ("stream", "source", "application", "time", "received", "extensions")
_TIMES = ("time", "received")
_DATE_TIME = XSD + "dateTime"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORBIDDEN = "\"'\\"


@dataclass(frozen=True)
class Said:
    """What is said of one event; None where nothing is. Times are microseconds since the epoch."""

    stream: str | None = None
    source: str | None = None
    application: str | None = None
    time: int | None = None
    received: int | None = None
    extensions: str | None = None
    """A JSON object of texts."""


NOTHING = Said()


def clean(name: str, text: str) -> str:
    """A source, an application or another header, if it is one that may be stored and sent on. Raises BadRequest."""
    if len(text) > limits.HEADER_CHARACTERS:
        raise BadRequest(f"{name} has {len(text)} characters; at most {limits.HEADER_CHARACTERS} are taken")
    if not text or not text.isprintable() or any(character in _FORBIDDEN for character in text):
        raise BadRequest(f"{name} must hold printable text without quotes and backslashes, not {text!r}")
    return text


def instant(name: str, text: str) -> int:
    """The microseconds of a time as ISO 8601 writes it. Raises BadRequest."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"{name} must be ISO 8601, such as 2026-11-15T08:30:00Z, not {text!r}") from None
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def above(own: EventHeaders, others: EventHeaders) -> EventHeaders:
    """What an event says of itself, and else what is said of all of them."""
    return EventHeaders(
        source=own.source if own.source is not None else others.source,
        application=own.application if own.application is not None else others.application,
        time=own.time if own.time is not None else others.time,
        extensions={**others.extensions, **own.extensions},
    )


def parse_headers(lines: Iterable[str]) -> dict[str, Said]:
    """What triples, `subject⇥predicate⇥object` each, say of events, by their ids. Raises BadRequest for a triple that
    says something else, or something else than another."""
    found: dict[str, dict[str, str | int]] = {}
    for line in lines:
        subject, name, value = _header(*line.split("\t"))
        given = found.setdefault(subject[1:-1], {})
        if given.setdefault(name, value) != value:
            raise BadRequest(f"tw:{name} of {subject} is said twice: {given[name]!r} and {value!r}")
    return {id: Said(**given) for id, given in found.items()}  # type: ignore[arg-type]


def format_headers(id: str, said: Said) -> str:
    """Lines of N-Quads that say it."""
    values = {name: getattr(said, name) for name in NAMES}
    objects = {
        name: literal(written(value), _DATE_TIME) if name in _TIMES else literal(value)
        for name, value in values.items()
        if value is not None
    }
    return "".join(f"<{id}> <{TW}{name}> {each} .\n" for name, each in objects.items())


def headers_of(said: Said, syntax: str = EventHeaders.syntax) -> EventHeaders:
    """The headers of an event of which that is said. Raises BadRequest for extensions that may not be stored."""
    others = from_json("extensions", said.extensions)
    return EventHeaders(said.source, said.application, said.time, syntax, others)


def _header(subject: str, predicate: str, obj: str) -> tuple[str, str, str | int]:
    name = predicate.removeprefix(f"<{TW}").removesuffix(">")
    if name not in NAMES or not is_iri(subject):
        raise BadRequest(
            f"{subject} {predicate} {obj} stands outside of a graph and is no header of an event; "
            f"known are {', '.join(f'tw:{each}' for each in NAMES)}"
        )
    if not is_literal(obj):
        raise BadRequest(f"tw:{name} of {subject} must be a literal, not {obj}")
    text = parse_literal(obj).lexical
    return subject, name, _value(name, text)


def _value(name: str, text: str) -> str | int:
    if name == "extensions":
        return to_json(from_json("tw:extensions", text)) or "{}"
    return instant(f"tw:{name}", text) if name in _TIMES else clean(f"tw:{name}", text)


def written(microseconds: int) -> str:
    """A time as ISO 8601, in UTC."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")
