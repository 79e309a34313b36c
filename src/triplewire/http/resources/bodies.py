"""Request bodies within a size limit, fields of JSON bodies, JSON responses, and the parameters of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

import orjson
from aiohttp import web

from triplewire.http.openapi.schemas import Document
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField, NotAcceptable, UnknownMediaType
from triplewire.rdf import SYNTAXES, TURTLE, Syntax, negotiate
from triplewire.rdf.checks import check_nesting
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.sparql.syntax.queries import QUERY_BYTES
from triplewire.storage.registry.ports import PAGE_ENTRIES
from triplewire.storage.registry.streams import check_stream_name

SUBSCRIPTION_BODY_BYTES: Final = 1024 * 1024
"""The JSON body that creates subscriptions or continuous queries."""

JSON = "application/json"

Choice = TypeVar("Choice", bound=Enum)


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


def parse_printable(field: str, given: object) -> str:
    """Raises InvalidField."""
    most = HEADER_CHARACTERS
    if not isinstance(given, str) or not given or len(given) > most or not given.isprintable():
        raise InvalidField(field, f"{field} is printable text of 1 to {most} characters, not {given!r}")
    return given


def parse_stream(field: str, given: object) -> str:
    """Parse the name of a stream. Raises InvalidField."""
    if not isinstance(given, str):
        raise InvalidField(field, f"{field} must name a stream, not {given!r}")
    try:
        return check_stream_name(given)
    except BadRequest as error:
        raise InvalidField(field, str(error)) from None


def parse_choice(field: str, given: object, default: Choice) -> Choice:
    """Parse a value of the enumeration of the default, which stands for None. Raises InvalidField."""
    if given is None:
        return default
    known: Mapping[str, Choice] = {each.value: each for each in type(default)}
    if not isinstance(given, str) or given not in known:
        raise InvalidField(field, f"{field} must be one of {', '.join(known)}, not {given!r}")
    return known[given]


def check_query_size(text: str) -> str:
    """Raises BodyTooLarge."""
    if len(text) * 4 > QUERY_BYTES and len(text.encode(errors="replace")) > QUERY_BYTES:
        raise BodyTooLarge("the query", QUERY_BYTES)
    return text


def negotiate_rdf(request: web.Request) -> Syntax:
    """The RDF syntax that the client prefers. Raises NotAcceptable."""
    accept = ",".join(request.headers.getall("Accept", ()))
    syntax = negotiate(accept, TURTLE)
    if syntax is None:
        raise NotAcceptable(accept, tuple(each.media_type for each in SYNTAXES))
    return syntax
