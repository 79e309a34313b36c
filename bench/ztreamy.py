"""`bench ztreamy`: the experiments of figures 3 to 6 of the paper on Ztreamy, on this machine, beside its text.

J. Arias Fisteus, N. Fernández García, L. Sánchez Fernández, D. Fuentes-Lorenzo, *Ztreamy: A middleware for publishing
semantic streams on the Web*, Journal of Web Semantics, 2014; section 4. One server was a core of an Intel Core i7 at
2.8 GHz; clients were on four other machines. Its curves are only pictures; the numbers here are those of its text.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from bench.fanout import FanoutOptions, ListenOptions, Server, measure_server, start_servers
from bench.harness import Machine, Report, Say, make_directory
from bench.plots import RED, Panel, draw_sheet, draw_text
from bench.tables import list_rows

TRAFFIC_SHARE = 0.15
"""To which compression reduced the traffic, with a buffer of half a second (section 4.3)."""
BUFFER = 0.5
ITEM_BYTES = 881
"""Bytes of a post, on average."""
PACKED = ListenOptions(BUFFER, "gzip")
"""The paper's best: half a second of buffer, and compression."""
BARE = ListenOptions(0.0)
_ROOM = 13_000
"""Clients of one process, with a little space left."""


STATEMENTS: list[Report] = json.loads(Path(__file__).with_name("ztreamy.json").read_text())
"""Statements of the paper: about which figure, and which system at how many clients and items a second. Median delays
were below `p50_ms`; `cpu_percent` is of one core."""


@dataclass(frozen=True)
class ZtreamyOptions:
    """At most so many clients, and so many seconds for each point."""

    clients: int = 40_000
    seconds: float = 20.0
    rates: tuple[float, ...] = (4, 10, 20, 40, 80, 160, 250)
    buffers: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)

    def limit(self, *counts: int) -> list[int]:
        """Return the counts of clients that are not above the most, or else the most."""
        return [count for count in counts if count <= self.clients] or [self.clients]


QUICK = ZtreamyOptions(2_000, 3.0, (4, 20, 80), (0.0, 0.5))


@dataclass(frozen=True)
class ZtreamyPoint:
    """A measurement of a series of a figure."""

    figure: str
    series: str
    clients: int
    rate: float
    listen: ListenOptions
    servers: int = 1
    processes: int = 1

    def make_options(self, seconds: float) -> FanoutOptions:
        """Posts have 881 bytes and come as a Poisson process has them, as in the paper."""
        size = {"size": ITEM_BYTES, "kind": "post"}
        return FanoutOptions(self.clients, self.rate, seconds, self.listen, self.processes, **size, uneven=True)  # type: ignore[arg-type]

    def start(self) -> AbstractContextManager[Server]:
        if self.servers == 1:
            return start_servers(self.processes, self.listen)
        return _start_repeaters(self.servers - 1, self.listen)


def make_points(options: ZtreamyOptions) -> Iterator[ZtreamyPoint]:
    """Yield every measurement, in the order of the figures."""
    for clients in options.limit(500, 1_000, 2_000, 5_000, 8_000, 12_000, 40_000):
        processes = math.ceil(clients / _ROOM)
        yield ZtreamyPoint("3a 3c 4a", "0.5 s, gzip", clients, 4, PACKED, processes=processes)
        if processes == 1:
            yield ZtreamyPoint("3a 3c 4a", "plain", clients, 4, BARE)
    for rate in options.rates:
        yield ZtreamyPoint("3b 3d 4b", "0.5 s, gzip", min(500, options.clients), rate, PACKED)
        yield ZtreamyPoint("3b 3d 4b", "plain", min(500, options.clients), rate, BARE)
    for clients in options.limit(3_000, 6_000, 12_000):
        yield ZtreamyPoint("5", "1 server", clients, 4, PACKED)
        yield ZtreamyPoint("5", "3 servers", clients, 4, PACKED, servers=3)
    for buffer in options.buffers:
        yield ZtreamyPoint("6", f"{buffer:g} s, gzip", min(8_000, options.clients), 20, ListenOptions(buffer, "gzip"))


@contextmanager
def _start_repeaters(repeaters: int, listen: ListenOptions) -> Iterator[Server]:
    """Start one master and repeaters, each an edge with a log of its own. Clients are spread evenly over all of them;
    the time of the relays counts as that of the servers."""
    with ExitStack() as closing:
        server = closing.enter_context(start_servers(1, listen, logs=1 + repeaters))
        directory = closing.enter_context(make_directory())
        master, *others = (f"http://{host}:{port}" for host, port in (target.address for target in server.targets))
        files = [directory / f"{number}.toml" for number in range(repeaters)]
        started = [_start_relay(file, master, url) for file, url in zip(files, others, strict=True)]
        yield Server(server.targets, [*server.pids, *(closing.enter_context(each) for each in started)])


@contextmanager
def _start_relay(file: Path, above: str, below: str) -> Iterator[int]:
    """Mirror the stream of an edge at another; yield the process."""
    file.write_text(f'to = "{below}"\n\n[[relay]]\nfrom = "{above}/streams/bench"\n')
    command = [sys.executable, "-m", "triplewire", "relay", str(file)]
    with file.with_suffix(".log").open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(20.0)


