"""JSON request bodies within a size limit, JSON responses, and pages of registry entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import orjson
from aiohttp import web

from triplewire.model.errors import BadRequest, BodyTooLarge, UnknownMediaType
from triplewire.rdf.checks import check_nesting
from triplewire.storage.registry.ports import PAGE_ENTRIES, Registry, RegistryChange

SUBSCRIPTION_BODY_BYTES: Final = 1024 * 1024
"""The JSON that makes subscriptions."""


# Replies: answers in JSON, and how much of a list one of them has.

JSON = "application/json"


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type=JSON, headers=headers)


def parse_page_size(request: web.Request) -> int:
    """As the parameter `limit` says. Raises BadRequest."""
    text = request.query.get("limit", str(PAGE_ENTRIES))
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= PAGE_ENTRIES:
        raise BadRequest(f"limit must be a number from 1 to {PAGE_ENTRIES}, not {text!r}")
    return int(text)


async def read_body_within(request: web.Request, what: str, most: int) -> bytes:
    """Raises BodyTooLarge, for one that says so before it is read."""
    if (request.content_length or 0) > most:
        raise BodyTooLarge(what, most)
    body = await request.read()
    if len(body) > most:
        raise BodyTooLarge(what, most)
    return body


async def read_json(request: web.Request, most: int, known: Sequence[str] = (JSON,)) -> object:
    """Raises BodyTooLarge, BadRequest, or UnknownMediaType with those that are known."""
    if request.content_type != JSON:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), tuple(known))
    body = await read_body_within(request, "the body", most)
    check_nesting(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


# Pages: some of what somebody has, in the order in which it was made.

Resource = TypeVar("Resource")


@dataclass(frozen=True)
class ResourcePage(Generic[Resource]):
    """Some of them; `next` asks for those after them."""

    things: Sequence[Resource]
    next: int | None


def list_page(
    registry: Registry, kind: str, own: str | None, after: int, limit: int
) -> tuple[list[RegistryChange], int | None]:
    """The first of a kind after a position, and from where on there are more. `own` is the kind of the entries by which
    those of somebody are found; None is for all of them."""
    found = registry.list(own or kind, after=after, limit=limit + 1)
    following = found[limit - 1].position if len(found) > limit else None
    if own is None:
        return [*found[:limit]], following
    changes = (registry.get(kind, each.key) for each in found[:limit])
    return [each for each in changes if each is not None], following
