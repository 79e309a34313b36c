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

_PROBLEMS: dict[type[Exception], tuple[int, str]] = {
    errors.MalformedRdf: (400, "Malformed RDF"),
    errors.UnknownMediaType: (415, "Unsupported media type"),
    errors.NotAcceptable: (406, "Not acceptable"),
    errors.BodyTooLarge: (413, "Payload too large"),
    errors.SparqlSyntax: (400, "SPARQL syntax error"),
    errors.Unsupported: (422, "Unsupported SPARQL"),
    errors.ShapeViolation: (422, "Shape violation"),
    errors.InvalidField: (422, "Invalid field"),
    errors.BadRequest: (400, "Bad request"),
    errors.InputError: (400, "Bad request"),
    errors.Unauthenticated: (401, "Unauthorized"),
    errors.Forbidden: (403, "Forbidden"),
    errors.Gone: (410, "Gone"),
    errors.NotFound: (404, "Not found"),
    errors.DuplicateId: (409, "Duplicate event id"),
    errors.Conflict: (409, "Conflict"),
    errors.TooManyRequests: (429, "Too many requests"),
    errors.StorageFull: (507, "Insufficient storage"),
    errors.AnswerTooLarge: (413, "Answer too large"),
    errors.QueryLimit: (503, "Query limit exceeded"),
    errors.Unavailable: (503, "Service unavailable"),
}
"""Status and title of each error class; those of its nearest base class hold for another."""

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
    """Return a problem document. `kind` is the class of the error, the last segment of the document's type."""
    type = f"https://triplewire.dev/problems/{kind}"
    return {"type": type, "title": title, "status": status, "detail": detail, **extras}


def describe_error(error: errors.TriplewireError) -> dict[str, Any]:
    """Return the problem document of an error, with the line and column of the input that it is about."""
    known = (_PROBLEMS[each] for each in type(error).__mro__ if each in _PROBLEMS)
    status, title = next(known, (500, "Internal server error"))
    extras = {name: getattr(error, name) for name in _EXTRAS if getattr(error, name, None)}
    place = getattr(error, "place", None)
    if place is not None:
        extras |= {"line": place.line, "column": place.column}
    return problem_document(status, type(error).__name__, title, str(error), **extras)


MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1

logger = logging.getLogger(__name__)


def problem_response(status: int, kind: str, title: str, detail: str, **extras: object) -> web.Response:
    return to_response(problem_document(status, kind, title, detail, **extras))


def internal_error_response(status: int = 500) -> web.Response:
    """Return a response that reveals nothing about an unforeseen error."""
    return problem_response(status, "Internal", "Internal server error", "the request was not carried out")


def to_response(document: dict[str, Any]) -> web.Response:
    status = document["status"]
    seconds = document.get("retry_after", RETRY_SECONDS if status == 503 else None)
    headers = {} if seconds is None else {"Retry-After": str(ceil(seconds))}
    return web.Response(status=status, body=orjson.dumps(document), content_type=MEDIA_TYPE, headers=headers)


def respond_to_error(error: errors.TriplewireError) -> web.Response:
    response = to_response(describe_error(error))
    response.headers.update(make_challenge(error))
    return response


def make_challenge(error: errors.TriplewireError) -> dict[str, str]:
    """Return the header WWW-Authenticate (RFC 6750), for an error about credentials."""
    if isinstance(error, errors.Unauthenticated):
        return {hdrs.WWW_AUTHENTICATE: 'Bearer error="invalid_token"' if error.given else "Bearer"}
    if isinstance(error, errors.Forbidden) and error.scope:
        return {hdrs.WWW_AUTHENTICATE: f'Bearer error="insufficient_scope", scope="{error.scope}"'}
    return {}


def respond_to_http_error(error: web.HTTPException, request: web.Request) -> web.Response:
    """Return the response to an error of the web framework: an unknown address, a wrong method."""
    phrase = HTTPStatus(error.status).phrase
    kind = phrase.replace(" ", "")
    if isinstance(error, web.HTTPMethodNotAllowed):
        known = sorted(error.allowed_methods)
        detail = f"{request.method} is not allowed here; {', '.join(known)} are"
        response = problem_response(error.status, kind, phrase, detail, known=known)
        response.headers["Allow"] = ", ".join(known)
        return response
    nothing = f"there is nothing at {request.path}; GET / lists the addresses"
    return problem_response(error.status, kind, phrase, nothing if error.status == 404 else error.text or phrase)


def problem_middleware(metrics: Metrics) -> Middleware:
    """Return a middleware that turns exceptions of handlers into problem documents."""

    @web.middleware
    async def handle_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
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
            response = internal_error_response()
        metrics.problems.labels(str(response.status)).inc()
        return response

    return handle_errors
