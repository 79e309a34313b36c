"""A query worker answers queries one at a time over a socket, within memory limits of the operating system."""

from __future__ import annotations

import logging
import os
import re
import resource
import socket
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final

import orjson

from triplewire.history import protocol
from triplewire.history.engines import Deadline, WrongEngine, memory_limit_error
from triplewire.history.executor import HistoryExecutor
from triplewire.history.protocol import FrameKind, encode_frame, encode_json_frame, read_frame
from triplewire.history.requests import HistoryRequest
from triplewire.model.errors import QueryLimit, TriplewireError

QUERY_PROCESS_BYTES: Final = 768 * 1024 * 1024
"""What a query's process may have beside that: code, stacks of threads, the answer's formatting."""

PREPARE_SECONDS: Final = 5.0
"""How often a process of queries that has nothing to do looks whether there is anything new in the lake."""


logger = logging.getLogger(__name__)


def _exit() -> None:
    os._exit(0)


class QueryWorker:
    """Answers until the other side is gone. It listens while it works: a query can be cancelled at any point."""

    def __init__(self, connection: socket.socket, history: HistoryExecutor, gone: Callable[[], None] = _exit) -> None:
        """`gone` is called, from another thread, when nobody holds the other end any more. Nothing is worth being
        finished then."""
        self._connection = connection
        self._history = history
        self._gone = gone
        self._queries: SimpleQueue[tuple[int, HistoryRequest] | None] = SimpleQueue()
        self._lock = Lock()
        self._running: tuple[int, Deadline] | None = None
        self._cancelled = -1

    def run(self) -> None:
        Thread(target=self._listen, name="listen", daemon=True).start()
        self._send(encode_frame(FrameKind.READY))
        while (query := self._next()) is not None:
            self._answer(*query)

    def _next(self) -> tuple[int, HistoryRequest] | None:
        """The next query. Until it comes, what is new in the lake is made ready, a file at a time."""
        while True:
            try:
                return self._queries.get(timeout=0 if self._prepare() else PREPARE_SECONDS)
            except Empty:
                continue

    def _prepare(self) -> bool:
        """Queries are answered without it, too, so that what goes wrong with it is not the end."""
        try:
            return self._history.prepare()
        except Exception:
            logger.exception("what is new in the lake could not be made ready")
            return False

    def _listen(self) -> None:
        try:
            source = self._connection.makefile("rb")
            while (heard := read_frame(source)) is not None:
                self._hear(*heard)
        finally:
            self._queries.put(None)
            self._gone()

    def _hear(self, kind: FrameKind, payload: bytes) -> None:
        document = orjson.loads(payload)
        if kind is FrameKind.QUERY:
            self._queries.put((document["number"], HistoryRequest.from_json(document["request"])))
        elif kind is FrameKind.CANCEL:
            self._cancel(document["number"])

    def _cancel(self, number: int) -> None:
        """Of a query that runs, or that is yet to begin; one that has ended is left alone."""
        with self._lock:
            self._cancelled = number
            if self._running is not None and self._running[0] == number:
                self._running[1].ring()

    def _answer(self, number: int, request: HistoryRequest) -> None:
        with self._history.alarm(request) as alarm:
            self._begin(number, alarm)
            last = self._outcome(request, alarm)
            with self._lock:
                self._running = None
        self._send(last)

    def _begin(self, number: int, alarm: Deadline) -> None:
        with self._lock:
            self._running = (number, alarm)
            if self._cancelled == number:
                alarm.ring()

    def _outcome(self, request: HistoryRequest, alarm: Deadline) -> bytes:
        """Sends the answer, and gives the frame that ends it."""
        try:
            self._stream(request, alarm)
            return encode_frame(FrameKind.END)
        except WrongEngine:
            return encode_frame(FrameKind.MOVE)
        except TriplewireError as error:
            return encode_json_frame(FrameKind.ERROR, protocol.error_to_json(error))
        except MemoryError:
            return encode_json_frame(
                FrameKind.ERROR, protocol.error_to_json(memory_limit_error(self._history.bounds.memory))
            )
        except RecursionError:
            too_deep = QueryLimit("the query is nested too deeply; take it apart")
            return encode_json_frame(FrameKind.ERROR, protocol.error_to_json(too_deep))
        except Exception:
            logger.exception("a query failed: %s", request.text[:1_000])
            unforeseen = TriplewireError("the query failed in a way that nobody foresaw; the log of the edge says more")
            return encode_json_frame(FrameKind.ERROR, protocol.error_to_json(unforeseen))

    def _stream(self, request: HistoryRequest, alarm: Deadline) -> None:
        """The head goes out with the first of the answer: until then an error can be told as an error."""
        answer = self._history.answer(request, alarm)
        head = encode_json_frame(FrameKind.HEAD, {"content_type": answer.content_type})
        for chunk in answer.chunks:
            self._send(head + encode_frame(FrameKind.DATA, chunk))
            head = b""
            alarm.check()
        if head:
            self._send(head)

    def _send(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except OSError:
            self._gone()
            raise


# Confines: what the operating system lets a process of queries have, whatever runs in it.

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_NICENESS = 5


def parse_size(text: str) -> int:
    """How many bytes `2GB` or `512 MiB` are. Raises ValueError."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no size; write it as 2GB or 512MiB")
    power = " kmgt".index(found[2].lower() or " ")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def limit_resources(memory: str) -> None:
    """Hold this process to the memory of a query and of its own, and let the edge go before it.

    DuckDB keeps to its own limit; this holds everything else too. It counts what can be written to, not what is
    mapped: libraries are large.
    """
    most = parse_size(memory) + QUERY_PROCESS_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICENESS)
