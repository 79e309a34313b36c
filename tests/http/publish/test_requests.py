"""Compressed bodies, bombs among them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
import zstandard

from tests.http.harness import house, run
from triplewire.http.publish.requests import (
    ENCODINGS,
    Decompressor,
    DeflateDecompressor,
    IdentityDecompressor,
    ZstdDecompressor,
)
from triplewire.model.errors import BadRequest
from triplewire.rdf.checks import BODY_BYTES

TEXT = b"<urn:s> <urn:p> 1 ."


def raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


WAYS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "members": ("gzip", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:])),
    "deflate": ("deflate", zlib.compress),
    "raw": ("deflate", raw),
    "zstd": ("zstd", zstandard.compress),
    "frames": ("zstd", lambda data: zstandard.compress(data[:5]) + zstandard.compress(data[5:])),
}


def inflation(name: str) -> Decompressor:
    return ZstdDecompressor() if name == "zstd" else DeflateDecompressor(name)


@pytest.mark.parametrize("way", WAYS)
def test_a_body_is_inflated_wherever_it_is_torn(way: str) -> None:
    name, pack = WAYS[way]
    text = bytes(range(256)) * 300 + TEXT
    packed = pack(text)
    for size in (1, 7, 1_000, len(packed)):
        inflating = inflation(name)
        parts = (packed[start : start + size] for start in range(0, len(packed), size))
        assert b"".join(piece for part in parts for piece in inflating.feed(part)) == text
        inflating.end()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_cut_off_or_broken_is_refused(way: str) -> None:
    name, pack = WAYS[way]
    cut = inflation(name)
    list(cut.feed(pack(TEXT)[:-1]))
    with pytest.raises(BadRequest, match="it is truncated"):
        cut.end()
    with pytest.raises(BadRequest, match=f"is not {name}"):
        list(inflation(name).feed(b"\x07garbage" * 10))


@pytest.mark.parametrize("way", ["gzip", "deflate", "zstd"])
def test_a_bomb_comes_in_small_pieces(way: str) -> None:
    name, pack = WAYS[way]
    largest = max(len(piece) for piece in inflation(name).feed(pack(b"\0" * 64 * 2**20)))
    assert largest <= BODY_BYTES


@pytest.mark.parametrize("way", WAYS)
def test_publishing_takes_it(way: str) -> None:
    async def scene() -> None:
        name, pack = WAYS[way]
        headers = {"Content-Type": "text/turtle", "Content-Encoding": name}
        async with house() as at:
            async with at.session.post(at.url + "/streams/test", data=pack(TEXT), headers=headers) as response:
                assert response.status == 201, await response.text()
            bomb = pack(b"#" * (BODY_BYTES + 1))
            told = await at.problem("POST", "/streams/test", data=bomb, headers=headers)
            assert (told["status"], told["limit"]) == (413, BODY_BYTES)
            broken = await at.problem("POST", "/streams/test", data=b"\x07" * 20, headers=headers)
            assert broken["status"] == 400
            assert at.twin.log.head() == 1

    run(scene())


def test_an_unknown_encoding_is_415_with_those_that_are_taken() -> None:
    async def scene() -> None:
        async with house() as at:
            headers = {"Content-Type": "text/turtle", "Content-Encoding": "br"}
            told = await at.problem("POST", "/streams/test", data=TEXT, headers=headers)
            assert (told["status"], told["known"]) == (415, list(ENCODINGS))

    run(scene())


def test_where_nobody_inflates_a_compressed_body_is_415() -> None:
    async def scene() -> None:
        async with house() as at:
            headers = {"Content-Type": "application/sparql-query", "Content-Encoding": "gzip"}
            told = await at.problem("POST", "/sparql", data=gzip.compress(b"ASK {}"), headers=headers)
            assert (told["status"], told["known"]) == (415, ["identity"])

    run(scene())


def test_what_is_not_compressed_stays() -> None:
    assert list(IdentityDecompressor().feed(TEXT)) == [TEXT]
