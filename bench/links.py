"""Links to processes that a benchmark starts: they take orders and give answers, a line of JSON each."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from triplewire.model.errors import Unavailable

_PATIENCE = 120.0
"""Seconds to wait for an answer; an order that takes longer says so."""


class Link:
    """A process, `python -m <module>`, in a group of its own. It ends by itself when its orders end."""

    def __init__(self, module: str, setup: Mapping[str, Any]) -> None:
        share_imports()
        self._name = module.rpartition(".")[2]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the link
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._answers = self._process.stdin, self._process.stdout
        self._rest = b""
        self.pid = self._process.pid
        self.tell(setup)

    def tell(self, order: Mapping[str, Any]) -> None:
        """Raises Unavailable when the process has ended."""
        try:
            self._orders.write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            raise self._ended() from None

    def hear(self, patience: float = _PATIENCE) -> dict[str, Any]:
        """Return the next answer. Raises Unavailable when the process has ended, or says nothing for too long."""
        while b"\n" not in self._rest:
            if not select.select([self._answers], [], [], patience)[0]:
                raise Unavailable(f"{self._name} said nothing for {patience:.0f} s")
            data = os.read(self._answers.fileno(), 1 << 20)
            if not data:
                raise self._ended()
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        if "failed" in found:
            raise Unavailable(f"{self._name}: {found['failed']}")
        return found

    def ask(self, order: Mapping[str, Any], patience: float = _PATIENCE) -> dict[str, Any]:
        self.tell(order)
        return self.hear(patience)

    def close(self) -> None:
        """End the orders, and with them the process."""
        with suppress(BrokenPipeError):
            self._orders.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._errors.close()

    def _ended(self) -> Unavailable:
        self._process.wait(10.0)
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().splitlines()[-3:]
        return Unavailable(f"{self._name} ended with {self._process.returncode}: {' / '.join(words)}")


def ask_all(links: Sequence[Link], order: Mapping[str, Any], patience: float = _PATIENCE) -> list[dict[str, Any]]:
    """Give all processes the same order before the first answer is waited for."""
    for link in links:
        link.tell(order)
    return [link.hear(patience) for link in links]


def answer(**values: object) -> None:
    """Print the answer of a linked process."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def share_imports() -> None:
    """Let processes that this one starts import `bench`: workers of Spark get its functions by their names."""
    root = str(Path(__file__).resolve().parents[1])
    known = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    if root not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *known])


def allow_files() -> int:
    """Let this process, and those that it starts, open as many files as the system allows; return how many."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def exit_on_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that the processes it started are stopped."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
