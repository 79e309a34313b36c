"""Problems: every error as a problem document (RFC 9457), by one middleware that knows the exception tree."""

from __future__ import annotations

import logging
from http import HTTPStatus

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire import errors
from triplewire.telemetry.metrics import Metrics

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.UnknownMediaType, 415),
    (errors.NotAcceptable, 406),
    (errors.BodyTooLarge, 413),
    (errors.Unsupported, 422),
    (errors.InputError, 400),
    (errors.NotFound, 404),
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
    "BadRequest": "The request is not as it must be",
    "NotFound": "Nothing of that name is here",
    "StorageFull": "The disk is full; nothing was acknowledged",
    "QueryLimit": "The query went over a limit",
    "AnswerTooLarge": "The answer is too large",
    "Unavailable": "A part that is needed does not answer now",
}

_EXTRAS = ("construct", "known", "limit", "excerpt")

logger = logging.getLogger(__name__)


def problem(status: int, kind: str, title: str, detail: str, **extras: object) -> web.Response:
    """The document as a response. `kind` ends its type, an address that says which class of error it is."""
    document = {"type": f"https://triplewire.dev/problems/{kind}", "title": title, "status": status, "detail": detail}
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else {}
    return web.Response(
        status=status, body=orjson.dumps({**document, **extras}), content_type=MEDIA_TYPE, headers=headers
    )


def of_error(error: errors.TriplewireError) -> web.Response:
    """What a client is told about one of our own errors."""
    status = next((status for known, status in _STATUS if isinstance(error, known)), 500)
    kind = type(error).__name__
    extras = {name: getattr(error, name) for name in _EXTRAS if getattr(error, name, None)}
    place = getattr(error, "place", None)
    if place is not None:
        extras |= {"line": place.line, "column": place.column}
    return problem(status, kind, _TITLES.get(kind, HTTPStatus(status).phrase), str(error), **extras)


def of_http(error: web.HTTPException, request: web.Request) -> web.Response:
    """What a client is told about an error that the web framework found: an unknown address, a wrong method."""
    phrase = HTTPStatus(error.status).phrase
    kind = phrase.replace(" ", "")
    if isinstance(error, web.HTTPMethodNotAllowed):
        known = sorted(error.allowed_methods)
        detail = f"{request.method} is not possible here; {', '.join(known)} are"
        response = problem(error.status, kind, phrase, detail, known=known)
        response.headers["Allow"] = ", ".join(known)
        return response
    nothing = f"there is nothing at {request.path}; GET / says where to go"
    return problem(error.status, kind, phrase, nothing if error.status == 404 else error.text or phrase)


def middleware(metrics: Metrics) -> Middleware:
    """Turns whatever a handler raises into a problem document; an unforeseen error says nothing of the inside."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except errors.TriplewireError as error:
            response = of_error(error)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            response = of_http(error, request)
        except ConnectionError:
            raise
        except Exception:
            logger.exception("%s %s failed", request.method, request.path)
            response = problem(500, "Internal", "Something went wrong here", "the request was not carried out")
        metrics.problems.labels(str(response.status)).inc()
        return response

    return guard
