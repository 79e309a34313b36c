"""Problem documents (RFC 9457): status and title of each error class, and the middleware that writes them."""

from __future__ import annotations

import logging
from http import HTTPStatus
from math import ceil
from typing import Any

import orjson
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from triplewire.config.metrics import Metrics
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
    "MalformedRdf": "Malformed RDF",
    "UnknownMediaType": "Unsupported media type",
    "NotAcceptable": "Not acceptable",
    "BodyTooLarge": "Payload too large",
    "SparqlSyntax": "SPARQL syntax error",
    "Unsupported": "Unsupported SPARQL",
    "ShapeViolation": "Shape violation",
    "InvalidField": "Invalid field",
    "BadRequest": "Bad request",
    "Unauthenticated": "Unauthorized",
    "Forbidden": "Forbidden",
    "NotFound": "Not found",
    "Gone": "Gone",
    "Conflict": "Conflict",
    "DuplicateId": "Duplicate event id",
    "TooManyRequests": "Too many requests",
    "StorageFull": "Insufficient storage",
    "QueryLimit": "Query limit exceeded",
    "AnswerTooLarge": "Answer too large",
    "Unavailable": "Service unavailable",
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


def problem_document(status: int, kind: str, title: str, detail: str, **extras: object) -> dict[str, Any]:
    """A problem document. `kind` ends its type, an address that says which class of error it is."""
    told = {"type": f"https://triplewire.dev/problems/{kind}", "title": title, "status": status, "detail": detail}
    return {**told, **extras}


def describe_error(error: errors.TriplewireError) -> dict[str, Any]:
    """What a client is told about an error: its class, its words, and where in the input it lies."""
    status = next((status for known, status in _STATUS if isinstance(error, known)), 500)
    kind = type(error).__name__
    extras = {name: getattr(error, name) for name in _EXTRAS if getattr(error, name, None)}
    place = getattr(error, "place", None)
    if place is not None:
        extras |= {"line": place.line, "column": place.column}
    return problem_document(status, kind, _TITLES.get(kind, HTTPStatus(status).phrase), str(error), **extras)


# Problems: every error as a problem document (RFC 9457), by one middleware that knows the exception tree.

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1

logger = logging.getLogger(__name__)


def problem_response(status: int, kind: str, title: str, detail: str, **extras: object) -> web.Response:
    """A problem as a response."""
    return to_response(problem_document(status, kind, title, detail, **extras))


def to_response(told: dict[str, Any]) -> web.Response:
    seconds = told.get("retry_after", RETRY_SECONDS if told["status"] == 503 else None)
    headers = {} if seconds is None else {"Retry-After": str(ceil(seconds))}
    return web.Response(status=told["status"], body=orjson.dumps(told), content_type=MEDIA_TYPE, headers=headers)


def respond_to_error(error: errors.TriplewireError) -> web.Response:
    """What a client is told about one of our own errors."""
    response = to_response(describe_error(error))
    response.headers.update(make_challenge(error))
    return response


def make_challenge(error: errors.TriplewireError) -> dict[str, str]:
    """The header that says what to show to be let in (RFC 6750), for an error that is about this."""
    if isinstance(error, errors.Unauthenticated):
        return {hdrs.WWW_AUTHENTICATE: 'Bearer error="invalid_token"' if error.given else "Bearer"}
    if isinstance(error, errors.Forbidden) and error.scope:
        return {hdrs.WWW_AUTHENTICATE: f'Bearer error="insufficient_scope", scope="{error.scope}"'}
    return {}


def respond_to_http_error(error: web.HTTPException, request: web.Request) -> web.Response:
    """What a client is told about an error that the web framework found: an unknown address, a wrong method."""
    phrase = HTTPStatus(error.status).phrase
    kind = phrase.replace(" ", "")
    if isinstance(error, web.HTTPMethodNotAllowed):
        known = sorted(error.allowed_methods)
        detail = f"{request.method} is not possible here; {', '.join(known)} are"
        response = problem_response(error.status, kind, phrase, detail, known=known)
        response.headers["Allow"] = ", ".join(known)
        return response
    nothing = f"there is nothing at {request.path}; GET / says where to go"
    return problem_response(error.status, kind, phrase, nothing if error.status == 404 else error.text or phrase)


def problem_middleware(metrics: Metrics) -> Middleware:
    """Turns whatever a handler raises into a problem document; an unforeseen error says nothing of the inside."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except errors.TriplewireError as error:
            response = respond_to_error(error)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            response = respond_to_http_error(error, request)
        except ConnectionError:
            raise
        except Exception:
            logger.exception("%s %s failed", request.method, request.path)
            response = problem_response(500, "Internal", "Something went wrong here", "the request was not carried out")
        metrics.problems.labels(str(response.status)).inc()
        return response

    return guard
