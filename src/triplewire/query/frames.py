"""Frames: how an edge and the processes that run its queries talk, over one socket.

```
edge                                  worker
                              ◀────── READY
QUERY {number, request} ─────▶
                              ◀────── HEAD {content_type}, DATA …, DATA …, END
                              ◀────── or, at any point: ERROR {kind, message, …}; or at once: MOVE
CANCEL {number} ─────────────▶        END or ERROR still comes
```

One query at a time. Whoever does not read stops the other side from writing: nothing piles up but what a socket holds.
"""

from __future__ import annotations

import asyncio
import struct
from enum import Enum
from typing import Any, BinaryIO

import orjson

from triplewire.config import limits

_HEADER = struct.Struct(">cI")
_LONGEST = 8 * limits.QUERY_BYTES
"""A query as JSON, where a control character takes six bytes."""


class Kind(Enum):
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


LAST = frozenset({Kind.END, Kind.ERROR, Kind.MOVE})
"""After one of these a worker is free."""


def frame(kind: Kind, payload: bytes = b"") -> bytes:
    return _HEADER.pack(kind.value, len(payload)) + payload


def json_frame(kind: Kind, document: dict[str, Any]) -> bytes:
    return frame(kind, orjson.dumps(document))


def read(source: BinaryIO) -> tuple[Kind, bytes] | None:
    """The next frame; None when the other side is gone."""
    header = source.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    kind, length = _parsed(header)
    payload = source.read(length)
    return (kind, payload) if len(payload) == length else None


async def receive(source: asyncio.StreamReader) -> tuple[Kind, bytes]:
    """The next frame. Raises EOFError when the other side is gone."""
    kind, length = _parsed(await source.readexactly(_HEADER.size))
    return kind, await source.readexactly(length)


def _parsed(header: bytes) -> tuple[Kind, int]:
    code, length = _HEADER.unpack(header)
    if length > _LONGEST:
        raise EOFError(f"a frame of {length} bytes: the other side does not speak this protocol")
    return Kind(code), length


STREAM_BYTES = 2 * limits.CHUNK_BYTES
"""What the reading side holds before it stops to read."""
