"""Children: the processes that `triplewire up` starts and watches."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from triplewire.config import Settings
from triplewire.config.settings import to_environment
from triplewire.model.clock import Clock

LONGEST_PAUSE = 30.0
"""Seconds between two starts of a child that keeps failing; the first is after one second, then twice as long."""

STOP_SECONDS = 20.0
"""How long a child may take to stop cleanly; the pipeline finishes its batch. Then it is killed."""


@dataclass
class Child:
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
            self._not_before = now + min(LONGEST_PAUSE, 2.0 ** (self.failures - 1))
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


def stop_all(children: Sequence[Child]) -> None:
    """Ask all of them, then wait for each, in the order given."""
    for child in children:
        child.ask_to_stop()
    for child in children:
        child.wait()
