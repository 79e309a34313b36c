"""Compression once for all: one context packs what many connections are sent.

A packed stream refers to what it has said before, so nobody can begin to read in its middle. Two things make it one
for all nevertheless: what newcomers are sent until then is packed *alone*, without reference to anything; and a context
is given up for a new one from time to time. Where a context begins, everybody who has read whole pieces can go on.

```
shared context   ── a ── b ──┤ new: c ── d ── e ──▶   members
alone            ── a' ─ b' ─┘                        newcomers, who are members from c on
```
"""

from __future__ import annotations

import zlib
from typing import Protocol

import zstandard

_LEVEL = 6
_RAW = -15
"""Deflate without a head and an end: its blocks go on after those of another context."""


_ZSTD_SHARED = zstandard.ZstdCompressionParameters.from_level(6, source_size=16 * 1024, write_checksum=False)
"""It looks 16 kB back, where the last messages are: a context takes 0.2 MB instead of 1.3, a reader needs no 2 MB, and
messages that are alike become a tenth shorter than with what is usual for long files."""


class Context(Protocol):
    """Packs one piece after the other, each of which can be read when it has come whole."""

    def pack(self, data: bytes) -> bytes: ...


class Encoding(Protocol):
    """A way to pack. There is one of each, so that they are told apart by identity."""

    @property
    def name(self) -> str:
        """What Content-Encoding calls it; empty for what is not packed."""

    @property
    def head(self) -> bytes:
        """The first bytes of every connection."""

    @property
    def parting(self) -> bytes:
        """What a reader in the middle of a context is sent before anything that is not of it."""

    def alone(self, data: bytes) -> bytes:
        """A piece that can be read wherever no context is open."""

    def context(self) -> Context: ...


class Identity:
    """Nothing is packed."""

    name, head, parting = "", b"", b""

    def alone(self, data: bytes) -> bytes:
        return data

    def context(self) -> Context:
        return self

    def pack(self, data: bytes) -> bytes:
        return data


class Gzip:
    """Deflate, of which every piece ends at a whole byte. The stream has no end, and so no checksum."""

    name, parting = "gzip", b""
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

    def alone(self, data: bytes) -> bytes:
        return _Deflate().pack(data)

    def context(self) -> Context:
        return _Deflate()


class _Deflate:
    def __init__(self) -> None:
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)

    def pack(self, data: bytes) -> bytes:
        return self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)


class Zstd:
    """A context is a frame; frames follow each other."""

    name, head = "zstd", b""
    parting = b"\x01\x00\x00"
    """An empty block that says that it is the last of its frame."""

    def alone(self, data: bytes) -> bytes:
        return zstandard.ZstdCompressor(level=3, write_checksum=False).compress(data)

    def context(self) -> Context:
        return _Frame()


class _Frame:
    def __init__(self) -> None:
        self._packer = zstandard.ZstdCompressor(compression_params=_ZSTD_SHARED).compressobj()

    def pack(self, data: bytes) -> bytes:
        return self._packer.compress(data) + self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


IDENTITY, GZIP, ZSTD = Identity(), Gzip(), Zstd()

ENCODINGS: tuple[Encoding, ...] = (ZSTD, GZIP)
"""The better comes first."""
