"""Problem documents (RFC 9457) back into the exceptions that they were made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from triplewire.model import errors
from triplewire.model.errors import TextPosition, TriplewireError

_SIMPLE: Mapping[str, type[errors.InputError]] = {
    "MalformedRdf": errors.MalformedRdf,
    "SparqlSyntax": errors.SparqlSyntax,
    "BadRequest": errors.BadRequest,
}

_STATUS: Mapping[int, type[TriplewireError]] = {
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Gone,
    429: errors.TooManyRequests,
    503: errors.Unavailable,
    507: errors.StorageFull,
}


def parse_problem(status: int, body: bytes) -> TriplewireError:
    """Return the exception for an error response; without a problem document its status decides."""
    try:
        document = orjson.loads(body)
        kind = str(document["type"]).rpartition("/")[2]
        detail = str(document["detail"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return _error_for_status(status, body.decode(errors="replace")[:200])
    make = _MAKERS.get(kind)
    return make(detail, document) if make else _error_for_status(status, detail)


def _error_for_status(status: int, detail: str) -> TriplewireError:
    text = f"{detail or 'no reason was given'} (status {status})"
    if status in _STATUS:
        return _STATUS[status](text)
    return errors.BadRequest(text) if 400 <= status < 500 else errors.Unavailable(text)


def _place(document: Mapping[str, Any]) -> TextPosition | None:
    return TextPosition(document["line"], document["column"]) if {"line", "column"} <= set(document) else None


def _excerpt(document: Mapping[str, Any]) -> str:
    return str(document.get("excerpt", ""))


def _simple(kind: type[errors.InputError]) -> Callable[[str, Mapping[str, Any]], TriplewireError]:
    return lambda detail, document: kind(detail, place=_place(document), excerpt=_excerpt(document))


def _with_detail(error: TriplewireError, detail: str) -> TriplewireError:
    """Replace the message of an error by that of the server."""
    error.args = (detail,)
    return error


def _unsupported(detail: str, document: Mapping[str, Any]) -> TriplewireError:
    construct = str(document.get("construct", ""))
    return _with_detail(errors.Unsupported(construct, place=_place(document), excerpt=_excerpt(document)), detail)


def _invalid_field(detail: str, document: Mapping[str, Any]) -> TriplewireError:
    field = str(document.get("field", ""))
    return errors.InvalidField(field, detail, place=_place(document), excerpt=_excerpt(document))


def _shape_violation(detail: str, document: Mapping[str, Any]) -> TriplewireError:
    fields = int(document.get("violations", 0)), document.get("results", ()), str(document.get("report", ""))
    return _with_detail(errors.ShapeViolation("", "", *fields), detail)


def _media_type(detail: str, document: Mapping[str, Any]) -> TriplewireError:
    return _with_detail(errors.UnknownMediaType("", tuple(document.get("known", ()))), detail)


def _format(detail: str, document: Mapping[str, Any]) -> TriplewireError:
    return _with_detail(errors.NotAcceptable("", tuple(document.get("known", ()))), detail)


def _too_large(detail: str, document: Mapping[str, Any]) -> TriplewireError:
    return _with_detail(errors.BodyTooLarge("", int(document.get("limit", 0))), detail)


def _hinted(detail: str) -> str:
    """Add how users of the client give a token; the edge's message names HTTP headers."""
    return f"{detail} (set TRIPLEWIRE_TOKEN, or TRIPLEWIRE_TOKEN_FILE to the name of a file)"


def _id_taken(detail: str, document: Mapping[str, Any]) -> TriplewireError:
    return _with_detail(errors.DuplicateId("", str(document.get("position", ""))), detail)


_MAKERS: Mapping[str, Callable[[str, Mapping[str, Any]], TriplewireError]] = {
    **{name: _simple(kind) for name, kind in _SIMPLE.items()},
    "Unsupported": _unsupported,
    "InvalidField": _invalid_field,
    "ShapeViolation": _shape_violation,
    "UnknownMediaType": _media_type,
    "NotAcceptable": _format,
    "BodyTooLarge": _too_large,
    "TooManyRequests": lambda detail, document: errors.TooManyRequests(detail, float(document.get("retry_after", 1.0))),
    "DuplicateId": _id_taken,
    "Unauthenticated": lambda detail, document: errors.Unauthenticated(_hinted(detail), given=True),
    "Forbidden": lambda detail, document: errors.Forbidden(detail, scope=str(document.get("scope", ""))),
    "QueryLimit": lambda detail, document: errors.QueryLimit(detail),
    "AnswerTooLarge": lambda detail, document: errors.AnswerTooLarge(detail),
}
