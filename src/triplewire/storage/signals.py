"""Signals between processes: a commit to a store wakes the processes that wait for it.

A receiver is a named pipe in a directory beside the store, and a process that commits writes a byte into each pipe. A
signal is a hint: it may come without news, and it may be lost, so receivers also look by themselves now and then. A
named pipe has no bound on the length of its path, as a Unix socket has, and a pipe whose reader has died refuses to be
opened, by which it is found and removed.
"""

from __future__ import annotations

import errno
import os
import select
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

_HIDDEN = "."
"""Prefix of a pipe that is not open yet."""


class SignalSender:
    """Wakes all receivers in a directory. Called from any thread."""

    def __init__(self, folder: Path) -> None:
        """The directory need not exist: it is made by the first receiver."""
        self._folder = str(folder)

    def send(self) -> None:
        """Wake the receivers; does not wait, and does not fail."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return
        for name in names:
            if not name.startswith(_HIDDEN):
                self._wake(f"{self._folder}/{name}")

    def _wake(self, path: str) -> None:
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:
                with suppress(OSError):
                    os.unlink(path)
            return
        # A pipe that is full holds signals enough.
        with suppress(OSError):
            os.write(pipe, b"\0")
        os.close(pipe)


class SignalReceiver:
    """Waits for signals in a directory. For one thread of the process that made it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{os.getpid()}-{uuid4().hex[:8]}"
        hidden = folder / f"{_HIDDEN}{self._path.name}"
        os.mkfifo(hidden)
        # Opened for writing, too: otherwise it would be at its end whenever no sender has it open.
        self._pipe = os.open(hidden, os.O_RDWR | os.O_NONBLOCK)
        hidden.rename(self._path)

    def fileno(self) -> int:
        """Return a descriptor that is readable once a signal has come."""
        return self._pipe

    def clear(self) -> None:
        """Take all signals that have come."""
        with suppress(BlockingIOError):
            while os.read(self._pipe, 4_096):
                pass

    def wait(self, seconds: float) -> bool:
        """Wait for a signal, at most so many seconds, and take it; return whether one came."""
        ready, _, _ = select.select([self._pipe], [], [], seconds)
        if ready:
            self.clear()
        return bool(ready)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._pipe)


def signal_folder(store: Path) -> Path:
    """Return the directory of the signals of a store that is a file."""
    return store.with_name(f"{store.name}-signals")
