"""Edges: the HTTP processes of one broker, on one port."""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from triplewire.compose.children import STOP_SECONDS, Child, stop_all
from triplewire.compose.scales import Range, Scale
from triplewire.config import Settings, limits
from triplewire.config.status import STATUS_SECONDS, EdgeStatus, read_statuses
from triplewire.model.clock import Clock
from triplewire.model.errors import Unavailable
from triplewire.sockets import close, listening, steer

logger = logging.getLogger(__name__)


@dataclass
class Berth:
    """Sockets, and the edge that accepts on them. They stay open here when the edge goes, so that connections which
    nobody has accepted yet wait for the next one."""

    sockets: list[socket.socket]
    child: Child
    successor: Child | None = None


@dataclass
class Farewell:
    """An edge that was told to go, or will be at `at`, and until when it may take."""

    child: Child
    at: float
    sockets: list[socket.socket] = field(default_factory=list)
    """Those that are closed after it, because nobody takes them over."""
    told: bool = False


class Edges:
    """All edges of one broker. `start`, then `look` again and again until `stop`."""

    def __init__(
        self, settings: Settings, clock: Clock, read: Callable[[], Sequence[EdgeStatus]] | None = None
    ) -> None:
        """`read` tells how edges stand; by default what they told. Raises BadRequest where the settings do not say how
        many there should be."""
        self._settings = settings
        self._clock = clock
        self._read = read or partial(read_statuses, settings.standings, clock)
        self._scale = Scale(Range.parsed(settings.edges, os.cpu_count() or 1), clock)
        self._berths: list[Berth] = []
        self._rolling: deque[Berth] = deque()
        self._leaving: list[Farewell] = []
        self._scaled = clock.ticks()

    @property
    def children(self) -> list[Child]:
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
            close(berth.sockets)
        for each in self._leaving:
            close(each.sockets)

    def _open(self) -> None:
        """One edge more, on sockets of its own."""
        sockets = listening(self._settings.host, self._settings.port)
        child = self._child(sockets)
        child.start()
        self._berths.append(Berth(sockets, child))

    def _close(self) -> None:
        """One edge less, the last. New connections go to the others; those that were begun get the time to be made."""
        berth = self._berths.pop()
        steer(self._berths[0].sockets, len(self._berths))
        self._leaving.append(Farewell(berth.child, self._clock.ticks() + limits.STEER_SECONDS, berth.sockets))

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

    def _child(self, sockets: list[socket.socket]) -> Child:
        taken = {each.settings.edge for each in (*self.children, *(each.child for each in self._leaving))}
        name = next(str(number) for number in range(1, len(taken) + 2) if str(number) not in taken)
        descriptors = tuple(each.fileno() for each in sockets)
        settings = replace(self._settings, edge=name, sockets=tuple(map(str, descriptors)))
        return Child("edge", settings, self._clock, descriptors)

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
            self._leaving.append(Farewell(berth.child, self._clock.ticks()))
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
        close(sockets)
        if sockets:
            steer(self._berths[0].sockets, 0)

    def _standings(self) -> list[EdgeStatus]:
        """Of those that are to stay, as far as they have told."""
        pids = {child.pid for child in self.children}
        return [each for each in self._read() if each.pid in pids]

    def _is_ready(self, child: Child) -> bool:
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
