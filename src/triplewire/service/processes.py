"""Child processes of the supervisor: restart with back-off, the pool of edges on one port, and autoscaling.

Listening sockets stay open in the supervisor, so that connections which no edge has accepted yet survive a restart. An
edge is added when the others are busy and removed when they could carry its load, each only after a while.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from triplewire.config import Settings
from triplewire.config.settings import to_environment
from triplewire.config.status import STATUS_SECONDS, EdgeStatus, read_statuses
from triplewire.http.listeners import close_sockets, open_listeners, steer_connections
from triplewire.model.clock import Backoff, Clock
from triplewire.model.errors import BadRequest, Unavailable

AUTO = "auto"
logger = logging.getLogger(__name__)

STEER_SECONDS: Final = 1.0
"""Seconds that an edge which is removed still accepts connections after new ones are steered to the others: as long as
a connection may take to be established."""

EDGE_BUSY: Final = 0.7
"""Load from which on an edge is added: the average share of a core, or the share of connections in use. Above it,
bursts have to wait."""

EDGE_BUSY_SECONDS: Final = 5.0
"""Seconds that the load must last before an edge is added. An edge takes a second to start."""

EDGE_CALM: Final = 0.35
"""Load that the remaining edges may have after an edge is removed: half of the load that adds one."""

EDGE_CALM_SECONDS: Final = 60.0
"""Seconds that the calm must last before an edge is removed: its clients must reconnect, and it may be needed soon."""

RESTART_PAUSE_SECONDS = 30.0
"""Seconds at most between two starts of a child that keeps failing; the first pause is one second."""

_RESTART_BACKOFF = Backoff(first=1.0, longest=RESTART_PAUSE_SECONDS, jitter=0)

STOP_SECONDS = 20.0
"""Seconds that a child may take to stop, for the pipeline finishes its batch; then it is killed."""


@dataclass
class ChildProcess:
    """A process that is restarted when it ends by itself. Its output goes to a file."""

    name: str
    settings: Settings
    clock: Clock
    descriptors: tuple[int, ...] = ()
    """Open files that it inherits."""
    failures: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _not_before: float = 0.0

    @property
    def output(self) -> Path:
        return self.settings.data / "logs" / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        self.output.parent.mkdir(parents=True, exist_ok=True)
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "triplewire", self.name],
                env={**os.environ, **to_environment(replace(self.settings, supervisor=os.getpid()))},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches the parent alone, which then stops its children in order.
                start_new_session=True,
                pass_fds=self.descriptors,
            )

    def watch(self) -> bool:
        """Restart the child if it has ended, after a pause that grows with every failure. Return whether it runs."""
        if self.pid is not None:
            return True
        now = self.clock.ticks()
        if self._process is not None:
            self._process = None
            self.failures += 1
            self._not_before = now + _RESTART_BACKOFF.seconds(self.failures)
        if now >= self._not_before:
            self.start()
            return True
        return False

    def read_tail(self, lines: int = 5) -> str:
        """Return the last lines of its output, for an error message."""
        try:
            return "\n".join(self.output.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def ask_to_stop(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def wait(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def stop_all(children: Sequence[ChildProcess]) -> None:
    """Ask all children to stop, then wait for each in order."""
    for child in children:
        child.ask_to_stop()
    for child in children:
        child.wait()


@dataclass(frozen=True)
class EdgeRange:
    """The least and the largest number of edges. If they are equal, there is no autoscaling."""

    least: int
    most: int

    @classmethod
    def parsed(cls, text: str, cores: int) -> EdgeRange:
        """Parse the setting `edges`: `3` is three, `auto` one to one more than there are cores, `auto:8` one to eight.
        Raises BadRequest."""
        name, _, most = text.partition(":")
        try:
            if name == AUTO:
                return cls(1, _positive(most) if most else cores + 1)
            return cls(_positive(text), _positive(text))
        except ValueError:
            raise BadRequest(f"edges must be a number from 1 on, {AUTO}, or {AUTO}:8, not {text!r}") from None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


@dataclass
class Autoscaler:
    """Decides on the number of edges by their load. It waits for a while before each change: an edge costs a second of
    a core to start, and the clients of one that is removed have to reconnect."""

    range: EdgeRange
    clock: Clock
    _before: dict[int, EdgeStatus] = field(default_factory=dict)
    _busy_since: float | None = None
    _calm_since: float | None = None

    def target(self, statuses: Sequence[EdgeStatus]) -> int:
        """Return how many edges there should be. To be called about once a second with the status of each edge."""
        count = len(statuses)
        load = self._load(statuses)
        spread = load * count / (count - 1) if count > 1 else load
        now = self.clock.ticks()
        self._busy_since = _since(self._busy_since, now, load >= EDGE_BUSY)
        self._calm_since = _since(self._calm_since, now, spread <= EDGE_CALM)
        if count < self.range.most and _lasted(self._busy_since, now, EDGE_BUSY_SECONDS):
            return self._restart_timers(count + 1)
        if count > self.range.least and _lasted(self._calm_since, now, EDGE_CALM_SECONDS):
            return self._restart_timers(count - 1)
        return count

    def _restart_timers(self, count: int) -> int:
        self._busy_since = self._calm_since = None
        return count

    def _load(self, statuses: Sequence[EdgeStatus]) -> float:
        """Return the average share of a core, or the share of connections in use, whichever is larger."""
        shares = [cpu_share(each, self._before.get(each.pid)) for each in statuses]
        self._before = {each.pid: each for each in statuses}
        accepted = sum(each.max_listeners for each in statuses)
        connected = sum(each.connected for each in statuses) / accepted if accepted else 0.0
        return max(sum(shares) / len(shares) if shares else 0.0, connected)


def cpu_share(now: EdgeStatus, before: EdgeStatus | None) -> float:
    """Return the share of a core that an edge used between two reports; 0 if there is only one."""
    if before is None or now.at <= before.at:
        return 0.0
    return max(0.0, (now.cpu - before.cpu) / ((now.at - before.at) / 1_000_000))


def _since(before: float | None, now: float, holds: bool) -> float | None:
    return (now if before is None else before) if holds else None


def _lasted(since: float | None, now: float, seconds: float) -> bool:
    return since is not None and now - since >= seconds


@dataclass
class EdgeSlot:
    """Listening sockets and the edge that accepts on them. They stay open when the edge ends, so that connections that
    are not accepted yet wait for its successor."""

    sockets: list[socket.socket]
    child: ChildProcess
    successor: ChildProcess | None = None


@dataclass
class EdgeShutdown:
    """An edge that is asked to stop at the time `at`."""

    child: ChildProcess
    at: float
    sockets: list[socket.socket] = field(default_factory=list)
    """Sockets that are closed after it, because it has no successor."""
    asked: bool = False


class EdgePool:
    """All edges of one broker: `start`, then `step` again and again until `stop`."""

    def __init__(
        self, settings: Settings, clock: Clock, read: Callable[[], Sequence[EdgeStatus]] | None = None
    ) -> None:
        """`read` returns the status of edges, by default from their files. Raises BadRequest for bad `edges`."""
        self._settings = settings
        self._clock = clock
        self._read = read or partial(read_statuses, settings.edge_statuses, clock)
        self._scale = Autoscaler(EdgeRange.parsed(settings.edges, os.cpu_count() or 1), clock)
        self._slots: list[EdgeSlot] = []
        self._rolling: deque[EdgeSlot] = deque()
        self._leaving: list[EdgeShutdown] = []
        self._scaled = clock.ticks()

    @property
    def children(self) -> list[ChildProcess]:
        """The edges that are not being removed."""
        return [slot.child for slot in self._slots]

    @property
    def restarting(self) -> bool:
        return bool(self._rolling or self._leaving)

    def start(self) -> None:
        """Start the least number of edges. Raises Unavailable if the address is in use."""
        _check_free(self._settings)
        for _ in range(self._scale.range.least):
            self._open()

    def ready(self) -> bool:
        return all(map(self._is_ready, self.children))

    def step(self) -> None:
        """Restart edges that have ended, and take the next step of a rolling restart, a shutdown or autoscaling."""
        for child in self.children:
            child.watch()
        self._finish_shutdowns()
        self._roll()
        if not self.restarting and self._clock.ticks() - self._scaled >= STATUS_SECONDS:
            self._scaled = self._clock.ticks()
            self._rescale()

    def restart(self) -> None:
        """Replace every edge by a new process, one by one, in the steps that follow."""
        self._rolling = deque(self._slots)

    def stop(self) -> None:
        children = [*self.children, *(slot.successor for slot in self._slots if slot.successor)]
        stop_all([*children, *(each.child for each in self._leaving)])
        for slot in self._slots:
            close_sockets(slot.sockets)
        for each in self._leaving:
            close_sockets(each.sockets)

    def _open(self) -> None:
        """Add an edge, with its own sockets."""
        sockets = open_listeners(self._settings.host, self._settings.port)
        child = self._child(sockets)
        child.start()
        self._slots.append(EdgeSlot(sockets, child))

    def _close(self) -> None:
        """Remove the last edge. New connections go to the others; it accepts those that are being established."""
        slot = self._slots.pop()
        steer_connections(self._slots[0].sockets, len(self._slots))
        self._leaving.append(EdgeShutdown(slot.child, self._clock.ticks() + STEER_SECONDS, slot.sockets))

    def _rescale(self) -> None:
        """Add or remove an edge by the load, unless one of them has not reported yet."""
        statuses = self._statuses()
        if len(statuses) < len(self._slots):
            return
        target = self._scale.target(statuses)
        if target > len(self._slots):
            self._open()
        elif target < len(self._slots):
            self._close()

    def _child(self, sockets: list[socket.socket]) -> ChildProcess:
        taken = {each.settings.edge for each in (*self.children, *(each.child for each in self._leaving))}
        name = next(str(number) for number in range(1, len(taken) + 2) if str(number) not in taken)
        descriptors = tuple(each.fileno() for each in sockets)
        settings = replace(self._settings, edge=name, sockets=tuple(map(str, descriptors)))
        return ChildProcess("edge", settings, self._clock, descriptors)

    def _roll(self) -> None:
        """Take the next step of a rolling restart: a new process is ready before the old one is asked to stop, and the
        next edge follows when that has ended."""
        if not self._rolling or self._leaving:
            return
        slot = self._rolling[0]
        if slot.successor is None:
            slot.successor = self._child(slot.sockets)
            slot.successor.start()
        elif slot.successor.pid is None:
            logger.error("a new edge does not start; the old edges stay:\n%s", slot.successor.read_tail())
            slot.successor = None
            self._rolling.clear()
        elif self._is_ready(slot.successor):
            self._leaving.append(EdgeShutdown(slot.child, self._clock.ticks()))
            slot.child, slot.successor = slot.successor, None
            self._rolling.popleft()

    def _finish_shutdowns(self) -> None:
        """Ask edges to stop when it is time, close the sockets of those that have ended, and kill those that hang."""
        for each in tuple(self._leaving):
            now = self._clock.ticks()
            if each.child.pid is None:
                self._leaving.remove(each)
                self._close_sockets(each.sockets)
            elif not each.asked and now >= each.at:
                each.child.ask_to_stop()
                each.asked = True
            elif now >= each.at + STOP_SECONDS:
                each.child.kill()

    def _close_sockets(self, sockets: list[socket.socket]) -> None:
        close_sockets(sockets)
        if sockets:
            steer_connections(self._slots[0].sockets, 0)

    def _statuses(self) -> list[EdgeStatus]:
        pids = {child.pid for child in self.children}
        return [each for each in self._read() if each.pid in pids]

    def _is_ready(self, child: ChildProcess) -> bool:
        return any(each.pid == child.pid and each.state == "ready" for each in self._read())


def _check_free(settings: Settings) -> None:
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise Unavailable(
                f"{settings.host}:{settings.port} cannot be used ({error.strerror}); "
                "stop the process that listens there, or choose another port with --port"
            ) from error
