"""Buffer windows: how long messages wait for others, so that they go out together.

The window of a stream says how long they may wait at most. How long they do wait follows the load of the event loop:
nothing while there is room, the whole window when there is none.

```
wait   window ┤            ┌─────────
              │          ╱
            0 ┼────────╱
              0      20 %  80 %  load
```
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from triplewire.config import limits
from triplewire.model.errors import BadRequest
from triplewire.storage.registry.streams import check_stream_name

ROOM, FULL = 0.2, 0.8
"""Shares of the loop's time: below the first nothing waits, above the second all that may."""

_SMOOTH = 1.0
"""Seconds over which the load is smoothed."""
_LEAST = 0.02
"""Seconds between two looks at the clocks."""

Seconds = Callable[[], float]


@dataclass(frozen=True)
class Windows:
    """How long messages may wait: of a stream that is named here its own time, of all others the usual one."""

    usual: float = limits.WINDOW_SECONDS
    of_streams: Mapping[str, float] = field(default_factory=dict)

    def of(self, stream: str | None) -> float:
        return self.of_streams.get(stream or "", self.usual)

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> Windows:
        """From `0.5` for all streams and `home=0` for one. Raises BadRequest."""
        pairs = dict(_parsed(text) for text in texts)
        usual = pairs.pop(None, limits.WINDOW_SECONDS)
        return cls(usual, {stream: seconds for stream, seconds in pairs.items() if stream is not None})


def seconds_of(text: str) -> float:
    """A window as it is written. Raises BadRequest."""
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= limits.WINDOW_SECONDS_MOST:
        raise BadRequest(f"a buffer window must be seconds from 0 to {limits.WINDOW_SECONDS_MOST:g}, not {text!r}")
    return seconds


def _parsed(text: str) -> tuple[str | None, float]:
    stream, equals, seconds = text.rpartition("=")
    return (check_stream_name(stream) if equals else None), seconds_of(seconds)


class Load:
    """The share of time in which this thread worked, of late, or was writing, if that is more: on a machine whose cores
    are all busy a thread waits for one while it writes."""

    def __init__(self, worked: Seconds = time.thread_time, passed: Seconds = time.monotonic) -> None:
        self.share = 0.0
        self._worked = worked
        self._passed = passed
        self._written = 0.0
        self._last: tuple[float, float, float] | None = None

    def look(self) -> float:
        """The share as of now."""
        worked, written, passed = self._worked(), self._written, self._passed()
        if self._last is None:
            self._last = worked, written, passed
        elif (span := passed - self._last[2]) >= _LEAST:
            busy = max(worked - self._last[0], written - self._last[1]) / span
            self.share += min(1.0, span / _SMOOTH) * (min(1.0, busy) - self.share)
            self._last = worked, written, passed
        return self.share

    def writing(self) -> None:
        """Much is being written: until the loop has done so. It does it at the end of its turn."""
        asyncio.get_running_loop().call_soon(self.wrote, self._passed())

    def wrote(self, began: float) -> None:
        """It was written since then."""
        self._written += self._passed() - began

    def wait(self, window: float) -> float:
        """How long messages wait now where they may wait for a window."""
        if not window:
            return 0.0
        return window * min(1.0, max(0.0, (self.look() - ROOM) / (FULL - ROOM)))