def run(options: ZtreamyOptions, say: Say) -> Report:
    """Measure each point with servers of its own, one after the other."""
    machine, found, points = Machine(), [], [*make_points(options)]
    for number, point in enumerate(points, 1):
        what = f"figure {point.figure}, {point.series}, {point.clients:,} clients, {point.rate:g}/s"
        say(f"{number} of {len(points)}: {what}")
        found.append(_measure(point, options.seconds, say))
    paper = {"traffic_share": TRAFFIC_SHARE, "said": STATEMENTS}
    return {"seconds": options.seconds, "points": found, "paper": paper, "machine": machine.describe()}


def _measure(point: ZtreamyPoint, seconds: float, say: Say) -> Report:
    with point.start() as server:
        found = measure_server(point.make_options(seconds), server, say)
    figures = found.figures()
    own = ("figure", "series", "clients", "rate", "servers", "processes")
    costs = ("server_cpu_us_per_delivery", "generator_cpu_us_per_delivery", "traffic_share", "kb_per_client")
    return {
        **{name: getattr(point, name) for name in own},
        "buffer": point.listen.buffer,
        "cpu_percent": round(100 * found.cpu / found.seconds, 1),
        "lost_percent": round(100 * figures["lost"] / max(1, figures["lost"] + figures["delivered"]), 2),
        **{name: figures[name] for name in ("p50_ms", "p99_ms", "lost", "unverified", *costs)},
    }


def pair_statements(report: Report) -> Iterator[tuple[Report, Report | None]]:
    """Yield each statement of the paper with our point that is nearest to it in clients and rate: at least as many of
    both, if there is one."""
    for said in report["paper"]["said"]:
        servers = 3 if "3 servers" in said["system"] else 1
        able = [
            each
            for each in report["points"]
            if each["servers"] == servers and each["clients"] >= said["clients"] and each["rate"] >= said["rate"]
        ]
        packed = [each for each in able if each["buffer"]] or able
        nearest = lambda each: (each["clients"], each["rate"], abs(each["buffer"] - BUFFER))  # noqa: E731
        yield said, min(packed, key=nearest, default=None)


def make_tables(report: Report) -> list[RenderableType]:
    own = {"figure": "figure", "series": "series", "clients": "clients", "rate": "items/s", "cpu_percent": "CPU, %"}
    own |= {"p50_ms": "p50, ms", "p99_ms": "p99, ms", "lost_percent": "lost, %", "traffic_share": "traffic"}
    own |= {"server_cpu_us_per_delivery": "µs a delivery"}
    theirs = {"figure": "figure", "system": "system", "clients": "clients", "rate": "items/s"}
    theirs |= {"says": "the paper", "here": "here"}
    pairs = ({**said, "here": _write_point(ours)} for said, ours in pair_statements(report))
    return [
        list_rows(f"the experiments of Ztreamy, {report['seconds']:g} s each", own, report["points"], 2),
        list_rows("statements of the paper", theirs, pairs, 6),
    ]


def _write_point(point: Report | None) -> str | None:
    if point is None:
        return None
    cost = f"{point['cpu_percent']:g} % of CPU use, {point['lost_percent']:g} % lost"
    return f"{point['p50_ms']:,g} ms median delay, {cost} ({point['clients']:,} clients, {point['rate']:g}/s)"


def draw(report: Mapping[str, Any]) -> str:
    """Draw a row for each of the figures, CPU on the left and delays on the right; crosses are the paper's."""
    panels = [*_make_panels(report)]
    parts = [
        draw_text(10, 20, "The experiments of the paper on Ztreamy, here", size=14),
        draw_text(10, 38, "× the text on Ztreamy, on a machine of 2012 with clients on four others", colour=RED),
    ]
    for number, panel in enumerate(panels):
        parts += panel.draw(64 + number % 2 * 409, 74 + number // 2 * 204, 300, 130)
    return draw_sheet(818, 64 + len(panels) // 2 * 204, parts)


def _make_panels(report: Mapping[str, Any]) -> Iterator[Panel]:
    rows = (
        ("3a 3c 4a", "clients, 4 items/s", "clients", ("rate", 4)),
        ("3b 3d 4b", "items/s", "rate", ("clients", 500)),
        ("5", "clients, 4 items/s", "clients", None),
        ("6", "s of buffer window, 20 items/s", "buffer", None),
    )
    ours = [each for each in report["paper"]["said"] if each["system"] == "Ztreamy"]
    for figure, across, x, about in rows:
        said = [each for each in ours if about and each[about[0]] == about[1]]
        for measure, title in (("cpu_percent", "CPU, % of a core"), ("p50_ms", "median delay, ms")):
            marks = [(each[x], each[measure]) for each in said if each[measure] is not None]
            lines: dict[str, list[tuple[float, float]]] = {}
            for each in report["points"]:
                if each["figure"] == figure:
                    # Each window of figure 6 is a series of its own in the report, and a point of one line here.
                    series = "gzip" if x == "buffer" else each["series"]
                    lines.setdefault(series, []).append((each[x], each[measure]))
            yield Panel(f"figure {figure}: {title}", across, lines, marks)
