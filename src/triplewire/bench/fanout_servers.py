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
from triplewire.clock import SystemClock
from triplewire.compose.children import Child, stop_all
from triplewire.config import Settings
from triplewire.errors import Unavailable

HOST = "127.0.0.1"

_START_SECONDS = 30.0


@dataclass(frozen=True)
class Server:
    """Something that clients connect to, and the processes whose time is counted."""

    target: Target
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
def edges(processes: int, manner: Manner) -> Iterator[Server]:
    """So many edges on one port and one log, without a pipeline: it has no part in streams."""
    more_files()
    with tempfile.TemporaryDirectory(prefix="triplewire-bench-") as directory:
        settings = Settings(data=Path(directory), host=HOST, port=free_port())
        children = [Child("edge", settings, SystemClock()) for _ in range(processes)]
        try:
            for child in children:
                child.start()
                _wait_listening(child, settings.port)
            pids = [child.pid or 0 for child in children]
            _wait_idle(pids)
            path = "/streams/bench"
            yield Server(Target((HOST, settings.port), manner.request(path, settings.port), path), pids)
        finally:
            stop_all(children)


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
        yield Server(Target((HOST, port), request("/", port)), [link.pid for link in links]), Bares(links)


def _wait_listening(child: Child, port: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while child.pid is None or not _listens(child.pid, port):
        if child.pid is None or time.monotonic() > end:
            raise Unavailable(f"an edge does not start; see {child.output}:\n{child.last_words()}")
        time.sleep(0.05)


def _listens(pid: int, port: int) -> bool:
    found = psutil.Process(pid).net_connections("tcp4")
    return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in found)


def _wait_idle(pids: Sequence[int]) -> None:
    """Until what an edge starts beside itself has started: processes of queries."""
    end, before = time.monotonic() + _START_SECONDS, 0.0
    while (now := usage(pids).cpu) - before > 0.1 and time.monotonic() < end:
        before = now
        time.sleep(0.5)
