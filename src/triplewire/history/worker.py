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

from triplewire.config.workers import FrameKind, encode_error_frame, encode_frame, encode_json_frame, read_frame
from triplewire.history.engines import Deadline, WrongEngine, memory_limit_error
from triplewire.history.executor import HistoryExecutor
from triplewire.history.requests import HistoryRequest
from triplewire.model.errors import QueryLimit, TriplewireError

QUERY_PROCESS_BYTES: Final = 768 * 1024 * 1024
"""Memory of a query process beside that of the query: code, stacks of threads, formatting of the answer."""

PREPARE_SECONDS: Final = 5.0
"""How often an idle query process looks for new files in the lake."""

logger = logging.getLogger(__name__)


def _exit() -> None:
    os._exit(0)


class QueryWorker:
    """Answers queries until the edge has gone. It listens while it works: a query can be cancelled at any point."""

    def __init__(self, connection: socket.socket, history: HistoryExecutor, gone: Callable[[], None] = _exit) -> None:
        """`gone` is called, from another thread, when the edge has closed its end: then no work is worth finishing."""
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
        """Return the next query; until it comes, index new files of the lake, one at a time."""
        while True:
            try:
                return self._queries.get(timeout=0 if self._prepare() else PREPARE_SECONDS)
            except Empty:
                continue

    def _prepare(self) -> bool:
        """Index one new file. Queries are answered without it, too, so that a failure is only logged."""
        try:
            return self._history.prepare()
        except Exception:
            logger.exception("new files of the lake could not be indexed")
            return False

    def _listen(self) -> None:
        try:
            source = self._connection.makefile("rb")
            while (frame := read_frame(source)) is not None:
                self._handle(*frame)
        finally:
            self._queries.put(None)
            self._gone()

    def _handle(self, kind: FrameKind, payload: bytes) -> None:
        document = orjson.loads(payload)
        if kind is FrameKind.REQUEST:
            self._queries.put((document["number"], HistoryRequest.from_json(document["request"])))
        elif kind is FrameKind.CANCEL:
            self._cancel(document["number"])

    def _cancel(self, number: int) -> None:
        """Cancel the query if it runs or is still queued."""
        with self._lock:
            self._cancelled = number
            if self._running is not None and self._running[0] == number:
                self._running[1].interrupt()

    def _answer(self, number: int, request: HistoryRequest) -> None:
        with self._history.start_deadline(request) as deadline:
            self._begin(number, deadline)
            last = self._run_query(request, deadline)
            with self._lock:
                self._running = None
        self._send(last)

    def _begin(self, number: int, deadline: Deadline) -> None:
        with self._lock:
            self._running = (number, deadline)
            if self._cancelled == number:
                deadline.interrupt()

    def _run_query(self, request: HistoryRequest, deadline: Deadline) -> bytes:
        """Send the answer and return the frame that ends it."""
        try:
            self._stream(request, deadline)
            return encode_frame(FrameKind.END)
        except WrongEngine:
            return encode_frame(FrameKind.WRONG_ENGINE)
        except TriplewireError as error:
            return encode_error_frame(error)
        except MemoryError:
            return encode_error_frame(memory_limit_error(self._history.bounds.memory))
        except RecursionError:
            return encode_error_frame(QueryLimit("the query is nested too deeply; split it"))
        except Exception:
            logger.exception("a query failed: %s", request.text[:1_000])
            return encode_error_frame(TriplewireError("the query failed unexpectedly; the log of the edge says more"))

    def _stream(self, request: HistoryRequest, deadline: Deadline) -> None:
        """Send the head with the first chunk: an error before that still becomes an error response."""
        answer = self._history.answer(request, deadline)
        head = encode_json_frame(FrameKind.HEAD, {"content_type": answer.content_type})
        for chunk in answer.chunks:
            self._send(head + encode_frame(FrameKind.DATA, chunk))
            head = b""
            deadline.check()
        if head:
            self._send(head)

    def _send(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except OSError:
            self._gone()
            raise


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_NICENESS = 5


def parse_size(text: str) -> int:
    """Return the bytes of a size such as `2GB` or `512 MiB`. Raises ValueError."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a size; write it as 2GB or 512MiB")
    power = " kmgt".index(found[2].lower() or " ")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def limit_resources(memory: str) -> None:
    """Limit the memory of this process to that of a query and its own, and lower its priority below the edge's.

    DuckDB keeps to its own limit; this limit holds for everything else, too. It counts writable memory, not mapped
    files: libraries are large.
    """
    most = parse_size(memory) + QUERY_PROCESS_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICENESS)
