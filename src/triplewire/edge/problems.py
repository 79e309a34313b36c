"""Problems: every error as a problem document (RFC 9457), by one middleware that knows the exception tree."""

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
from triplewire.problems import described, document

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1

logger = logging.getLogger(__name__)


def problem(status: int, kind: str, title: str, detail: str, **extras: object) -> web.Response:
    """A problem as a response."""
    return response_of(document(status, kind, title, detail, **extras))


def response_of(told: dict[str, Any]) -> web.Response:
    seconds = told.get("retry_after", RETRY_SECONDS if told["status"] == 503 else None)
    headers = {} if seconds is None else {"Retry-After": str(ceil(seconds))}
    return web.Response(status=told["status"], body=orjson.dumps(told), content_type=MEDIA_TYPE, headers=headers)


def of_error(error: errors.TriplewireError) -> web.Response:
    """What a client is told about one of our own errors."""
    response = response_of(described(error))
    response.headers.update(challenge(error))
    return response


def challenge(error: errors.TriplewireError) -> dict[str, str]:
    """The header that says what to show to be let in (RFC 6750), for an error that is about this."""
    if isinstance(error, errors.Unauthenticated):
        return {hdrs.WWW_AUTHENTICATE: 'Bearer error="invalid_token"' if error.given else "Bearer"}
    if isinstance(error, errors.Forbidden) and error.scope:
        return {hdrs.WWW_AUTHENTICATE: f'Bearer error="insufficient_scope", scope="{error.scope}"'}
    return {}


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
