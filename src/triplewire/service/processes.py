"""Child processes of the supervisor: restart with back-off, the pool of edges on one port, rolling restart and
autoscaling.

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
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, Unavailable

STEER_SECONDS: Final = 1.0
"""How long an edge that is not replaced goes on to accept connections after new ones are led to the others: as long as
a connection may take to be made."""

EDGE_BUSY: Final = 0.7
"""The share of a core that edges use on the average, or of their seats that are taken, from which on one more of them
is started: above it, what comes in bursts waits."""

EDGE_BUSY_SECONDS: Final = 5.0
"""How long that must have been so. An edge takes a second to start."""

EDGE_CALM: Final = 0.35
"""The same share, if there was one edge less, up to which one goes: half of what would bring it back."""

EDGE_CALM_SECONDS: Final = 60.0
"""How long that must have been so: those who listen to the edge that goes must come back, and it may be needed soon."""


# Children: the processes that `triplewire up` starts and watches.

RESTART_PAUSE_SECONDS = 30.0
"""Seconds between two starts of a child that keeps failing; the first is after one second, then twice as long."""

STOP_SECONDS = 20.0
"""How long a child may take to stop cleanly; the pipeline finishes its batch. Then it is killed."""


@dataclass
class ChildProcess:
    """One process, started again when it ends by itself. Its output goes to a file."""

    name: str
    settings: Settings
    clock: Clock
    descriptors: tuple[int, ...] = ()
    """Open files that it is given."""
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
        """Start again what ended, after a pause that grows with every failure; whether the child runs now."""
        if self.pid is not None:
            return True
        now = self.clock.ticks()
        if self._process is not None:
            self._process = None
            self.failures += 1
            self._not_before = now + min(RESTART_PAUSE_SECONDS, 2.0 ** (self.failures - 1))
        if now >= self._not_before:
            self.start()
            return True
        return False

    def last_words(self, lines: int = 5) -> str:
        """The end of what it wrote, for an error message."""
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
    """Ask all of them, then wait for each, in the order given."""
    for child in children:
        child.ask_to_stop()
    for child in children:
        child.wait()


# Scales: how many edges there should be for the load that there is.

AUTO = "auto"


@dataclass(frozen=True)
class EdgeRange:
    """From how many edges to how many; where both are the same, the load does not matter."""

    least: int
    most: int

    @classmethod
    def parsed(cls, text: str, cores: int) -> EdgeRange:
        """`3` is three; `auto` is from one to one more than there are cores, `auto:8` to eight. Raises BadRequest."""
        name, _, most = text.partition(":")
        try:
            if name == AUTO:
                return cls(1, _positive(most) if most else cores + 1)
            return cls(_positive(text), _positive(text))
        except ValueError:
            raise BadRequest(f"{text!r} edges cannot be started; give a number, {AUTO}, or {AUTO}:8") from None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


@dataclass
class Autoscaler:
    """Asks for one edge more when they are busy, and for one less when the others could carry its load with ease, each
    only once that has been so for a while: an edge costs a second of a core to start, and those who listen to one that
    goes must come back."""

    range: EdgeRange
    clock: Clock
    _before: dict[int, EdgeStatus] = field(default_factory=dict)
    _busy_since: float | None = None
    _calm_since: float | None = None

    def wanted(self, standings: Sequence[EdgeStatus]) -> int:
        """How many there should be, of those that are there now. To be asked about once a second."""
        count = len(standings)
        load = self._load(standings)
        spread = load * count / (count - 1) if count > 1 else load
        now = self.clock.ticks()
        self._busy_since = _since(self._busy_since, now, load >= EDGE_BUSY)
        self._calm_since = _since(self._calm_since, now, spread <= EDGE_CALM)
        if count < self.range.most and _lasted(self._busy_since, now, EDGE_BUSY_SECONDS):
            return self._changed(count + 1)
        if count > self.range.least and _lasted(self._calm_since, now, EDGE_CALM_SECONDS):
            return self._changed(count - 1)
        return count

    def _changed(self, count: int) -> int:
        """What it comes to is seen anew."""
        self._busy_since = self._calm_since = None
        return count

    def _load(self, standings: Sequence[EdgeStatus]) -> float:
        """The share of their cores that edges use, on the average, or that of their seats that are taken."""
        shares = [cpu_share(each, self._before.get(each.pid)) for each in standings]
        self._before = {each.pid: each for each in standings}
        seats = sum(each.seats for each in standings)
        taken = sum(each.taken for each in standings) / seats if seats else 0.0
        return max(sum(shares) / len(shares) if shares else 0.0, taken)


def cpu_share(now: EdgeStatus, before: EdgeStatus | None) -> float:
    """Of a core, between two times that an edge told of itself; 0 where there is only one."""
    if before is None or now.at <= before.at:
        return 0.0
    return max(0.0, (now.cpu - before.cpu) / ((now.at - before.at) / 1_000_000))


def _since(before: float | None, now: float, holds: bool) -> float | None:
    return (now if before is None else before) if holds else None


def _lasted(since: float | None, now: float, seconds: float) -> bool:
    return since is not None and now - since >= seconds


logger = logging.getLogger(__name__)


@dataclass
class EdgeSlot:
    """Sockets, and the edge that accepts on them. They stay open here when the edge goes, so that connections which
    nobody has accepted yet wait for the next one."""

    sockets: list[socket.socket]
    child: ChildProcess
    successor: ChildProcess | None = None


@dataclass
class EdgeShutdown:
    """An edge that was told to go, or will be at `at`, and until when it may take."""

    child: ChildProcess
    at: float
    sockets: list[socket.socket] = field(default_factory=list)
    """Those that are closed after it, because nobody takes them over."""
    told: bool = False


class EdgePool:
    """All edges of one broker. `start`, then `look` again and again until `stop`."""

    def __init__(
        self, settings: Settings, clock: Clock, read: Callable[[], Sequence[EdgeStatus]] | None = None
    ) -> None:
        """`read` tells how edges stand; by default what they told. Raises BadRequest where the settings do not say how
        many there should be."""
        self._settings = settings
        self._clock = clock
        self._read = read or partial(read_statuses, settings.edge_statuses, clock)
        self._scale = Autoscaler(EdgeRange.parsed(settings.edges, os.cpu_count() or 1), clock)
        self._berths: list[EdgeSlot] = []
        self._rolling: deque[EdgeSlot] = deque()
        self._leaving: list[EdgeShutdown] = []
        self._scaled = clock.ticks()

    @property
    def children(self) -> list[ChildProcess]:
        """Those that are to stay."""
        return [berth.child for berth in self._berths]

    @property
    def restarting(self) -> bool:
        return bool(self._rolling or self._leaving)

    def start(self) -> None:
        """Raises Unavailable if the address is taken, which no restart would mend."""
        _check_free(self._settings)
        for _ in range(self._scale.range.least):
            self._open()

    def ready(self) -> bool:
        """Whether every edge has said so."""
        return all(map(self._is_ready, self.children))

    def look(self) -> None:
        """One look: what ended by itself is started again, and what is under way takes its next step."""
        for child in self.children:
            child.watch()
        self._see_off()
        self._roll()
        if not self.restarting and self._clock.ticks() - self._scaled >= STATUS_SECONDS:
            self._scaled = self._clock.ticks()
            self._rescale()

    def restart(self) -> None:
        """Replace every edge by a new process, one after the other, in the looks that follow."""
        self._rolling = deque(self._berths)

    def stop(self) -> None:
        children = [*self.children, *(berth.successor for berth in self._berths if berth.successor)]
        stop_all([*children, *(each.child for each in self._leaving)])
        for berth in self._berths:
            close_sockets(berth.sockets)
        for each in self._leaving:
            close_sockets(each.sockets)

    def _open(self) -> None:
        """One edge more, on sockets of its own."""
        sockets = open_listeners(self._settings.host, self._settings.port)
        child = self._child(sockets)
        child.start()
        self._berths.append(EdgeSlot(sockets, child))

    def _close(self) -> None:
        """One edge less, the last. New connections go to the others; those that were begun get the time to be made."""
        berth = self._berths.pop()
        steer_connections(self._berths[0].sockets, len(self._berths))
        self._leaving.append(EdgeShutdown(berth.child, self._clock.ticks() + STEER_SECONDS, berth.sockets))

    def _rescale(self) -> None:
        """One edge more or less, if the load asks for it; while one of them has not told how it stands, neither."""
        standings = self._standings()
        if len(standings) < len(self._berths):
            return
        wanted = self._scale.wanted(standings)
        if wanted > len(self._berths):
            self._open()
        elif wanted < len(self._berths):
            self._close()

    def _child(self, sockets: list[socket.socket]) -> ChildProcess:
        taken = {each.settings.edge for each in (*self.children, *(each.child for each in self._leaving))}
        name = next(str(number) for number in range(1, len(taken) + 2) if str(number) not in taken)
        descriptors = tuple(each.fileno() for each in sockets)
        settings = replace(self._settings, edge=name, sockets=tuple(map(str, descriptors)))
        return ChildProcess("edge", settings, self._clock, descriptors)

    def _roll(self) -> None:
        """The next step of a restart: a new process is ready before an old one is told to go, and the next one follows
        when that has gone."""
        if not self._rolling or self._leaving:
            return
        berth = self._rolling[0]
        if berth.successor is None:
            berth.successor = self._child(berth.sockets)
            berth.successor.start()
        elif berth.successor.pid is None:
            logger.error("a new edge does not start; the others stay:\n%s", berth.successor.last_words())
            berth.successor = None
            self._rolling.clear()
        elif self._is_ready(berth.successor):
            self._leaving.append(EdgeShutdown(berth.child, self._clock.ticks()))
            berth.child, berth.successor = berth.successor, None
            self._rolling.popleft()

    def _see_off(self) -> None:
        """Tell those to go whose time has come; close after those who have gone; kill those who do not go."""
        for each in tuple(self._leaving):
            now = self._clock.ticks()
            if each.child.pid is None:
                self._leaving.remove(each)
                self._shut(each.sockets)
            elif not each.told and now >= each.at:
                each.child.ask_to_stop()
                each.told = True
            elif now >= each.at + STOP_SECONDS:
                each.child.kill()

    def _shut(self, sockets: list[socket.socket]) -> None:
        close_sockets(sockets)
        if sockets:
            steer_connections(self._berths[0].sockets, 0)

    def _standings(self) -> list[EdgeStatus]:
        """Of those that are to stay, as far as they have told."""
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
                f"stop what listens there or choose another with --port"
            ) from error
