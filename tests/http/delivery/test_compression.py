"""One context for all: whoever joins in the middle reads every byte."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.config.metrics import Metrics
from triplewire.http.delivery.channels import CachedMessages, Channel, Listener
from triplewire.http.delivery.connections import MemoryConnection
from triplewire.http.delivery.options import GZIP, IDENTITY, ZSTD, ContentCoding, DeliveryOptions, LoopLoad
from triplewire.http.formats.messages import EDGE_STOPS, Frames
from triplewire.http.formats.sse import SSE

ENCODINGS = pytest.mark.parametrize("encoding", [IDENTITY, GZIP, ZSTD], ids=["plain", "gzip", "zstd"])


def unpacked(encoding: ContentCoding, data: bytes) -> bytes:
    """What a reader makes of all bytes of a connection that was not ended."""
    if encoding is IDENTITY:
        return data
    if encoding is GZIP:
        return zlib.decompressobj(wbits=31).decompress(data)
    found, rest = b"", data
    while rest:
        reader = zstandard.ZstdDecompressor().decompressobj()
        found += reader.decompress(rest)
        rest = reader.unused_data
    return found


def telling(*positions: int) -> CachedMessages:
    return CachedMessages(
        lambda format: Frames(positions, [b"event number %d of many alike\n" % each for each in positions])
    )


class Stage:
    """A channel, its clock, and everybody who ever came, with what they should have read."""

    def __init__(self, encoding: ContentCoding) -> None:
        self.now = 0.0
        self.position = 0
        self.channel = Channel(DeliveryOptions(encoding=encoding), LoopLoad(), lambda: self.now)
        self.heard: list[tuple[MemoryConnection, list[bytes]]] = []
        self.here: list[tuple[Listener, list[bytes]]] = []

    def join(self) -> None:
        wire, said = MemoryConnection(), [b"hello"]
        listener = Listener(wire, self.position, Metrics(), options=self.channel.options, on_leave=self.channel.leave)
        listener.greet(b"hello")
        self.channel.enter(listener)
        self.heard.append((wire, said))
        self.here.append((listener, said))

    def leave(self) -> None:
        if self.here:
            listener, said = self.here.pop(0)
            listener.finish(EDGE_STOPS)
            said.append(EDGE_STOPS.render(SSE, listener.cursor))

    def push(self) -> None:
        self.position += 1
        self.channel.push(telling(self.position))
        for _, said in self.here:
            said += telling(self.position).frames(SSE).parts

    def comment(self) -> None:
        self.channel.write(b": still here\n")
        for _, said in self.here:
            said.append(b": still here\n")

    def later(self) -> None:
        self.now += 6.0


MOVES: dict[str, Callable[[Stage], None]] = {
    "join": Stage.join,
    "leave": Stage.leave,
    "push": Stage.push,
    "comment": Stage.comment,
    "later": Stage.later,
}


@ENCODINGS
@settings(max_examples=40, deadline=None)
@given(moves=st.lists(st.sampled_from([*MOVES, "join", "push", "push", "join"]), max_size=60))
def test_everybody_reads_what_was_said_since_they_came(encoding: ContentCoding, moves: list[str]) -> None:
    stage = Stage(encoding)
    for move in moves:
        MOVES[move](stage)
    for wire, said in stage.heard:
        assert unpacked(encoding, bytes(wire.data)) == b"".join(said)


@pytest.mark.parametrize("encoding", [GZIP, ZSTD], ids=["gzip", "zstd"])
def test_members_share_bytes_and_newcomers_join_them_after_a_while(encoding: ContentCoding) -> None:
    stage = Stage(encoding)
    for _ in range(4):
        stage.join()
    stage.push()
    stage.join()
    first, late = stage.heard[0][0], stage.heard[-1][0]
    for _ in range(20):
        before = len(first.data), len(late.data)
        stage.push()
    alone = len(late.data) - before[1]
    assert len(first.data) - before[0] < alone / 2, "what was said before is not said again"
    stage.later()
    stage.push()
    before = len(first.data), len(late.data)
    stage.push()
    assert first.data[before[0] :] == late.data[before[1] :], "the newcomer is a member"


def test_few_listeners_need_no_context() -> None:
    stage = Stage(GZIP)
    stage.join()
    stage.push()
    assert stage.channel.sent_bytes > stage.channel.plain_bytes / 2
    stage.leave()
    assert len(stage.channel) == 0
