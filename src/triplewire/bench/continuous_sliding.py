"""`bench continuous --workload sliding`: a window of a minute that slides by a second, in real time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import uvloop

from triplewire.bench import continuous_readings as readings
from triplewire.bench.broker import Broker, broker
from triplewire.bench.continuous_conjunctions import BASE, Codes
from triplewire.bench.continuous_readings import PLATFORMS, STEP, WIDTH
from triplewire.bench.continuous_rivals import against
from triplewire.bench.machine import description, reference_ms
from triplewire.bench.match import Disagreement
from triplewire.bench.report import percentile
from triplewire.client import AsyncClient
from triplewire.config import Settings
from triplewire.model.clock import SystemClock
from triplewire.model.events import parse_payload
from triplewire.storage.log.sqlite import SqliteLog

STREAM = "readings"
INTO = "means"
SECONDS = 90
WARM_UP = 10
"""Seconds after which windows count."""
GRACE = 15.0
"""Seconds that the last reports may take."""
_MICRO = 1_000_000
_PAGE = 20_000

Say = Callable[[str], None]


@dataclass
class Drive:
    """What is published, tick by tick, at the time that it is due; and when reports were heard, in microseconds."""

    client: AsyncClient
    began: float = 0.0
    ended: float = 0.0
    behind: float = 0.0
    """The most seconds that a publication was late."""
    heard: dict[str, int] = field(default_factory=dict)

    async def go(self, seconds: int) -> None:
        self.began = time.time()
        tasks = []
        for tick in range(1, seconds * readings.TICKS):
            due = self.began + tick / readings.TICKS
            await asyncio.sleep(max(0.0, due - time.time()))
            self.behind = max(self.behind, time.time() - due)
            tasks.append(asyncio.create_task(self.client.publish(STREAM, _tick(tick))))
        await asyncio.gather(*tasks)
        self.ended = time.time()

    async def listen(self) -> None:
        async for told in self.client.consume(INTO, "earliest"):
            self.heard.setdefault(told["event"], round(time.time() * _MICRO))


@dataclass(frozen=True)
class Reported:
    """The report of a window: its end, when it was in the log, and of each platform how many values and their mean."""

    event: str
    end: int
    logged: int
    rows: dict[int, tuple[int, float]]


def run(seconds: int, say: Say, rival: str | None = None) -> dict[str, Any]:
    """Everything that is measured, by name; that of a rival, too. Raises Disagreement where a window's report is not
    right."""
    before = reference_ms()
    say("starting the broker")
    with broker() as running:
        report = uvloop.run(_measured(running, seconds, say))
    if rival is not None:
        report[rival] = against(rival, seconds, WARM_UP, say)
    machine = {**description(), "reference_ms": [round(before), round(reference_ms())]}
    return {"machine": machine, **report}


async def _measured(running: Broker, seconds: int, say: Say) -> dict[str, Any]:
    async with AsyncClient(running.settings.url) as client:
        # A window on a stream that nobody ever published to is refused.
        await client.publish(STREAM, _tick(0))
        await client.register(readings.query(f"{running.settings.url}/streams/{STREAM}"), into=INTO)
        drive = Drive(client)
        listening = asyncio.create_task(drive.listen())
        say(f"{readings.TRIPLES_PER_S:,} triples a second for {seconds} s")
        await drive.go(seconds)
        await _settle(drive)
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        say("checking the reports")
        return await asyncio.to_thread(_verdict, running, drive, seconds)


async def _settle(drive: Drive) -> None:
    """Until the last window that is looked at was reported, or patience is at its end."""
    until, heard = time.time() + GRACE, -1
    while time.time() < until and (time.time() < drive.ended + 3 or len(drive.heard) != heard):
        heard = len(drive.heard)
        await asyncio.sleep(1)


def _verdict(running: Broker, drive: Drive, seconds: int) -> dict[str, Any]:
    reports = {each.end: each for each in _reports(running.settings)}
    wanted = [end for end in _ends(drive) if end in reports]
    checked = check([reports[end] for end in wanted], *_received(running.settings))
    heard = [(drive.heard[reports[end].event] - end) / 1_000 for end in wanted if reports[end].event in drive.heard]
    logged = [(reports[end].logged - end) / 1_000 for end in wanted]
    usage = running.pipeline()
    return {
        "workload": "sliding",
        "seconds": seconds,
        "triples_per_s": readings.TRIPLES_PER_S,
        "window": f"{WIDTH} s by {STEP} s",
        "windows": len(wanted),
        "missing": len(_ends(drive)) - len(heard),
        "late_ms": _spread(heard),
        "logged_ms": _spread(logged),
        "behind_ms": round(drive.behind * 1_000),
        "checked": checked,
        "pipeline_memory_mb": round(usage.memory / 1e6),
    }


def check(reports: list[Reported], numbers: Codes, received: Codes) -> dict[str, int]:
    """Every report against the events that the log holds of its window. Raises Disagreement."""
    rows = 0
    for each in reports:
        inside = (received >= each.end - WIDTH * _MICRO) & (received < each.end)
        right = readings.means(numbers[inside])
        told = {platform: (count, round(mean * count * 10)) for platform, (count, mean) in each.rows.items()}
        if told != right:
            wrong = sorted(key for key in told.keys() | right.keys() if told.get(key) != right.get(key))[0]
            raise Disagreement(
                f"the window that ended at {each.end} says of platform {wrong} {told.get(wrong)}, "
                f"and {right.get(wrong)} is right (values, and their sum in tenths)"
            )
        rows += len(right)
    return {"windows": len(reports), "rows": rows}


def _ends(drive: Drive) -> range:
    """Of windows that count: the first ones are there to warm up, and the last one must have ended."""
    step = STEP * _MICRO
    first = round((drive.began + WARM_UP) * _MICRO) // step * step + step
    return range(first, round(drive.ended * _MICRO), step)


def _reports(settings: Settings) -> Iterator[Reported]:
    for row in _entries(settings, INTO):
        told = orjson.loads(row["extensions"] or "{}")
        cargo = parse_payload(row["event"], row["text"])
        if cargo is None or "window-end" not in told:
            raise Disagreement(f"{row['event']} is no report of a window")
        found = orjson.loads(cargo.body)["results"]["bindings"]
        rows = {_platform(each): (int(each["count"]["value"]), float(each["mean"]["value"])) for each in found}
        yield Reported(row["event"], row["time"], row["received"], rows)


def _received(settings: Settings) -> tuple[Codes, Codes]:
    """Of every event of the stream its number, and when it was taken in. What the first tick brought was published
    before the query was registered, and counts for no window."""
    rows = [(int(row["event"].rpartition("/")[2]), row["received"]) for row in _entries(settings, STREAM)]
    found = np.array(rows, np.int64)
    found = found[found[:, 0] >= readings.EVENTS]
    return found[:, 0], found[:, 1]


def _entries(settings: Settings, stream: str) -> Iterator[dict[str, Any]]:
    log, after = SqliteLog(settings.log, SystemClock()), 0
    try:
        head = log.head()
        while (page := log.read(after, head, _PAGE)).num_rows:
            after = page["position"][-1].as_py()
            yield from (row for row in page.to_pylist() if row["stream"] == stream)
    finally:
        log.close()


def _platform(row: dict[str, Any]) -> int:
    number = int(row["platform"]["value"].removeprefix(f"{BASE}platform/"))
    assert 0 <= number < PLATFORMS
    return number


def _tick(tick: int) -> bytes:
    return readings.body(range(tick * readings.EVENTS, (tick + 1) * readings.EVENTS))


def _spread(milliseconds: list[float]) -> dict[str, int]:
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: round(percentile(milliseconds, share)) for name, share in shares.items()}
