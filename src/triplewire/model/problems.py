"""Problem documents (RFC 9457): errors as JSON objects, and back into the exceptions that they were made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from triplewire.model import errors
from triplewire.model.errors import InputError, TextPosition, TriplewireError

_PROBLEMS: dict[type[TriplewireError], tuple[int, str, tuple[str, ...]]] = {
    errors.MalformedRdf: (400, "Malformed RDF", ()),
    errors.UnknownMediaType: (415, "Unsupported media type", ("known",)),
    errors.NotAcceptable: (406, "Not acceptable", ("known",)),
    errors.BodyTooLarge: (413, "Payload too large", ("limit",)),
    errors.SparqlSyntax: (400, "SPARQL syntax error", ()),
    errors.Unsupported: (422, "Unsupported SPARQL", ("construct",)),
    errors.ShapeViolation: (422, "Shape violation", ("violations", "results", "report")),
    errors.InvalidField: (422, "Invalid field", ("field",)),
    errors.BadRequest: (400, "Bad request", ()),
    errors.InputError: (400, "Bad request", ()),
    errors.Unauthenticated: (401, "Unauthorized", ()),
    errors.Forbidden: (403, "Forbidden", ("scope",)),
    errors.Gone: (410, "Gone", ()),
    errors.NotFound: (404, "Not found", ()),
    errors.DuplicateId: (409, "Duplicate event id", ("position",)),
    errors.Conflict: (409, "Conflict", ()),
    errors.TooManyRequests: (429, "Too many requests", ("retry_after",)),
    errors.StorageFull: (507, "Insufficient storage", ()),
    errors.AnswerTooLarge: (413, "Answer too large", ()),
    errors.QueryLimit: (503, "Query limit exceeded", ()),
    errors.Unavailable: (503, "Service unavailable", ()),
}
"""Status, title and attributes of each error class; those of its nearest base class hold for another."""

_EXTRAS: Mapping[str, Callable[..., object]] = {
    "field": str,
    "construct": str,
    "known": tuple,
    "limit": int,
    "excerpt": str,
    "retry_after": lambda seconds=1.0: float(seconds),
    "position": str,
    "scope": str,
    "violations": int,
    "results": list,
    "report": str,
}
"""Attributes of errors that their documents have, and how each is read."""

_PLAIN = (errors.NotFound, errors.Conflict, errors.Gone, errors.Unavailable, errors.StorageFull)
"""Classes that the status names as well as the document."""
_BY_STATUS: Mapping[int, type[TriplewireError]] = {
    _PROBLEMS[each][0]: each for each in (*_PLAIN, errors.Unauthenticated, errors.Forbidden, errors.TooManyRequests)
}
_BY_NAME = {each.__name__: each for each in _PROBLEMS if each is not InputError and each not in _PLAIN}


def problem_document(status: int, kind: str, title: str, detail: str, **extras: object) -> dict[str, Any]:
    """Return a problem document. `kind` is the class of the error, the last segment of the document's type."""
    type = f"https://triplewire.dev/problems/{kind}"
    return {"type": type, "title": title, "status": status, "detail": detail, **extras}


def describe_error(error: TriplewireError) -> dict[str, Any]:
    """Return the problem document of an error, with the line and column of the input that it is about."""
    known = (_PROBLEMS[each] for each in type(error).__mro__ if each in _PROBLEMS)
    status, title, _ = next(known, (500, "Internal server error", ()))
    extras = {name: getattr(error, name) for name in _EXTRAS if getattr(error, name, None)}
    place = getattr(error, "place", None)
    if place is not None:
        extras |= {"line": place.line, "column": place.column}
    return problem_document(status, type(error).__name__, title, str(error), **extras)


def parse_problem(status: int, body: bytes) -> TriplewireError:
    """Return the exception for an error response; without a problem document its status decides."""
    try:
        document = orjson.loads(body)
        kind = str(document["type"]).rpartition("/")[2]
        detail = str(document["detail"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return _error_for_status(status, body.decode(errors="replace")[:200])
    return _restore(_BY_NAME[kind], detail, document) if kind in _BY_NAME else _error_for_status(status, detail)


def _error_for_status(status: int, detail: str) -> TriplewireError:
    text = f"{detail or 'no reason was given'} (status {status})"
    return _BY_STATUS.get(status, errors.BadRequest if 400 <= status < 500 else errors.Unavailable)(text)


def _restore(kind: type[TriplewireError], detail: str, document: Mapping[str, Any]) -> TriplewireError:
    """Make an error with the message and the attributes that it had."""
    error = kind.__new__(kind, detail)
    _, _, names = _PROBLEMS[kind]
    for name in (*names, *(("excerpt",) if issubclass(kind, InputError) else ())):
        setattr(error, name, _EXTRAS[name](*([document[name]] if name in document else [])))
    if isinstance(error, InputError):
        error.place = TextPosition(document["line"], document["column"]) if "column" in document else None
    if isinstance(error, errors.Unauthenticated):
        # The message of the edge names HTTP headers.
        error.args = (f"{detail} (set TRIPLEWIRE_TOKEN, or TRIPLEWIRE_TOKEN_FILE to the name of a file)",)
        error.given = True
    return error
