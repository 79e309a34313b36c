"""One answer that never ends, read byte by byte as a client has to: head, chunks, compression, messages."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard

from triplewire.bench.fanout_events import MARK

_HEAD_END = b"\r\n\r\n"
_HEAD_MOST = 16_384


class Decoder(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


class Plain:
    """Nothing to decode."""

    def decompress(self, data: bytes, /) -> bytes:
        return data


class Chunks:
    """Takes `Transfer-Encoding: chunked` off, however it was cut into pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0

    def take(self, data: bytes) -> Iterator[bytes]:
        data = self._rest + data
        self._rest = b""
        while data:
            if self._left > 2:
                body = data[: self._left - 2]
                self._left -= len(body)
                data = data[len(body) :]
                yield body
            elif self._left:
                gone = min(self._left, len(data))
                self._left -= gone
                data = data[gone:]
            else:
                size, found, data = self._size(data)
                if not found:
                    return
                self._left = size

    def _size(self, data: bytes) -> tuple[int, bool, bytes]:
        """What the next chunk takes, with the two bytes that end it."""
        line, end, after = data.partition(b"\r\n")
        if not end:
            self._rest = data
            return 0, False, b""
        return int(line.partition(b";")[0], 16) + 2, True, after


class Stream:
    """What one client hears: the numbers of events, when each was due and where in the bytes it was complete."""

    def __init__(self) -> None:
        self.opened = False
        """Whether the head is there, and something after it."""
        self.heard: list[tuple[int, int]] = []
        """Number of an event, and when it was due, since it was looked at last."""
        self.plain = 0
        """Bytes as they were before compression, and without chunks."""
        self._head = b""
        self._text = b""
        self._chunks: Chunks | None = None
        self._decoder: Decoder = Plain()

    def take(self, data: bytes) -> None:
        """Raises ValueError for an answer that is none, or not 200."""
        if self.opened:
            self._body(data)
            return
        self._head += data
        head, end, body = self._head.partition(_HEAD_END)
        if end and body:
            self.opened = True
            self._open(head)
            self._body(body)
        elif not end and len(self._head) > _HEAD_MOST:
            raise ValueError("the answer's head does not end")

    def _open(self, head: bytes) -> None:
        first, *rest = head.decode("latin-1").split("\r\n")
        if first.split()[1:2] != ["200"]:
            raise ValueError(f"the answer is {first!r}")
        fields = {
            name.strip().lower(): value.strip().lower() for name, _, value in (each.partition(":") for each in rest)
        }
        self._chunks = Chunks() if "chunked" in fields.get("transfer-encoding", "") else None
        self._decoder = _decoder(fields.get("content-encoding", "identity"))

    def _body(self, data: bytes) -> None:
        for piece in (data,) if self._chunks is None else self._chunks.take(data):
            text = self._decoder.decompress(piece)
            self.plain += len(text)
            self._text += text
        last = 0
        for found in MARK.finditer(self._text):
            self.heard.append((int(found[1]), int(found[2])))
            last = found.end()
        # A mark is short: what is kept is enough to find one that is cut in two.
        self._text = self._text[max(last, len(self._text) - 64) :]


def _decoder(encoding: str) -> Decoder:
    if encoding in ("gzip", "deflate"):
        return zlib.decompressobj(47)
    if encoding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    if encoding == "identity":
        return Plain()
    raise ValueError(f"the answer is encoded as {encoding!r}")
