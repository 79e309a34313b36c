"""Bulks: many subscriptions as lines of JSON on their way to an edge, and its answers on their way back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, TypedDict

import orjson

MEDIA_TYPE = "application/x-ndjson"

_PIECE = 64 * 1024


class Wanted(TypedDict, total=False):
    """What a subscription may say beside its query, kind and stream."""

    source: str | list[str]
    application: str | list[str]
    vocabulary: str | list[str]
    template: str
    values: Mapping[str, Any]
    version: str
    ttl: float
    entailment: str
    begins: str
    """`from`, which is a word of Python."""


async def written(wishes: Iterable[Mapping[str, Any] | bytes]) -> AsyncIterator[bytes]:
    """A line for each, in pieces that are worth sending. Bytes are lines already."""
    lines, size = list[bytes](), 0
    for wish in wishes:
        lines.append(wish.rstrip(b"\n") if isinstance(wish, bytes) else orjson.dumps(dict(wish)))
        size += len(lines[-1])
        if size > _PIECE:
            yield b"\n".join((*lines, b""))
            lines, size = [], 0
    yield b"\n".join((*lines, b""))


async def read(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The lines of an answer."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield orjson.loads(line)
