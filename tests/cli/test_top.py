"""`top`: rates between two looks, and what a terminal shows of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.http.harness import house, run
from triplewire.cli.common import format_size
from triplewire.cli.top import BrokerWatcher, Overview, RateTracker, format_number, render_overviews
from triplewire.config.status import EdgeStatus
from triplewire.config.traffic import StreamTraffic

HEALTH: dict[str, Any] = {
    "status": "ok",
    "pipeline": "ready",
    "head": "0000000000000010",
    "stored": "000000000000000c",
    "lag": 1234,
    "lag_seconds": 0.25,
    "lanes": {"slow": {"lag": 7}},
    "lake": {"files": 12, "fresh": 3, "bytes": 4_500_000, "work": "compact"},
}
FLOW = StreamTraffic("home", clients=2, messages=100, plain_bytes=10_000, sent_bytes=1_000, waiting=70, linger=0.5)
EDGE = EdgeStatus("1", 11, "ready", at=1_000_000, cpu=1.0, listeners={"streams": 3}, max_listeners=10, streams=(FLOW,))


def later(edge: EdgeStatus, microseconds: int = 2_000_000) -> EdgeStatus:
    """Two seconds in which something happened."""
    (flow,) = edge.streams
    grown = replace(flow, messages=flow.messages + 40, plain_bytes=flow.plain_bytes + 8_000, sent_bytes=1_800)
    return replace(edge, at=edge.at + microseconds, cpu=edge.cpu + 1.5, published=20, streams=(grown,))


def looked(looks: RateTracker, *edges: EdgeStatus) -> Overview:
    return looks.update(HEALTH, [each.document() for each in edges])


def shown(overview: Overview, width: int = 100) -> str:
    console = Console(width=width, record=True, file=None, no_color=True, quiet=False)
    with console.capture() as capture:
        console.print(render_overviews([overview]))
    return capture.get()


def test_rates_are_what_was_added_between_two_tellings() -> None:
    looks = RateTracker("http://x")
    first = looked(looks, EDGE)
    assert (first.edges[0].cpu, first.streams[0].messages_s, looks.settled) == (0.0, 0.0, False)
    found = looked(looks, later(EDGE))
    assert looks.settled
    assert (found.edges[0].cpu, found.edges[0].published_s, found.edges[0].listeners) == (0.75, 10.0, 3)
    (row,) = found.streams
    assert (row.messages_s, row.plain_bytes_s, row.sent_bytes_s, row.share) == (20.0, 4_000.0, 400.0, 0.1)


def test_an_edge_that_told_nothing_new_keeps_its_rates() -> None:
    looks = RateTracker("http://x")
    looked(looks, EDGE)
    found = looked(looks, later(EDGE))
    assert looked(looks, later(EDGE)) == found


def test_an_edge_that_was_replaced_begins_anew() -> None:
    looks = RateTracker("http://x")
    looked(looks, later(EDGE))
    found = looked(looks, replace(EDGE, pid=12, at=9_000_000))
    assert (found.edges[0].cpu, found.streams[0].messages_s) == (0.0, 0.0)


def test_a_stream_is_one_row_over_all_edges() -> None:
    looks, other = RateTracker("http://x"), replace(EDGE, name="2", pid=12)
    looked(looks, EDGE, other)
    (row,) = looked(looks, later(EDGE), later(other)).streams
    assert (row.clients, row.messages_s, row.waiting, row.linger) == (4, 40.0, 70, 0.5)


def test_a_terminal_shows_edges_streams_pipeline_and_lake() -> None:
    looks = RateTracker("http://x")
    looked(looks, EDGE)
    text = shown(looked(looks, later(EDGE)))
    words = text.split()
    for word in (
        "ok",
        "ready",
        "1,234",
        "(0.2",
        "files,",
        "12",
        "4.5",
        "75%",
        "30%",
        "home",
        "10.0%",
        "400",
        "4.0",
        "0.50",
    ):
        assert word in words, (word, text)
    assert max(len(line.rstrip()) for line in text.splitlines()[1:]) <= 100


def test_a_broker_that_does_not_answer_is_said_so() -> None:
    assert "no answer in time" in shown(Overview("http://x", fault="no answer in time"))
    assert "no clients" in shown(Overview("http://x", HEALTH))


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (12_345, "12 kB"), (3.2e6, "3.2 MB")]
)
def test_bytes_are_for_people(value: float, text: str) -> None:
    assert format_size(value) == text


def test_small_rates_are_not_none() -> None:
    assert [format_number(value) for value in (0.0, 0.25, 9.96, 1234.5)] == ["0", "0.2", "10.0", "1,234"]


def test_a_real_edge_is_looked_at() -> None:
    async def scene() -> None:
        async with house() as at, at.listen("/streams/test?linger=0") as ear:
            watch = BrokerWatcher([at.url, "http://127.0.0.1:1"], Console(), json=True)
            while not (await watch.poll())[0].streams:
                pass
            at.append(1, 2)
            assert len(await ear.take(2)) == 2
            at.twin.clock.advance(4)
            found = Overview("")
            while not found.streams or not found.streams[0].messages_s:
                found, silent = await watch.poll()
                at.twin.clock.advance(1)
            assert found.streams[0].stream == "test"
            assert found.edges[0].listeners == found.streams[0].clients == 1
            assert "127.0.0.1:1" in silent.fault

    run(scene())
