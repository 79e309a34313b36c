"""The writer of one connection: takes merged messages and writes them as fast as the client reads, or acknowledges,
them.

Flow control bounds the messages, and their bytes, that are sent and not acknowledged. One message always goes, however
large.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from triplewire.config.metrics import Metrics
from triplewire.http.delivery.connections import ClientConnection
from triplewire.http.delivery.merger import MergedBatch, Merger
from triplewire.http.delivery.options import DeliveryOptions
from triplewire.http.delivery.topics import ACK_SECONDS
from triplewire.http.formats.messages import ResumeToken
from triplewire.http.openapi.operations import ACK_MESSAGES
from triplewire.model import format_position

LISTENER_SECONDS: Final = 15.0
"""Between two comments that keep an idle connection open and find out those that are gone."""

ACK_BYTES: Final = 1024 * 1024
"""Bytes of such messages, and what of one goes over that: what is sent again at worst when a client is cut off."""


# Acknowledgements: how much a client may be sent that it has not said it is done with.


class FlowControl:
    """Messages that were sent and not acknowledged, in order. When they are too many, or too large together, nothing
    more is sent until some are acknowledged. One message always goes, however large."""

    def __init__(self, begin: str, messages: int = ACK_MESSAGES, size: int = ACK_BYTES) -> None:
        self.acknowledged = begin
        """The id of the last message that was acknowledged: where the client resumes."""
        self._messages = messages
        self._size = size
        self._waiting: OrderedDict[str, int] = OrderedDict()
        self._bytes = 0
        self._space = asyncio.Event()
        self._space.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def full(self) -> bool:
        return not self._space.is_set()

    def sent(self, id: str, size: int) -> None:
        """A message goes out. Only while it is not full."""
        self._waiting[id] = size
        self._bytes += size
        self._settle()

    def acknowledge(self, id: str) -> bool:
        """The client is done with a message and all before it; whether it was sent and not acknowledged before."""
        if id not in self._waiting:
            return False
        first = ""
        while first != id:
            first, size = self._waiting.popitem(last=False)
            self._bytes -= size
        self.acknowledged = id
        self._settle()
        return True

    async def space(self, seconds: float) -> None:
        """Wait until something may be sent. Raises TimeoutError when that takes too long."""
        async with asyncio.timeout(seconds):
            await self._space.wait()

    def release(self) -> None:
        """Nobody waits for space any more."""
        self._messages, self._size = sys.maxsize, sys.maxsize
        self._settle()

    def _settle(self) -> None:
        if len(self._waiting) >= self._messages or self._bytes >= self._size:
            self._space.clear()
        else:
            self._space.set()


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WriterState:
    """Whom a last message is for."""

    cursor: int
    manner: DeliveryOptions


class MessageWriter:
    """Goes on until the other side is gone, or was told that nothing more comes."""

    def __init__(
        self,
        reader: Merger,
        wire: ClientConnection,
        manner: DeliveryOptions,
        metrics: Metrics,
        patience: float = ACK_SECONDS,
        window: FlowControl | None = None,
    ) -> None:
        self._reader = reader
        self._wire = wire
        self._manner = manner
        self._metrics = metrics
        self._patience = patience
        self._window = window
        self._context = manner.encoding.context()
        self._told = reader.mark
        """Up to where everything was written."""
        if window is not None:
            reader.interrupted = window.release

    def greet(self, message: bytes) -> None:
        """Write the first message."""
        self._wire.write(self._manner.framed(self._manner.encoding.head + self._context.pack(message)))

    def say(self, message: bytes) -> None:
        """Write something."""
        if message:
            self._wire.write(self._manner.framed(self._context.pack(message)))

    async def tell(self, *, stays: bool = False) -> None:
        """Everything that the reader gives out. Unless it stays it ends when nothing is left to read. Raises
        ConnectionError when the other side is gone."""
        try:
            while self._reader.sent_away is None:
                if not stays and not len(self._reader):
                    return self._end(b"")
                await self._write(await self._reader.next(LISTENER_SECONDS))
            self._end(self._reader.sent_away(self._recipient))
        except TimeoutError:
            self._metrics.cut_off.inc()
            self._end(self._slow())

    async def told(self, *, stays: bool = False) -> None:
        """The same, until the other side is gone; what fails is logged, and the other side comes back."""
        try:
            await self.tell(stays=stays)
        except ConnectionError:
            pass
        except Exception:
            # The answer has begun: too late for a problem document.
            logger.exception("a history failed while somebody read it")
            self._end(b"")

    @property
    def _recipient(self) -> WriterState:
        return WriterState(self._told.cursor, self._manner)

    async def _write(self, batch: MergedBatch) -> None:
        async with asyncio.timeout(self._patience):
            await self._wire.drained()
        if self._window is not None:
            whole = await self._paced(batch, self._window)
        else:
            self.say(b"".join(part for _, part in batch.messages))
            whole = True
        if not whole:
            return
        self._told = batch.mark
        for last in batch.ends:
            self.say(last(self._recipient))
        if not batch:
            self.say(self._manner.format.comment)

    async def _paced(self, batch: MergedBatch, window: FlowControl) -> bool:
        """Write as the other side acknowledges; whether all was written."""
        for mark, part in batch.messages:
            if self._reader.sent_away is None:
                await window.space(self._patience)
            if self._reader.sent_away is not None and mark.position != self._told.position:
                # What was begun of a position was told to its end, so that the position says where it was.
                self._told = ResumeToken(self._told.position)
                return False
            if part:
                self.say(part)
                window.sent(self._reader.id(mark), len(part))
            self._told = max(self._told, mark)
        return True

    def _slow(self) -> bytes:
        position = format_position(self._told.cursor) if self._window is None else self._window.acknowledged
        detail = "read, and acknowledge, faster, or come back and resume from the position"
        return self._manner.format.notice("slow", position=position, limit=self._patience, detail=detail)

    def _end(self, message: bytes) -> None:
        if self._wire.gone:
            return
        encoding = self._manner.encoding
        last = self._context.pack(message) + encoding.parting if message else encoding.parting
        self._wire.write(self._manner.framed(last) + self._manner.end)
        self._wire.close()
