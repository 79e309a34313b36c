"""Frames of Jelly that come, as N-Quads: what their terms are is for the one parser to judge.

Frames refer to those before, so that they are decoded in order, and the first that cannot be is the last. Where the
stream says that frames are graphs or datasets each is a message; else all of them are one document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from triplewire.codec.cuts import Cut
from triplewire.config import limits
from triplewire.model.errors import BadRequest, BodyTooLarge

if TYPE_CHECKING:
    from triplewire.codec.jelly.decoding import Decoding


_LENGTH_BYTES = 5


@dataclass
class JellyCutter:
    """Frames with their lengths before them, or one frame alone."""

    _rest: bytearray = field(default_factory=bytearray)
    _delimited: bool | None = None
    _decoding: Decoding | None = None
    _flat: list[str] = field(default_factory=list)
    """What has come of a stream whose frames mean nothing."""
    _size: int = 0

    def feed(self, data: bytes) -> Iterator[Cut]:
        self._rest += data
        if self._delimited is None and len(self._rest) >= _HINT:
            self._delimited = _is_delimited(bytes(self._rest[:_HINT]))
        if self._delimited:
            while (frame := self._next()) is not None:
                yield from self._read(frame)
        elif len(self._rest) > limits.JELLY_FRAME_BYTES:
            raise BodyTooLarge("a frame of Jelly", limits.JELLY_FRAME_BYTES)

    def end(self) -> Iterator[Cut]:
        if self._rest and self._delimited:
            raise BadRequest(f"the frame of Jelly ends in the middle: after {len(self._rest)} bytes")
        if self._rest:
            yield from self._read(bytes(self._rest))
        if self._flat:
            yield Cut(0, "".join(self._flat).encode())

    def _next(self) -> bytes | None:
        """The next frame that is whole."""
        size = start = 0
        for start, byte in enumerate(self._rest[:_LENGTH_BYTES], 1):
            size |= (byte & 0x7F) << 7 * (start - 1)
            if byte < 0x80:
                break
        else:
            if len(self._rest) >= _LENGTH_BYTES:
                raise BadRequest("this is no Jelly: the length of a frame has more than 5 bytes")
            return None
        if size > limits.JELLY_FRAME_BYTES:
            raise BodyTooLarge("a frame of Jelly", limits.JELLY_FRAME_BYTES)
        if len(self._rest) < start + size:
            return None
        frame = bytes(self._rest[start : start + size])
        del self._rest[: start + size]
        return frame

    def _read(self, frame: bytes) -> Iterator[Cut]:
        if not frame:
            return
        if self._decoding is None:
            self._decoding = _decoding()
        text = self._decoding.text(frame)
        if self._decoding.grouped:
            yield Cut(0, text.encode())
            return
        self._flat.append(text)
        self._size += len(text)
        if self._size > limits.EXPANDED_BYTES:
            raise BodyTooLarge("what the frames of Jelly say", limits.EXPANDED_BYTES)


def _decoding() -> Decoding:
    # The library takes long to load, and few need it.
    from triplewire.codec.jelly.decoding import Decoding

    return Decoding()


_HINT = 3
"""Bytes by which the two ways are told apart, as the specification has it."""


def _is_delimited(head: bytes) -> bool:
    return head[0] != 0x0A or (head[1] == 0x0A and head[2] != 0x0A)
