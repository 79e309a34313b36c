"""The protocol between an edge and its query workers: frames over one socket, and errors as JSON.

```
edge                                  worker
                              ◀────── READY
QUERY {number, request} ─────▶
                              ◀────── HEAD {content_type}, DATA …, DATA …, END
                              ◀────── or, at any point: ERROR {kind, message, …}; or at once: MOVE
CANCEL {number} ─────────────▶        END or ERROR still comes
```

There is one query at a time. A side that does not read stops the other from writing: only the socket's buffer fills
up.
"""

from __future__ import annotations

import asyncio
import struct
from enum import Enum
from typing import Any, BinaryIO, Final

import orjson

from triplewire.model import errors
from triplewire.model.errors import TextPosition, TriplewireError
from triplewire.sparql.syntax.queries import QUERY_BYTES

CHUNK_BYTES: Final = 64 * 1024
"""One piece of an answer on its way out. A few of them are all that an edge holds of one answer."""


# ```
# edge                                  worker
#                               ◀────── READY
# QUERY {number, request} ─────▶
#                               ◀────── HEAD {content_type}, DATA …, DATA …, END
#                               ◀────── or, at any point: ERROR {kind, message, …}; or at once: MOVE
# CANCEL {number} ─────────────▶        END or ERROR still comes
# ```
#
# One query at a time. Whoever does not read stops the other side from writing: nothing piles up but what a socket
# holds.

_HEADER = struct.Struct(">cI")
_LONGEST = 8 * QUERY_BYTES
"""A query as JSON, where a control character takes six bytes."""


class FrameKind(Enum):
    """What a frame says."""

    READY = b"r"
    QUERY = b"q"
    CANCEL = b"c"
    HEAD = b"h"
    DATA = b"d"
    END = b"e"
    ERROR = b"x"
    MOVE = b"m"
    """The query is not for this engine."""


FINAL_FRAMES = frozenset({FrameKind.END, FrameKind.ERROR, FrameKind.MOVE})
"""After one of these a worker is free."""


def encode_frame(kind: FrameKind, payload: bytes = b"") -> bytes:
    return _HEADER.pack(kind.value, len(payload)) + payload


def encode_json_frame(kind: FrameKind, document: dict[str, Any]) -> bytes:
    return encode_frame(kind, orjson.dumps(document))


def read_frame(source: BinaryIO) -> tuple[FrameKind, bytes] | None:
    """The next frame; None when the other side is gone."""
    header = source.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    kind, length = _parse_header(header)
    payload = source.read(length)
    return (kind, payload) if len(payload) == length else None


async def receive_frame(source: asyncio.StreamReader) -> tuple[FrameKind, bytes]:
    """The next frame. Raises EOFError when the other side is gone."""
    kind, length = _parse_header(await source.readexactly(_HEADER.size))
    return kind, await source.readexactly(length)


def _parse_header(header: bytes) -> tuple[FrameKind, int]:
    code, length = _HEADER.unpack(header)
    if length > _LONGEST:
        raise EOFError(f"a frame of {length} bytes: the other side does not speak this protocol")
    return FrameKind(code), length


STREAM_BYTES = 2 * CHUNK_BYTES
"""What the reading side holds before it stops to read."""


# Refusals: our own errors on their way from one process to another.

_KNOWN: dict[str, type[TriplewireError]] = {
    each.__name__: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, TriplewireError)
}


def error_to_json(error: TriplewireError) -> dict[str, Any]:
    """The class of an error, its words, and what it knows besides."""
    facts = dict(vars(error))
    place = facts.pop("place", None)
    found: dict[str, Any] = {"kind": type(error).__name__, "message": str(error), "facts": facts}
    return {**found, "place": [place.line, place.column]} if place else found


def error_from_json(document: dict[str, Any]) -> TriplewireError:
    """The error again. Its words are those that it had, not made anew from what it knows."""
    kind = _KNOWN[document["kind"]]
    error = kind.__new__(kind)
    error.args = (document["message"],)
    place = document.get("place")
    vars(error).update(document["facts"])
    if issubclass(kind, errors.InputError):
        vars(error)["place"] = TextPosition(*place) if place else None
    return error
