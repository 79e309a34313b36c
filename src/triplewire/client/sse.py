"""Event streams (SSE) as a client reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """One message. `id` is that of the message or of the last one before it that had one, as browsers do it."""

    event: str
    data: bytes
    id: str | None = None


class Parser:
    """Takes bytes in whatever pieces they come and gives whole messages. Comments are dropped."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self._rest = b""

    def restart(self) -> None:
        """A new connection begins; the last id stays."""
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete now. The iterator must be used up before the next call."""
        text = self._rest + data
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        *blocks, self._rest = text.split(b"\n\n")
        for block in blocks:
            found = self._message(block)
            if found is not None:
                yield found

    def _message(self, block: bytes) -> Message | None:
        event, data = b"message", []
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"event":
                event = value
            elif name == b"id":
                self.last_id = value.decode()
        return Message(event.decode(), b"\n".join(data), self.last_id) if data else None
