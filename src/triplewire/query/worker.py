"""The worker: a process that answers queries, one at a time, for whoever holds the other end of its socket."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread

import orjson

from triplewire.config import limits
from triplewire.errors import QueryLimit, TriplewireError
from triplewire.query import refusals
from triplewire.query.alarms import Alarm
from triplewire.query.engines import Elsewhere, over_memory
from triplewire.query.frames import Kind, frame, json_frame, read
from triplewire.query.history import History
from triplewire.query.requests import QueryRequest

logger = logging.getLogger(__name__)


def _exit() -> None:
    os._exit(0)


class Worker:
    """Answers until the other side is gone. It listens while it works: a query can be cancelled at any point."""

    def __init__(self, connection: socket.socket, history: History, gone: Callable[[], None] = _exit) -> None:
        """`gone` is called, from another thread, when nobody holds the other end any more. Nothing is worth being
        finished then."""
        self._connection = connection
        self._history = history
        self._gone = gone
        self._queries: SimpleQueue[tuple[int, QueryRequest] | None] = SimpleQueue()
        self._lock = Lock()
        self._running: tuple[int, Alarm] | None = None
        self._cancelled = -1

    def run(self) -> None:
        Thread(target=self._listen, name="listen", daemon=True).start()
        self._send(frame(Kind.READY))
        while (query := self._next()) is not None:
            self._answer(*query)

    def _next(self) -> tuple[int, QueryRequest] | None:
        """The next query. Until it comes, what is new in the lake is made ready, a file at a time."""
        while True:
            try:
                return self._queries.get(timeout=0 if self._prepare() else limits.PREPARE_SECONDS)
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
            while (heard := read(source)) is not None:
                self._hear(*heard)
        finally:
            self._queries.put(None)
            self._gone()

    def _hear(self, kind: Kind, payload: bytes) -> None:
        document = orjson.loads(payload)
        if kind is Kind.QUERY:
            self._queries.put((document["number"], QueryRequest.from_json(document["request"])))
        elif kind is Kind.CANCEL:
            self._cancel(document["number"])

    def _cancel(self, number: int) -> None:
        """Of a query that runs, or that is yet to begin; one that has ended is left alone."""
        with self._lock:
            self._cancelled = number
            if self._running is not None and self._running[0] == number:
                self._running[1].ring()

    def _answer(self, number: int, request: QueryRequest) -> None:
        with self._history.alarm(request) as alarm:
            self._begin(number, alarm)
            last = self._outcome(request, alarm)
            with self._lock:
                self._running = None
        self._send(last)

    def _begin(self, number: int, alarm: Alarm) -> None:
        with self._lock:
            self._running = (number, alarm)
            if self._cancelled == number:
                alarm.ring()

    def _outcome(self, request: QueryRequest, alarm: Alarm) -> bytes:
        """Sends the answer, and gives the frame that ends it."""
        try:
            self._stream(request, alarm)
            return frame(Kind.END)
        except Elsewhere:
            return frame(Kind.MOVE)
        except TriplewireError as error:
            return json_frame(Kind.ERROR, refusals.to_json(error))
        except MemoryError:
            return json_frame(Kind.ERROR, refusals.to_json(over_memory(self._history.bounds.memory)))
        except RecursionError:
            too_deep = QueryLimit("the query is nested too deeply; take it apart")
            return json_frame(Kind.ERROR, refusals.to_json(too_deep))
        except Exception:
            logger.exception("a query failed: %s", request.text[:1_000])
            unforeseen = TriplewireError("the query failed in a way that nobody foresaw; the log of the edge says more")
            return json_frame(Kind.ERROR, refusals.to_json(unforeseen))

    def _stream(self, request: QueryRequest, alarm: Alarm) -> None:
        """The head goes out with the first of the answer: until then an error can be told as an error."""
        answer = self._history.answer(request, alarm)
        head = json_frame(Kind.HEAD, {"content_type": answer.content_type})
        for chunk in answer.chunks:
            self._send(head + frame(Kind.DATA, chunk))
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
