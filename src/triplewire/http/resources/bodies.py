"""Request bodies within a size limit, JSON responses, and the parameters of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from aiohttp import web

from triplewire.http.openapi.schemas import Document
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField, NotAcceptable, UnknownMediaType
from triplewire.rdf import SYNTAXES, TURTLE, Syntax, negotiate
from triplewire.rdf.checks import check_nesting
from triplewire.storage.registry.ports import PAGE_ENTRIES

SUBSCRIPTION_BODY_BYTES: Final = 1024 * 1024
"""The JSON body that creates subscriptions or continuous queries."""

JSON = "application/json"


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type=JSON, headers=headers)


def parse_page_size(request: web.Request) -> int:
    """Read the parameter `limit`. Raises BadRequest."""
    text = request.query.get("limit", str(PAGE_ENTRIES))
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= PAGE_ENTRIES:
        raise BadRequest(f"limit must be a number from 1 to {PAGE_ENTRIES}, not {text!r}")
    return int(text)


async def read_body_within(request: web.Request, what: str, most: int) -> bytes:
    """Raises BodyTooLarge, before reading if the length is declared."""
    if (request.content_length or 0) > most:
        raise BodyTooLarge(what, most)
    body = await request.read()
    if len(body) > most:
        raise BodyTooLarge(what, most)
    return body


async def read_text_within(request: web.Request, what: str, most: int) -> str:
    """Raises BodyTooLarge, or BadRequest for a body that is not UTF-8."""
    body = await read_body_within(request, what, most)
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"{what} is not UTF-8 at byte {error.start}") from None


async def read_json(request: web.Request, most: int, known: Sequence[str] = (JSON,)) -> Any:  # noqa: ANN401
    """Raises BodyTooLarge, BadRequest, or UnknownMediaType with the media types that are known."""
    if request.content_type != JSON:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), tuple(known))
    return parse_json(await read_body_within(request, "the body", most))


def parse_json(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Raises BadRequest."""
    check_nesting(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def check_members(value: Mapping[str, object], what: str, document: type[Document]) -> None:
    """Raises InvalidField for the first member that the document does not have."""
    names = document.names()
    for unknown in (name for name in value if name not in names):
        raise InvalidField(unknown, f"{what} has no {unknown}; it has {', '.join(names)}")


def negotiate_rdf(request: web.Request) -> Syntax:
    """The RDF syntax that the client prefers. Raises NotAcceptable."""
    accept = ",".join(request.headers.getall("Accept", ()))
    syntax = negotiate(accept, TURTLE)
    if syntax is None:
        raise NotAcceptable(accept, tuple(each.media_type for each in SYNTAXES))
    return syntax
