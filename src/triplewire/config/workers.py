"""Worker processes of an edge: how one is started, and the frames that both sides exchange over one socket.

```
edge                                  worker
                              ◀────── READY
REQUEST ─────────────────────▶
                              ◀────── HEAD, DATA …, DATA …, END
                              ◀────── or, at any point: ERROR {kind, message, …}; or at once: WRONG_ENGINE
CANCEL ──────────────────────▶        END or ERROR still comes
```

A worker runs one request at a time. A side that does not read stops the other from writing: only the socket's buffer
fills up. Workers that answer at once (SHACL) send the answer with END.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, BinaryIO, Final, Self

import orjson

from triplewire.model import errors
from triplewire.model.errors import TextPosition, TriplewireError, Unavailable

CHUNK_BYTES: Final = 64 * 1024
"""A piece of an answer in one frame. An edge holds a few of them for each answer."""

FRAME_BYTES: Final = 512 * 1024 * 1024
"""A longer frame means that the other side does not speak this protocol. The longest request is a publish body of
64 MiB as N-Quads in JSON, where a control character takes six bytes."""

WORKER_START_SECONDS: Final = 30.0
"""How long a worker may take to start; half a second is usual."""

_HEADER = struct.Struct(">cI")
_STREAM_BYTES = 2 * CHUNK_BYTES
"""The reading side holds this much before it stops reading."""


class FrameKind(Enum):
    """The kind of a frame, as one byte."""

    READY = b"r"
    REQUEST = b"q"
    CANCEL = b"c"
    HEAD = b"h"
    DATA = b"d"
    END = b"e"
    ERROR = b"x"
    WRONG_ENGINE = b"m"
    """The request is for another kind of worker."""


FINAL_FRAMES = frozenset({FrameKind.END, FrameKind.ERROR, FrameKind.WRONG_ENGINE})
"""After one of these a worker is free."""


def encode_frame(kind: FrameKind, payload: bytes = b"") -> bytes:
    return _HEADER.pack(kind.value, len(payload)) + payload


def encode_json_frame(kind: FrameKind, document: Mapping[str, Any]) -> bytes:
    return encode_frame(kind, orjson.dumps(document))


def encode_error_frame(error: TriplewireError) -> bytes:
    """Encode the class of an error, its message and its attributes."""
    facts = dict(vars(error))
    position = facts.pop("place", None)
    document = {"kind": type(error).__name__, "message": str(error), "facts": facts}
    if position:
        document["place"] = [position.line, position.column]
    return encode_json_frame(FrameKind.ERROR, document)


def read_frame(source: BinaryIO) -> tuple[FrameKind, bytes] | None:
    """Return the next frame, None when the other side has gone."""
    header = source.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    kind, length = _parse_header(header)
    payload = source.read(length)
    return (kind, payload) if len(payload) == length else None


async def receive_frame(source: asyncio.StreamReader) -> tuple[FrameKind, bytes]:
    """Return the next frame. Raises EOFError when the other side has gone."""
    kind, length = _parse_header(await source.readexactly(_HEADER.size))
    return kind, await source.readexactly(length)


def _parse_header(header: bytes) -> tuple[FrameKind, int]:
    code, length = _HEADER.unpack(header)
    if length > FRAME_BYTES:
        raise EOFError(f"a frame of {length} bytes: the other side does not speak this protocol")
    return FrameKind(code), length


_ERRORS: dict[str, type[TriplewireError]] = {
    each.__name__: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, TriplewireError)
}


def decode_error(payload: bytes) -> TriplewireError:
    """Return the error of an ERROR frame, with the message that it had in the worker."""
    document = orjson.loads(payload)
    kind = _ERRORS[document["kind"]]
    error = kind.__new__(kind)
    error.args = (document["message"],)
    vars(error).update(document["facts"])
    if issubclass(kind, errors.InputError):
        vars(error)["place"] = TextPosition(*document["place"]) if "place" in document else None
    return error


@dataclass(frozen=True)
class WorkerCommand:
    """The command that starts a worker. The file descriptor of its end of the socket becomes the last argument."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = WORKER_START_SECONDS


class WorkerProcess:
    """A worker as the event loop sees it."""

    def __init__(
        self, popen: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._popen = popen
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, launch: WorkerCommand) -> Self:
        """Start a worker and wait until it is ready. Raises Unavailable."""
        ours, theirs = socket.socketpair()
        with theirs:
            popen = subprocess.Popen(
                [*launch.command, str(theirs.fileno())],
                env={**os.environ, **launch.environment},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C reaches the edge alone, which then ends its workers.
                start_new_session=True,
            )
        ours.setblocking(False)
        process = cls(popen, *await asyncio.open_unix_connection(sock=ours, limit=_STREAM_BYTES))
        try:
            async with asyncio.timeout(launch.start_seconds):
                await process.receive()
        except (EOFError, OSError, TimeoutError):
            await process.end()
            raise Unavailable("a worker process does not start; the log of the edge says why") from None
        except asyncio.CancelledError:
            process.kill()
            process.wait()
            raise
        return process

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None and not self._reader.at_eof()

    def send(self, kind: FrameKind, document: Mapping[str, Any]) -> None:
        self._writer.write(encode_json_frame(kind, document))

    async def receive(self) -> tuple[FrameKind, bytes]:
        """Return the next frame. Raises EOFError or OSError when the worker has died."""
        return await receive_frame(self._reader)

    async def wait_for_exit(self) -> int:
        """Return the exit code, negative for a signal. The socket of a worker closes a moment before it exits."""
        return await asyncio.to_thread(self._popen.wait)

    async def end(self) -> None:
        """Kill the worker and wait in a thread until its memory has been released."""
        self.kill()
        await asyncio.to_thread(self.wait)

    def kill(self) -> None:
        self._popen.kill()
        self._writer.close()

    def wait(self) -> None:
        self._popen.wait()
