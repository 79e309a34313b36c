"""Errors: one class per decision that a caller can take.

TriplewireError
├── InputError            the caller's input is wrong; the same input will fail again
│   ├── MalformedRdf          a document that does not parse, with line and column
│   ├── UnknownMediaType      a syntax that is not supported, with those that are
│   ├── NotAcceptable         no format that the caller accepts, with those that exist
│   ├── BodyTooLarge          over a limit, with the limit
│   ├── SparqlSyntax          a query that does not parse, with line and column
│   ├── Unsupported           legal SPARQL that is not supported, with the construct and its position
│   ├── ShapeViolation        an event that does not conform to the shapes of its stream, with the report
│   ├── InvalidField          a field of a JSON body that is not valid, with its name
│   └── BadRequest            anything else about a request: a header, a parameter, a JSON body
├── Unauthenticated       no valid credential; another token may pass
├── Forbidden             a known client without the permission; with the grant that is missing
├── NotFound              no such stream, subscription or event
│   └── Gone                  it existed, and will not exist again
├── Conflict              it has changed since the caller read it; read it again
│   └── DuplicateId           an event of that id exists with other content; with its position
├── TooManyRequests       a client exceeded its rate or quota; the same may pass a little later
├── StorageFull           the disk refused a write; nothing was acknowledged
├── QueryLimit            a query exceeded a named limit; a smaller one may pass
│   └── AnswerTooLarge        its answer did; a part of it may be requested
└── Unavailable           a part that is needed does not answer; try again later
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TextPosition:
    """Where in the caller's text: both numbers start at 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class TriplewireError(Exception):
    """Base of every error that Triplewire raises on purpose."""


class InputError(TriplewireError):
    """The input is wrong; trying again will not help.

    `place` points into it where that is known. `excerpt` is then the line there, or what stands around the place in
    a long one, and under it a line with a caret; it may be empty.
    """

    def __init__(self, message: str, *, place: TextPosition | None = None, excerpt: str = "") -> None:
        super().__init__(message)
        self.place = place
        self.excerpt = excerpt


class MalformedRdf(InputError):
    """An RDF document that does not parse."""


class UnknownMediaType(InputError):
    """A media type that no codec takes. `known` lists those that are taken."""

    def __init__(self, given: str, known: tuple[str, ...]) -> None:
        super().__init__(f"{given or 'no media type'} is not taken here; known are {', '.join(known)}")
        self.given = given
        self.known = known


class NotAcceptable(InputError):
    """The answer has no format that the caller accepts. `known` lists the formats that exist."""

    def __init__(self, given: str, known: tuple[str, ...]) -> None:
        super().__init__(f"{given} cannot be given; there are {', '.join(known)}")
        self.given = given
        self.known = known


class BodyTooLarge(InputError):
    """A body over its limit in bytes."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"{what} is larger than the limit of {limit} bytes")
        self.limit = limit


class SparqlSyntax(InputError):
    """SPARQL text that does not parse."""


class Unsupported(InputError):
    """A construct that is legal SPARQL but outside the language that we run; `construct` names it."""

    def __init__(self, construct: str, *, place: TextPosition | None = None, hint: str = "", excerpt: str = "") -> None:
        where = f" at {place}" if place else ""
        message = f"{construct} is not supported{where}{': ' + hint if hint else ''}"
        super().__init__(message, place=place, excerpt=excerpt)
        self.construct = construct


class InvalidField(InputError):
    """A field of a JSON body whose value cannot be, or that cannot stand beside the others; `field` names it."""

    def __init__(self, field: str, message: str, *, place: TextPosition | None = None, excerpt: str = "") -> None:
        super().__init__(message, place=place, excerpt=excerpt)
        self.field = field


class ShapeViolation(InputError):
    """An event that does not conform to the shapes of its stream. `violations` is how many there are, `results` tells
    the first of them, and `report` is the report of the validator, as N-Triples."""

    def __init__(
        self, event: str, stream: str, violations: int, results: Sequence[Mapping[str, str]], report: str
    ) -> None:
        first = results[0].get("message", "") if results else ""
        super().__init__(
            f"the event {event} does not conform to the shapes of {stream} in {violations} places; first: {first}"
        )
        self.event = event
        self.violations = violations
        self.results = results
        self.report = report


class BadRequest(InputError):
    """A header, parameter or JSON body that is not as it must be."""


class Unauthenticated(TriplewireError):
    """No credential, or none that is valid. `given` says whether there was one."""

    def __init__(self, message: str, *, given: bool = False) -> None:
        super().__init__(message)
        self.given = given


class Forbidden(TriplewireError):
    """A known client without the permission. `scope` is the grant that is missing, if a grant would help."""

    def __init__(self, message: str, *, scope: str = "") -> None:
        super().__init__(message)
        self.scope = scope


class NotFound(TriplewireError):
    """No such stream, subscription or event."""


class Gone(NotFound):
    """It existed, and does not any more."""


class Conflict(TriplewireError):
    """It has changed since the caller read it."""


class DuplicateId(Conflict):
    """An event of that id is in the stream already and says something else. `position` is where, as a token."""

    def __init__(self, id: str, position: str) -> None:
        super().__init__(f"the event {id} is there already, at {position}, with other content; give it another id")
        self.position = position


class TooManyRequests(TriplewireError):
    """A client sent more, or holds more, than it may. `retry_after` is in how many seconds to try again."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StorageFull(TriplewireError):
    """The disk took no more; nothing of what was sent is acknowledged."""


class QueryLimit(TriplewireError):
    """A query passed one of its limits and was ended."""


class AnswerTooLarge(QueryLimit):
    """A query whose answer has more rows or bytes than one answer may have."""


class Unavailable(TriplewireError):
    """A part that is needed does not answer now."""
