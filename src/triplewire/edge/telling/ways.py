"""Ways: a long answer, one that comes when there is something (a poll), or a WebSocket; for one subject or for many."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from aiohttp import web

from triplewire.edge.formats import MESSAGES, Format
from triplewire.edge.telling.conversations import Conversations, Find, window_of
from triplewire.edge.telling.manners import Manner, manner_of
from triplewire.edge.telling.marks import Mark
from triplewire.edge.telling.polls import Poll, answered, poll_of
from triplewire.edge.telling.readers import Reader
from triplewire.edge.telling.receptions import Reception, greeting, headers_of
from triplewire.edge.telling.rooms import Addressee
from triplewire.edge.telling.seats import chunked
from triplewire.edge.telling.sockets import upgrades
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.tellers import Teller
from triplewire.model import START

Subjects = Sequence[Subject[Any]]


@dataclass(frozen=True)
class Ways:
    """Tells clients in the way that they ask for."""

    reception: Reception
    conversations: Conversations

    async def one(self, request: web.Request, subject: Subject[Any]) -> web.StreamResponse:
        """Of one subject. Raises NotAcceptable or BadRequest."""
        if upgrades(request):
            return await self.conversations.listen(request, subject)
        poll = poll_of(request)
        if poll is None:
            return await self.reception.welcome(request, subject)
        manner = manner_of(request, subject.window)
        return await self._answer(request, poll, manner, [subject], Reader(Mark(subject.after), manner.format))

    async def told_in(self, request: web.Request, subjects: Subjects, mark: Mark, format: Format) -> web.StreamResponse:
        """Of many, in one order, in a format that does not depend on what the client accepts."""
        return await self._tell(request, Manner(format), subjects, Reader(mark, format, many=True))

    async def many(self, request: web.Request, subjects: Subjects, mark: Mark, find: Find) -> web.StreamResponse:
        """Of many, in one order. Over a WebSocket others can be found later."""
        if upgrades(request):
            reader = Reader(mark, MESSAGES, many=True)
            return await self.conversations.read(request, subjects, reader, window_of(request, str(mark)), find)
        poll, manner = poll_of(request), manner_of(request, 0.0)
        reader = Reader(mark, manner.format, many=True)
        if poll is not None:
            return await self._answer(request, poll, manner, subjects, reader)
        return await self._tell(request, manner, subjects, reader)

    async def _answer(
        self, request: web.Request, poll: Poll, manner: Manner, subjects: Subjects, reader: Reader
    ) -> web.StreamResponse:
        missed = any(each.earliest is not None for each in subjects)
        first = greeting(manner.format, reader.id(reader.mark), subjects) if missed else b""
        # What was published before the poll came is in its answer, however short it waits.
        least = await self.reception.head() if all(each.order == START for each in subjects) else START
        async with AsyncExitStack() as stack:
            await _hold(stack, subjects, reader)
            return await answered(request, reader, poll, manner, first=first, least=least)

    async def _tell(
        self, request: web.Request, manner: Manner, subjects: Subjects, reader: Reader
    ) -> web.StreamResponse:
        async with AsyncExitStack() as stack:
            await _hold(stack, subjects, reader)
            response, seat = await self.reception.seats.take(request, headers_of(manner))
            manner, at = replace(manner, chunked=chunked(response)), self.reception
            teller = Teller(reader, seat, manner, at.metrics, at.patience)
            teller.greet(manner.format.head + greeting(manner.format, reader.id(reader.mark), subjects))
            seat.lost(partial(reader.send_away, _nothing))
            self.reception.keep(_told(teller, stack.pop_all()))
        return response


async def _hold(stack: AsyncExitStack, subjects: Subjects, reader: Reader) -> None:
    """Have subjects read for as long as it lasts."""
    stack.callback(reader.close)
    for each in subjects:
        await stack.enter_async_context(each.holding())
        reader.add(each)


def _nothing(gone: Addressee) -> bytes:
    """What is told to those who are gone."""
    return b""


async def _told(teller: Teller, stack: AsyncExitStack) -> None:
    async with stack:
        await teller.told()
