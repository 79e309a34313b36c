"""Responses with problem documents (RFC 9457), and the middleware that writes them."""

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
from triplewire.model.problems import describe_error, problem_document

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
