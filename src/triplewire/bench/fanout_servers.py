"""The servers of `bench fanout`: edges as they are, and one that does nothing but write."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import psutil

from triplewire.bench.broker import free_port
from triplewire.bench.fanout_links import Link, more_files
from triplewire.bench.fanout_load import Target
from triplewire.bench.machine import usage
from triplewire.config import Settings
from triplewire.model.clock import SystemClock
from triplewire.model.errors import Unavailable
from triplewire.service.processes import ChildProcess, stop_all

HOST = "127.0.0.1"

_START_SECONDS = 90.0


@dataclass(frozen=True)
class Server:
    """What clients connect to, evenly spread, and the processes whose time is counted. Events go to the first."""

    targets: Sequence[Target]
    pids: Sequence[int]


@dataclass(frozen=True)
class Manner:
    """How clients listen: the buffer window they ask for, and the compression that they take."""

    buffer: float | None = None
    encoding: str = "identity"

    def request(self, path: str, port: int) -> str:
        asked = "" if self.buffer is None else "?" + urlencode({"buffer": f"{self.buffer:g}"})
        return request(path + asked, port, self.encoding)


USUAL = Manner()


def request(path: str, port: int, encoding: str = "identity") -> str:
    return (
        f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nAccept: text/event-stream\r\n"
        f"Accept-Encoding: {encoding}\r\n\r\n"
    )


@contextmanager
def edges(processes: int, manner: Manner, logs: int = 1) -> Iterator[Server]:
    """So many edges on one port and one log, without a pipeline: it has no part in streams. With several logs, so many
    for each, on a port of its own."""
    more_files()
    with tempfile.TemporaryDirectory(prefix="triplewire-bench-") as directory:
        homes = [Settings(data=Path(directory) / str(log), host=HOST, port=free_port()) for log in range(logs)]
        children = [ChildProcess("edge", home, SystemClock()) for home in homes for _ in range(processes)]
        try:
            for child in children:
                child.settings.data.mkdir(exist_ok=True)
                child.start()
            for child in children:
                wait_listening(child)
            yield Server([_target(home.port, manner) for home in homes], [child.pid or 0 for child in children])
        finally:
            stop_all(children)


def _target(port: int, manner: Manner) -> Target:
    path = "/streams/bench"
    return Target((HOST, port), manner.request(path, port), path)


class Bares:
    """Processes that accept connections when they are told to, and write a trace when they are told to."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = links

    def accept(self) -> None:
        self._all({"do": "accept"})

    def replay(self, trace: Path, seconds: float) -> None:
        self._all({"replay": str(trace)}, patience=seconds + 60.0)

    def _all(self, order: dict[str, str], patience: float = 60.0) -> None:
        for link in self._links:
            link.tell(order)
        for link in self._links:
            link.hear(patience)


@contextmanager
def bare(processes: int) -> Iterator[tuple[Server, Bares]]:
    port = free_port()
    with ExitStack() as closing:
        links = []
        for _ in range(processes):
            links.append(Link("triplewire.bench.fanout_bare", {"address": (HOST, port)}))
            closing.callback(links[-1].close)
            links[-1].hear()
        yield Server([Target((HOST, port), request("/", port))], [link.pid for link in links]), Bares(links)


def wait_listening(child: ChildProcess) -> None:
    """Until an edge takes requests. Raises Unavailable, with what it said last."""
    end = time.monotonic() + _START_SECONDS
    while child.pid is None or not _listens(child.pid, child.settings.port):
        if child.pid is None or time.monotonic() > end:
            raise Unavailable(f"an edge does not start; see {child.output}:\n{child.last_words()}")
        time.sleep(0.05)


def _listens(pid: int, port: int) -> bool:
    found = psutil.Process(pid).net_connections("tcp4")
    return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in found)


def wait_idle(pids: Sequence[int], seconds: float) -> None:
    """Until what servers start beside themselves has started, processes of queries; for at most so long."""
    end, before = time.monotonic() + seconds, 0.0
    while (now := usage(pids).cpu) - before > 0.1 and time.monotonic() < end:
        before = now
        time.sleep(min(0.5, seconds))
