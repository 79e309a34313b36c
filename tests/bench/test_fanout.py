"""`bench fanout`: what clients are said to have heard is what they heard, and lost is lost."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.fanout import FanoutOptions, ListenOptions, find_nchan, run
from bench.fanout_clients import MessageStream
from bench.fanout_load import ClientSample, Received
from bench.fanout_publisher import KINDS, MARK
from bench.links import Link
from triplewire.model.errors import Unavailable
from triplewire.rdf import decode
from triplewire.rdf.syntaxes import find_syntax

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
MESSAGES = [b'id: %d\ndata: "sent %d at %d in the rain"\n\n' % (n, n, 1_000 + n) for n in range(20)]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def gzipped(pieces: Sequence[bytes]) -> list[bytes]:
    packer = zlib.compressobj(wbits=31)
    return [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]


def zstd(pieces: Sequence[bytes]) -> list[bytes]:
    """A frame each, as for newcomers."""
    return [zstandard.ZstdCompressor().compress(piece) for piece in pieces]


ANSWERS = {
    "plain": HEAD + b"\r\n" + b"".join(MESSAGES),
    "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(map(chunk, MESSAGES)),
    "gzip": HEAD
    + b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
    + b"".join(map(chunk, gzipped(MESSAGES))),
    "zstd": HEAD + b"Content-Encoding: zstd\r\n\r\n" + b"".join(zstd(MESSAGES)),
}


@pytest.mark.parametrize("name", ANSWERS)
@given(sizes=st.lists(st.integers(1, 200), min_size=1, max_size=30))
@settings(max_examples=30)
def test_a_stream_is_read_however_it_is_cut(name: str, sizes: list[int]) -> None:
    answer, stream, at = ANSWERS[name], MessageStream(), 0
    while at < len(answer):
        size = sizes[at % len(sizes)]
        stream.feed(answer[at : at + size])
        at += size
    assert stream.heard == [(n, 1_000 + n) for n in range(20)]
    assert stream.plain == sum(map(len, MESSAGES))


def test_an_answer_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="503"):
        MessageStream().feed(b"HTTP/1.1 503 Service Unavailable\r\n\r\nfull")


@pytest.mark.parametrize("name", KINDS)
def test_an_event_is_one_event_and_tells_its_number(name: str) -> None:
    make, media = KINDS[name]
    body = make(7, 123_456_789, 900)
    (event,) = decode(body, find_syntax(media))
    assert len(event.quads) >= 3
    assert MARK.findall(body) == [(b"7", b"123456789")]
    assert abs(len(body) - 900) <= (0 if name == "observation" else 100)


COMPLETE = ClientSample((300, 11), 300, [5, 6, 7], [1.0, 2.0, 3.0], [100, 200, 300])
ONE_LESS = ClientSample((200, 22), 200, [5, 7], [1.0, 9.0], [100, 200])


@pytest.mark.parametrize(
    ("digest", "lost", "unverified"),
    [
        ((300, 11), 0, 0),
        ((200, 22), 1, 0),
        ((200, 99), 1, 0),
        ((150, 99), 2, 0),
        ((0, 0), 3, 0),
        ((300, 99), 0, 1),
    ],
)
def test_lost_follows_from_the_bytes_of_every_client(digest: tuple[int, int], lost: int, unverified: int) -> None:
    received = Received(range(5, 8), [(digest, 10)], [COMPLETE, ONE_LESS])
    assert received.lost == 10 * lost
    assert received.unverified == 10 * unverified
    assert received.delivered == 30 - 10 * lost


def test_where_nobody_is_complete_everything_unknown_is_lost() -> None:
    assert Received(range(5, 8), [((300, 11), 2)], []).lost == 6


def test_a_message_that_came_twice_is_told() -> None:
    twice = ClientSample((400, 1), 400, [5, 6, 6, 7], [1.0] * 4, [100, 200, 300, 400])
    assert Received(range(5, 8), [((400, 1), 1)], [twice]).figures()["repeated"] == 1


@pytest.mark.processes
def test_a_fanout_of_twenty_loses_nothing() -> None:
    said: list[str] = []
    report: dict[str, Any] = run(FanoutOptions(20, 50, 0.5, ListenOptions(0.0), warm=0.1), said.append)
    assert (report["delivered"], report["lost"], report["unverified"], report["repeated"]) == (500, 0, 0, 0)
    assert report["p50_ms"] <= report["p99_ms"] <= report["most_ms"]
    assert report["bytes_per_delivery"] > 500
    assert report["traffic_share"] == pytest.approx(1, abs=0.05)
    assert any("measuring" in text for text in said)


def test_more_clients_than_edges_have_room_for_are_refused_before_anything_starts() -> None:
    with pytest.raises(Unavailable, match="--processes"):
        run(FanoutOptions(40_000, processes=2), lambda text: None)


def test_a_rival_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="apt install"):
        find_nchan(str(tmp_path))


def test_a_process_that_ends_says_why() -> None:
    link = Link(
        "bench.fanout_publisher",
        {"kind": "observation", "size": 500, "path": "/", "address": ["127.0.0.1", 1]},
    )
    try:
        with pytest.raises(Unavailable, match="Connection refused"):
            link.hear()
    finally:
        link.close()
