"""Links: processes of a benchmark that take orders and give answers, a line of JSON each."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from triplewire.model.errors import Unavailable

_PATIENCE = 120.0
"""Seconds for an answer, by which every order that has no longer one of its own is done many times over."""


class Link:
    """One process, `python -m <module>`, in a group of its own. It ends by itself when its orders end."""

    def __init__(self, module: str, told: Mapping[str, Any]) -> None:
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
        self._rest = b""
        self.tell(told)

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, order: Mapping[str, Any]) -> None:
        """Raises Unavailable when the process is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            raise self._gone() from None

    def hear(self, patience: float = _PATIENCE) -> dict[str, Any]:
        """The next answer. Raises Unavailable when the process is gone, or says nothing for too long."""
        assert self._process.stdout is not None
        while b"\n" not in self._rest:
            if not select.select([self._process.stdout], [], [], patience)[0]:
                raise Unavailable(f"{self._name} said nothing for {patience:.0f} s")
            data = os.read(self._process.stdout.fileno(), 1 << 20)
            if not data:
                raise self._gone()
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise Unavailable(f"{self._name}: {answer['failed']}")
        return answer

    def ask(self, order: Mapping[str, Any], patience: float = _PATIENCE) -> dict[str, Any]:
        self.tell(order)
        return self.hear(patience)

    def close(self) -> None:
        """End its orders, and it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _gone(self) -> Unavailable:
        self._process.wait(10.0)
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().splitlines()[-3:]
        return Unavailable(f"{self._name} ended with {self._process.returncode}: {' / '.join(words)}")


def answer(**values: object) -> None:
    """What a linked process says."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def more_files() -> int:
    """Let this process, and those that it starts, open as many files as the system allows; how many that is."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def end_in_order() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that what it started is stopped."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
