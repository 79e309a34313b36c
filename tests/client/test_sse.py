"""Event streams, in whatever pieces they come."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from triplewire.client.feeds import SseMessage, SseParser

SAMPLE = (
    b": hello\n\n"
    b"id: 0001\n\n"
    b"event: event\ndata: {}\n\n"
    b"id: 0002\nevent: event\ndata: a\ndata:b\n\n"
    b":\n\n"
    b"data: last\n\n"
    b"data: unfinished"
)
EXPECTED = [
    SseMessage("event", b"{}", "0001"),
    SseMessage("event", b"a\nb", "0002"),
    SseMessage("message", b"last", "0002"),
]


@given(st.lists(st.integers(0, len(SAMPLE))), st.booleans())
def test_messages_are_whole_wherever_the_bytes_are_cut(cuts: list[int], carriage_returns: bool) -> None:
    text = SAMPLE.replace(b"\n", b"\r\n") if carriage_returns else SAMPLE
    edges = [0, *sorted(cuts), len(text)]
    parser = SseParser()
    pieces = [text[start:stop] for start, stop in pairwise(edges)]
    assert [message for piece in pieces for message in parser.feed(piece)] == EXPECTED


def test_a_restart_drops_the_half_message_and_keeps_the_id() -> None:
    parser = SseParser()
    assert list(parser.feed(b"id: 7\n\ndata: ha")) == []
    parser.restart()
    assert parser.last_id == "7"
    assert list(parser.feed(b"data: x\n\n")) == [SseMessage("message", b"x", "7")]
