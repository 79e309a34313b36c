"""`/streams/{stream}/shapes`: the routes of shapes. Errors are raised; whoever serves them says them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.catalogue import shaping
from triplewire.control.replies import reply
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, BodyTooLarge, NotAcceptable
from triplewire.rdf import SYNTAXES, TURTLE, find_syntax, negotiate, to_ntriples
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.rdf.shacl import parse_shapes
from triplewire.storage.registry.streams import ShapesCache, StreamShapes, ValidationMode, check_stream_name

Check = Callable[[str], Awaitable[None]]


def routes(shapes: ShapesCache, check: Check) -> list[web.RouteDef]:
    """`check` raises InputError for shapes that make no sense."""
    served = _Shapes(shapes, check)
    return [
        web.put("/streams/{stream}/shapes", served.put),
        web.get("/streams/{stream}/shapes", served.find),
        web.delete("/streams/{stream}/shapes", served.remove),
    ]


class _Shapes:
    """Parsers take their time, and the registry waits for disks: in threads."""

    def __init__(self, shapes: ShapesCache, check: Check) -> None:
        self._shapes = shapes
        self._check = check

    @serves(shaping.PUT_SHAPES)
    async def put(self, request: web.Request) -> web.Response:
        """In place of those that the stream had."""
        stream, mode = check_stream_name(request.match_info["stream"]), _mode(request)
        syntax = find_syntax(request.headers.get("Content-Type"))
        if (request.content_length or 0) > limits.SHAPES_BYTES:
            raise BodyTooLarge("the shapes", limits.SHAPES_BYTES)
        text = await asyncio.to_thread(parse_shapes, await request.read(), syntax)
        await self._check(text)
        made = await asyncio.to_thread(self._shapes.put, stream, mode, text)
        told = {
            "stream": stream,
            "mode": mode.value,
            "version": format_position(made.version),
            "triples": text.count("\n") + 1,
        }
        return reply(told, headers={"Location": f"/streams/{stream}/shapes"})

    @serves(shaping.FIND_SHAPES)
    async def find(self, request: web.Request) -> web.Response:
        """As RDF; the header `Shapes-Mode` says what becomes of what does not conform."""
        found = await asyncio.to_thread(self._shapes.find, check_stream_name(request.match_info["stream"]))
        accept = ",".join(request.headers.getall("Accept", ()))
        syntax = negotiate(accept, TURTLE)
        if syntax is None:
            raise NotAcceptable(accept, tuple(each.media_type for each in SYNTAXES))
        around = find_frame(syntax)
        body = around.head + await asyncio.to_thread(write_fragment, _lines(found), syntax) + around.tail
        headers = {"ETag": f'"{format_position(found.version)}"', "Vary": "Accept", "Shapes-Mode": found.mode.value}
        return web.Response(body=body, content_type=syntax.media_type, headers=headers)

    @serves(shaping.REMOVE_SHAPES)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._shapes.remove, check_stream_name(request.match_info["stream"]))
        return web.Response(status=204)


def _lines(shaped: StreamShapes) -> bytes:
    return to_ntriples(shaped.text).encode()


def _mode(request: web.Request) -> ValidationMode:
    given = request.query.get("mode", ValidationMode.REFUSE.value)
    try:
        return ValidationMode(given)
    except ValueError:
        raise BadRequest(f"mode must be {' or '.join(ValidationMode)}, not {given[:60]!r}") from None
