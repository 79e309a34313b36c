"""Latest: the last event of each stream that was handed out, by which a listener is found its place at another edge."""

from __future__ import annotations

import pyarrow as pa

from triplewire.config import limits


class Latest:
    """Positions differ from edge to edge, ids of events do not. Nothing is kept while nobody is to be moved."""

    def __init__(self) -> None:
        self._wanted = False
        self._events: dict[str, str] = {}

    def want(self, wanted: bool) -> None:
        """Whether to keep anything from now on."""
        if not wanted:
            self.forget()
        self._wanted = wanted

    def note(self, entries: pa.Table) -> None:
        """Entries that are handed out now, in order."""
        if not self._wanted:
            return
        last = dict(zip(entries["stream"].to_pylist(), entries["event"].to_pylist(), strict=True))
        for stream in last:
            self._events.pop(stream, None)
        self._events |= last
        while len(self._events) > limits.LATEST_STREAMS:
            del self._events[next(iter(self._events))]

    def forget(self) -> None:
        """Some were passed over, and nobody knows which."""
        self._events.clear()

    def of(self, stream: str) -> str | None:
        """The id; None where it is not known."""
        return self._events.get(stream)
