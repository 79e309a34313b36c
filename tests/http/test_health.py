"""Health tells the truth, and so do metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.http.harness import House, house, run
from triplewire.config.status import HEARTBEAT_STALE_SECONDS, Heartbeat
from triplewire.http.health import LAGGING_SECONDS
from triplewire.model import MATCHES, format_position
from triplewire.model.clock import ManualClock
from triplewire.storage.outbox import OutboxLane

NOW = ManualClock().now()
READY = Heartbeat("ready", NOW, 1)


async def health(at: House) -> tuple[int, dict[str, Any]]:
    async with at.session.get(at.url + "/health") as response:
        return response.status, await response.json()


@pytest.mark.parametrize(
    ("beat", "status", "pipeline", "code"),
    [
        (READY, "ok", "ready", 200),
        (Heartbeat("starting", NOW, 1), "starting", "starting", 503),
        (Heartbeat("ready", NOW - int(HEARTBEAT_STALE_SECONDS * 1_000_000), 1), "down", "stale", 503),
        (Heartbeat("failed", NOW, 1), "down", "failed", 503),
        (Heartbeat(), "down", "unknown", 503),
    ],
)
def test_the_heartbeat_decides_first(beat: Heartbeat, status: str, pipeline: str, code: int) -> None:
    async def scene() -> None:
        async with house(heartbeat=lambda: beat) as at:
            found = await health(at)
            assert (found[0], found[1]["status"], found[1]["pipeline"]) == (code, status, pipeline)

    run(scene())


def test_lag_is_counted_and_aged_by_the_oldest_unmatched_event() -> None:
    async def scene() -> None:
        async with house(heartbeat=lambda: Heartbeat("ready", NOW + 7_000_000, 1)) as at:
            at.append(1)
            at.match([])
            at.append(2, 3)
            at.twin.clock.advance(LAGGING_SECONDS + 2)
            at.append(4)
            code, found = await health(at)
            assert (code, found["status"], found["lag"]) == (200, "lagging", 3)
            assert found["lag_seconds"] == LAGGING_SECONDS + 2
            assert (found["head"], found["matched"], found["stored"]) == (format_position(4), format_position(1), None)
            at.match([])
            assert (await health(at))[1]["status"] == "ok"

    run(scene())


def test_registry_changes_alone_are_no_lag() -> None:
    async def scene() -> None:
        async with house(heartbeat=lambda: READY, change=lambda parts: replace(parts, stored=lambda: 0)) as at:
            at.subscribe()
            found = (await health(at))[1]
            assert (found["lag"], found["lag_seconds"], found["stored"]) == (0, 0.0, format_position(0))

    run(scene())


def test_listeners_are_counted() -> None:
    async def scene() -> None:
        async with house() as at:
            at.subscribe()
            async with at.listen("/streams/test") as one, at.listen("/subscriptions/s1/notifications") as two:
                await one.position()
                await two.position()
                assert (await health(at))[1]["listeners"] == {"streams": 1, "subscriptions": 1, "queries": 0}
                async with at.session.get(at.url + "/metrics") as response:
                    text = await response.text()
            assert 'triplewire_listeners{of="streams"} 1.0' in text
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")

    run(scene())


def test_the_slow_lane_is_told_apart_and_does_not_make_the_broker_lag() -> None:

    async def scene() -> None:
        async with house(heartbeat=lambda: READY) as at:
            (position,) = at.append(1)
            at.match([])
            assert (await health(at))[1]["lanes"] == {}
            at.outbox.write(0, position, MATCHES.empty_table(), OutboxLane.SLOW)
            at.append(2, 3)
            at.twin.clock.advance(1)
            at.match([])
            _, found = await health(at)
            assert found["lanes"] == {"slow": {"matched": format_position(position), "lag": 2, "lag_seconds": 1.0}}
            assert (found["status"], found["lag"]) == ("ok", 0)
            async with at.session.get(at.url + "/metrics") as response:
                assert 'triplewire_lane_lag_positions{lane="slow"} 2.0' in await response.text()

    run(scene())


def test_continuous_queries_are_told_of_by_the_pipeline() -> None:
    """How much is kept for them, how evenly the work is spread, and how far behind they are; nothing where there are
    none."""
    told = {"queries": 3, "state_rows": 70, "state_bytes": 900, "loads": [4, 0], "addresses": 1}
    beats = [READY, replace(READY, detail={"continuous": told})]

    async def scene() -> None:
        async with house(heartbeat=lambda: beats[0]) as at:
            (position,) = at.append(1)
            at.outbox.write(0, position, MATCHES.empty_table(), OutboxLane.CONTINUOUS)
            at.append(2)
            found = (await health(at))[1]
            assert (found["queries"], found["lanes"]) == ({}, {})
            beats.pop(0)
            found = (await health(at))[1]
            figures = {"queries": 3, "state_rows": 70, "state_bytes": 900}
            assert found["queries"] == {**figures, "skew": 1.0, "busy": 0.5}
            assert found["lanes"]["continuous"]["lag"] == 1
            async with at.session.get(at.url + "/metrics") as response:
                text = await response.text()
            assert "triplewire_query_state_rows 70.0" in text
            assert "triplewire_query_skew 1.0" in text

    run(scene())


def test_limits_that_were_reached_are_counted() -> None:
    beat = replace(READY, detail={"limits": {"work": 3}})

    async def scene() -> None:
        async with house(heartbeat=lambda: beat) as at, at.session.get(at.url + "/metrics") as response:
            text = await response.text()
        assert 'triplewire_limits_reached{of="work"} 3.0' in text
        assert 'triplewire_limits_reached{of="solutions"} 0.0' in text

    run(scene())
