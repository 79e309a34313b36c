"""Problems: every error of ours as a problem document (RFC 9457), whoever sends it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from triplewire.model import errors

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.UnknownMediaType, 415),
    (errors.NotAcceptable, 406),
    (errors.BodyTooLarge, 413),
    (errors.Unsupported, 422),
    (errors.InvalidField, 422),
    (errors.ShapeViolation, 422),
    (errors.InputError, 400),
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (errors.Gone, 410),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.TooManyRequests, 429),
    (errors.StorageFull, 507),
    (errors.AnswerTooLarge, 413),
    (errors.QueryLimit, 503),
    (errors.Unavailable, 503),
)
"""The first class that fits decides."""

_TITLES = {
    "MalformedRdf": "The RDF document does not parse",
    "UnknownMediaType": "The media type is not known",
    "NotAcceptable": "There is no format that the client takes",
    "BodyTooLarge": "The body is too large",
    "SparqlSyntax": "The SPARQL text does not parse",
    "Unsupported": "The SPARQL construct is not supported",
    "ShapeViolation": "An event does not conform to the shapes of its stream",
    "Unfit": "A field does not fit",
    "BadRequest": "The request is not as it must be",
    "Unauthenticated": "Who asks is not known here",
    "Forbidden": "Who asks may not do this",
    "NotFound": "Nothing of that name is here",
    "Gone": "What was here is kept no more",
    "Conflict": "It has changed since",
    "IdTaken": "An event of that id is there, with other content",
    "TooMany": "The client has more than its share",
    "StorageFull": "The disk is full; nothing was acknowledged",
    "QueryLimit": "The query went over a limit",
    "AnswerTooLarge": "The answer is too large",
    "Unavailable": "A part that is needed does not answer now",
}

_EXTRAS = (
    "field",
    "construct",
    "known",
    "limit",
    "excerpt",
    "retry_after",
    "position",
    "scope",
    "violations",
    "results",
    "report",
)


def document(status: int, kind: str, title: str, detail: str, **extras: object) -> dict[str, Any]:
    """A problem document. `kind` ends its type, an address that says which class of error it is."""
    told = {"type": f"https://triplewire.dev/problems/{kind}", "title": title, "status": status, "detail": detail}
    return {**told, **extras}


def described(error: errors.TriplewireError) -> dict[str, Any]:
    """What a client is told about an error: its class, its words, and where in the input it lies."""
    status = next((status for known, status in _STATUS if isinstance(error, known)), 500)
    kind = type(error).__name__
    extras = {name: getattr(error, name) for name in _EXTRAS if getattr(error, name, None)}
    place = getattr(error, "place", None)
    if place is not None:
        extras |= {"line": place.line, "column": place.column}
    return document(status, kind, _TITLES.get(kind, HTTPStatus(status).phrase), str(error), **extras)
