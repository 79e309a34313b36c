"""`bench continuous --workload sliding`: a window of a minute that slides by a second, in real time.

The stream has observations, and where sensors hang, so that a window joins three triples. Everything follows from the
number of an event. In a tick come 45 observations of two triples and 10 statements of one: 2,000 triples a second.
Every sensor says twice in a minute where it hangs, and a window is a graph: that counts once.

The other engine is rsp-js: a library and no broker, with no network, no disk, and one query. It goes by the times of
events, so that a window closes with the first event after its end.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Any, TypeVar

import numpy as np
import orjson
import uvloop

from bench.continuous_workloads import Codes
from bench.harness import BASE, SOSA, Disagreement, Machine, Report, Say, measure_tree, summarize_delays
from bench.processes import Broker, start_broker
from triplewire.client import AsyncClient
from triplewire.config import Settings
from triplewire.model.clock import SystemClock
from triplewire.model.errors import TriplewireError, Unavailable
from triplewire.model.events import parse_payload
from triplewire.model.terms import XSD
from triplewire.storage.log.sqlite import SqliteLog

TICKS = 20
"""Ticks of a second."""
OBSERVATIONS, STATEMENTS = 45, 10
EVENTS = OBSERVATIONS + STATEMENTS
TRIPLES_PER_S = TICKS * (2 * OBSERVATIONS + STATEMENTS)
SENSORS, PLATFORMS = 6_000, 100
WIDTH, STEP = 60, 1
"""Seconds of a window."""
STREAM, INTO = "readings", "means"
WARM_UP = 10
"""Seconds after which windows count."""
GRACE, RIVAL_GRACE = 15.0, 20.0
"""Seconds that the last reports may take."""
VERSIONS = {"rsp-js": "1.3.5"}
_MICRO = 1_000_000
_MEMORY_MB = 8_192
"""Memory that rsp-js may take; its default is less than half of it."""
_SELECT = "SELECT ?platform (AVG(?value) AS ?mean) (COUNT(?value) AS ?count)"
_JOIN = "?o sosa:madeBySensor ?sensor . ?o sosa:hasSimpleResult ?value . ?sensor sosa:isHostedBy ?platform ."

Number = TypeVar("Number", int, Codes)


def write_query(stream: str) -> str:
    """Return the question, in RSP-QL."""
    return (
        f"PREFIX sosa: <{SOSA}> REGISTER RSTREAM <means> AS {_SELECT} "
        f"FROM NAMED WINDOW <{BASE}w> ON <{stream}> [RANGE PT{WIDTH}S STEP PT{STEP}S] "
        f"WHERE {{ WINDOW <{BASE}w> {{ {_JOIN} }} }} GROUP BY ?platform"
    )


def write_rival_query() -> str:
    """Return the same for engines that read it line by line, with milliseconds."""
    return (
        f"PREFIX sosa: <{SOSA}>\nPREFIX b: <{BASE}>\nREGISTER RStream <{BASE}means> AS\n{_SELECT}\n"
        f"FROM NAMED WINDOW b:w ON STREAM b:s [RANGE {WIDTH * 1_000} STEP {STEP * 1_000}]\n"
        f"WHERE {{\nWINDOW b:w {{ {_JOIN} }}\n}} GROUP BY ?platform"
    )


def write_triples(number: int) -> str:
    """Return the triples of an event, as N-Triples."""
    tick, place = divmod(number, EVENTS)
    if place >= OBSERVATIONS:
        sensor = _announced_by(tick, place)
        return f"<{BASE}sensor/{sensor}> <{SOSA}isHostedBy> <{BASE}platform/{sensor % PLATFORMS}> ."
    tenths, named = _tenths_of(number), f"<{BASE}o/{number}>"
    made = f"{named} <{SOSA}madeBySensor> <{BASE}sensor/{_sensor_of(number)}> ."
    return f'{made} {named} <{SOSA}hasSimpleResult> "{tenths // 10}.{tenths % 10}"^^<{XSD}decimal> .'


def write_body(numbers: range) -> bytes:
    """Return events as N-Quads."""
    texts = ((write_triples(number).removesuffix(" .").split(" . "), number) for number in numbers)
    return "".join(f"{each} <{BASE}e/{number}> .\n" for parts, number in texts for each in parts).encode()


def _write_tick(tick: int) -> bytes:
    return write_body(range(tick * EVENTS, (tick + 1) * EVENTS))


def expect_means(numbers: Codes) -> Mapping[int, tuple[int, int]]:
    """Return the answer of a window that holds these events: of each platform how many values, and their sum in
    tenths."""
    ticks, places = np.divmod(numbers, EVENTS)
    announces = places >= OBSERVATIONS
    hangs = np.zeros(SENSORS, bool)
    hangs[_announced_by(ticks[announces], places[announces])] = True
    seen = numbers[~announces]
    seen = seen[hangs[_sensor_of(seen)]]
    platforms = _sensor_of(seen) % PLATFORMS
    counts = np.bincount(platforms, minlength=PLATFORMS).tolist()
    sums = np.bincount(platforms, _tenths_of(seen), minlength=PLATFORMS).tolist()
    return {each: (counts[each], round(sums[each])) for each in range(PLATFORMS) if counts[each]}


def _sensor_of(number: Number) -> Number:
    return number * 7_919 % SENSORS


def _tenths_of(number: Number) -> Number:
    return number * 2_654_435_761 // 7 % 1_000


def _announced_by(tick: Number, place: Number) -> Number:
    return (tick * STATEMENTS + place - OBSERVATIONS) % SENSORS


@dataclass
class TickPublisher:
    """Publishes tick by tick at the time that it is due, and notes when reports arrive, in microseconds."""

    client: AsyncClient
    began: float = 0.0
    ended: float = 0.0
    behind: float = 0.0
    """The most seconds that a publication was late."""
    heard: dict[str, int] = field(default_factory=dict)

    async def publish(self, seconds: int) -> None:
        self.began, tasks = time.time(), []
        for tick in range(1, seconds * TICKS):
            due = self.began + tick / TICKS
            await asyncio.sleep(max(0.0, due - time.time()))
            self.behind = max(self.behind, time.time() - due)
            tasks.append(asyncio.create_task(self.client.publish(STREAM, _write_tick(tick))))
        await asyncio.gather(*tasks)
        self.ended = time.time()

    async def listen(self) -> None:
        async for message in self.client.consume(INTO, "earliest"):
            self.heard.setdefault(message["event"], round(time.time() * _MICRO))

    async def settle(self) -> None:
        """Wait until the last window that counts was reported, or patience ends."""
        until, heard = time.time() + GRACE, -1
        while time.time() < until and (time.time() < self.ended + 3 or len(self.heard) != heard):
            heard = len(self.heard)
            await asyncio.sleep(1)

    @property
    def ends(self) -> range:
        """Ends of windows that count: the first ones warm up, and the last one must have ended."""
        step = STEP * _MICRO
        first = round((self.began + WARM_UP) * _MICRO) // step * step + step
        return range(first, round(self.ended * _MICRO), step)


@dataclass(frozen=True)
class WindowReport:
    """The report of a window: its end, when it was in the log, and of each platform how many values and their mean."""

    event: str
    end: int
    logged: int
    rows: dict[int, tuple[int, float]]


def run(seconds: int, say: Say, rival: str | None = None) -> Report:
    """Raises Disagreement where the report of a window is not right."""
    machine = Machine()
    say("starting the broker")
    with start_broker() as broker:
        report = uvloop.run(_measure(broker, seconds, say))
    if rival is not None:
        report[rival] = measure_rival(rival, seconds, WARM_UP, say)
    return {"machine": machine.describe(), **report}


async def _measure(broker: Broker, seconds: int, say: Say) -> Report:
    async with AsyncClient(broker.settings.url) as client:
        # A window on a stream without any event is refused.
        await client.publish(STREAM, _write_tick(0))
        await client.register(write_query(f"{broker.settings.url}/streams/{STREAM}"), into=INTO)
        publisher = TickPublisher(client)
        listening = asyncio.create_task(publisher.listen())
        say(f"{TRIPLES_PER_S:,} triples a second for {seconds} s")
        await publisher.publish(seconds)
        await publisher.settle()
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        say("checking the reports")
        return await asyncio.to_thread(_verify, broker, publisher, seconds)


def _verify(broker: Broker, publisher: TickPublisher, seconds: int) -> Report:
    by_end = {each.end: each for each in _read_reports(broker.settings)}
    reports = [by_end[end] for end in publisher.ends if end in by_end]
    checked = check_reports(reports, *_read_received(broker.settings))
    heard = [(publisher.heard[each.event] - each.end) / 1_000 for each in reports if each.event in publisher.heard]
    return {
        "workload": "sliding",
        "seconds": seconds,
        "triples_per_s": TRIPLES_PER_S,
        "window": f"{WIDTH} s by {STEP} s",
        "windows": len(reports),
        "missing": len(publisher.ends) - len(heard),
        "late_ms": summarize_delays(heard),
        "logged_ms": summarize_delays([(each.logged - each.end) / 1_000 for each in reports]),
        "behind_ms": round(publisher.behind * 1_000),
        "checked": checked,
        "pipeline_memory_mb": round(broker.measure_pipeline().memory / 1e6),
    }


def check_reports(reports: list[WindowReport], numbers: Codes, received: Codes) -> dict[str, int]:
    """Compare every report with the events that the log holds of its window. Raises Disagreement."""
    rows = 0
    for each in reports:
        inside = (received >= each.end - WIDTH * _MICRO) & (received < each.end)
        right = expect_means(numbers[inside])
        reported = {platform: (count, round(mean * count * 10)) for platform, (count, mean) in each.rows.items()}
        if reported != right:
            wrong = min(key for key in reported.keys() | right.keys() if reported.get(key) != right.get(key))
            raise Disagreement(
                f"the window that ended at {each.end} says of platform {wrong} {reported.get(wrong)}, "
                f"and {right.get(wrong)} is right (values, and their sum in tenths)"
            )
        rows += len(right)
    return {"windows": len(reports), "rows": rows}


def _read_reports(settings: Settings) -> Iterator[WindowReport]:
    for row in _read_log(settings, INTO):
        cargo = parse_payload(row["event"], row["text"])
        if cargo is None or "window-end" not in orjson.loads(row["extensions"] or "{}"):
            raise Disagreement(f"{row['event']} is no report of a window")
        rows = {}
        for each in orjson.loads(cargo.body)["results"]["bindings"]:
            platform = int(each["platform"]["value"].removeprefix(f"{BASE}platform/"))
            rows[platform] = int(each["count"]["value"]), float(each["mean"]["value"])
        yield WindowReport(row["event"], row["time"], row["received"], rows)


def _read_received(settings: Settings) -> tuple[Codes, Codes]:
    """Return of every event of the stream its number, and when it was received. The first tick was published before the
    query was registered, and counts for no window."""
    rows = [(int(row["event"].rpartition("/")[2]), row["received"]) for row in _read_log(settings, STREAM)]
    found = np.array(rows, np.int64)
    found = found[found[:, 0] >= EVENTS]
    return found[:, 0], found[:, 1]


def _read_log(settings: Settings, stream: str) -> Iterator[dict[str, Any]]:
    with closing(SqliteLog(settings.log, SystemClock())) as log:
        head, after = log.head(), 0
        while (page := log.read(after, head, 20_000)).num_rows:
            after = page["position"][-1].as_py()
            yield from (row for row in page.to_pylist() if row["stream"] == stream)


class RivalEnded(TriplewireError):
    """The other engine ended before its time."""


def measure_rival(name: str, seconds: int, warm_up: int, say: Say) -> Report:
    """Measure another engine over the same stream; `failed` tells why it did not come to the end. Raises Unavailable
    where it cannot be built."""
    say(f"building {name}")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = Path(cache) / "triplewire" / "rivals" / f"{name}-{VERSIONS[name]}"
    home.mkdir(parents=True, exist_ok=True)
    command = COMMANDS[name](home)
    try:
        return {"version": VERSIONS[name], **_measure_rival(name, command, seconds, warm_up, say)}
    except RivalEnded as ended:
        return {"version": VERSIONS[name], "failed": str(ended)}


def _measure_rival(name: str, command: list[str], seconds: int, warm_up: int, say: Say) -> Report:
    with _start_rival(command) as (process, orders, answers):
        with suppress(BrokenPipeError):
            orders.write(json.dumps({"query": write_rival_query()}).encode() + b"\n")
            orders.flush()
        if not answers.readline():
            raise RivalEnded("it ended before it was ready")
        answered: dict[int, int] = {}
        listening = Thread(target=_note_answers, args=(answers, answered), daemon=True)
        listening.start()
        say(f"{TRIPLES_PER_S:,} triples a second for {seconds} s to {name}")
        behind = _drive_rival(orders, seconds)
        memory = measure_tree([process.pid]).memory
        orders.close()
        listening.join(RIVAL_GRACE)
    ends = range((warm_up + STEP) * 1_000, seconds * 1_000, STEP * 1_000)
    late = [float(answered[end] - end) for end in ends if end in answered]
    return {
        "windows": len(late),
        "missing": len(ends) - len(late),
        "late_ms": summarize_delays(late),
        "behind_ms": round(behind * 1_000),
        "memory_mb": round(memory / 1e6),
    }


def _build_rsp_js(home: Path) -> list[str]:
    """Install rsp-js once, and return the command that runs it."""
    npm, node = (shutil.which(tool) for tool in ("npm", "node"))
    if npm is None or node is None:
        raise Unavailable("there is no npm or no node on the path")
    if not (home / "node_modules" / "rsp-js").exists():
        command = [npm, "install", "--no-audit", "--no-fund", f"rsp-js@{VERSIONS['rsp-js']}"]
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, timeout=600.0)
        if done.returncode:
            raise Unavailable(f"{' '.join(command)} failed: {done.stderr[-1_000:]}")
    shutil.copy(Path(__file__).with_name("continuous_rsp.js"), home / "rival.js")
    return [node, f"--max-old-space-size={_MEMORY_MB}", str(home / "rival.js")]


COMMANDS: dict[str, Callable[[Path], list[str]]] = {"rsp-js": _build_rsp_js}


@contextmanager
def _start_rival(command: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    # Data that it did not take cannot be given to it when it has ended.
    with suppress(BrokenPipeError), process:
        try:
            yield process, process.stdin, process.stdout
        finally:
            process.kill()


def _drive_rival(orders: IO[bytes], seconds: int) -> float:
    """Write the same events at the same pace. Return the most seconds that it was behind: it takes no more than it
    can."""
    began, behind = time.monotonic(), 0.0
    for tick in range(seconds * TICKS):
        due = began + tick / TICKS
        time.sleep(max(0.0, due - time.monotonic()))
        at, numbers = tick * 1_000 // TICKS, range(tick * EVENTS, (tick + 1) * EVENTS)
        try:
            orders.write("".join(f"{at}\t{write_triples(number)}\n" for number in numbers).encode())
            orders.flush()
        except BrokenPipeError:
            raise RivalEnded(f"it ended {at / 1_000:.1f} s after the beginning of the stream") from None
        behind = max(behind, time.monotonic() - due)
    return behind


def _note_answers(answers: IO[bytes], answered: dict[int, int]) -> None:
    """Note when the last row of each window came, by the end of the window; milliseconds from the first event."""
    step = STEP * 1_000
    for line in answers:
        reported = json.loads(line)
        answered[reported["newest"] // step * step + step] = reported["at"]
