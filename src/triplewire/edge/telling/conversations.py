"""Conversations: clients over WebSockets, what they are told and what they may say meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from triplewire.config import limits
from triplewire.edge.formats import MESSAGES
from triplewire.edge.intake.doors import number_of
from triplewire.edge.past.resumptions import Asked
from triplewire.edge.telling.acknowledgements import Window
from triplewire.edge.telling.manners import Manner, conversational
from triplewire.edge.telling.marks import Mark
from triplewire.edge.telling.readers import Reader
from triplewire.edge.telling.receptions import Reception, greeting
from triplewire.edge.telling.sockets import Json, SocketWire
from triplewire.edge.telling.subjects import Subject
from triplewire.edge.telling.tellers import Teller
from triplewire.model import format_position
from triplewire.model.errors import BadRequest

Find = Callable[[str, str, Asked | None], Awaitable[Subject[Any]]]
"""Finds a subject by its kind, its name, and after what it is to be told."""

_BEGIN = {"subscribe": "subscription", "stream": "stream", "query": "query"}
_STOP = {"unsubscribe": "subscription", "unstream": "stream", "unquery": "query"}
_PLURAL = {"subscription": "subscriptions", "stream": "streams", "query": "queries"}


def window_of(request: web.Request, begin: str) -> Window | None:
    """The window of a client that acknowledges, which has had everything up to an id. Raises BadRequest."""
    asked = request.query.get("ack", "0")
    if asked not in ("0", "1"):
        raise BadRequest(f"ack must be 1 or 0, not {asked!r}")
    messages = int(number_of(request, "window", limits.ACK_MESSAGES, limits.ACK_MESSAGES, least=1))
    return Window(begin, messages) if asked == "1" else None


@dataclass(frozen=True)
class Conversations:
    """Lets clients in over WebSockets."""

    reception: Reception

    async def listen(self, request: web.Request, subject: Subject[Any]) -> web.StreamResponse:
        """To one subject: together with others that get the same bytes, unless the client acknowledges."""
        window = window_of(request, format_position(subject.after))
        if window is not None:
            return await self.read(request, [subject], Reader(Mark(subject.after), MESSAGES), window)
        manner = conversational(request, subject.window)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(subject.holding())
            wire = await SocketWire.open(request)
            self.reception.lead(wire, manner, subject, stack.pop_all())
        await wire.serve(not_understood)
        return wire.response

    async def read(
        self,
        request: web.Request,
        subjects: Sequence[Subject[Any]],
        reader: Reader,
        window: Window | None,
        find: Find | None = None,
    ) -> web.StreamResponse:
        """At the client's own pace. `find` finds those that it names later."""
        async with AsyncExitStack() as stack:
            stack.callback(reader.close)
            wire = await SocketWire.open(request)
            at = self.reception
            teller = Teller(reader, wire, Manner(MESSAGES), at.metrics, at.patience, window)
            teller.greet(greeting(MESSAGES, reader.id(reader.mark), subjects))
            talk = Talk(reader, teller, window, find, stack)
            for each in subjects:
                await talk.add(each)
            task = self.reception.keep(teller.told(stays=find is not None))
            stack.callback(task.cancel)
            await wire.serve(talk.hear)
        return wire.response


@dataclass(frozen=True)
class Talk:
    """What one client says."""

    reader: Reader
    teller: Teller
    window: Window | None
    find: Find | None
    stack: AsyncExitStack
    held: dict[str, AsyncExitStack] = field(default_factory=dict)

    async def hear(self, said: Json) -> None:
        """Do what is said. Raises a TriplewireError that says why it cannot be done."""
        verb = next((each for each in ("ack", *_BEGIN, *_STOP) if each in said), "")
        name = said.get(verb, "")
        if not isinstance(name, str):
            raise BadRequest(f"{verb} must be a text, not {name!r}")
        if verb == "ack":
            self._acknowledge(name)
        elif self.find is not None and verb in _BEGIN:
            await self._begin(self.find, _BEGIN[verb], name, said.get("after"))
        elif self.find is not None and verb in _STOP:
            await self._stop(_STOP[verb], name)
        else:
            await not_understood(said)

    async def add(self, subject: Subject[Any]) -> None:
        """Read a subject too, and hold what it holds."""
        held = self.held[subject.name] = await self.stack.enter_async_context(AsyncExitStack())
        await held.enter_async_context(subject.holding())
        self.reader.add(subject)

    def _acknowledge(self, id: str) -> None:
        if self.window is None:
            raise BadRequest("acknowledgements are asked for with ?ack=1")
        if not self.window.acknowledge(id):
            raise BadRequest(f"{id!r} waits for no acknowledgement")

    async def _begin(self, find: Find, kind: str, name: str, after: object) -> None:
        if not isinstance(after, str | None):
            raise BadRequest(f"after must be a text, not {after!r}")
        if len(self.reader) >= limits.GATHERED:
            raise BadRequest(f"{limits.GATHERED} are listened to already over this connection; open another")
        subject = await find(kind, name, None if after is None else Asked.parsed(after))
        if subject.name in self.reader:
            raise BadRequest(f"{subject.name} is listened to already")
        missed: Json = {} if subject.earliest is None else {"earliest": format_position(subject.earliest)}
        position = format_position(subject.after)
        self.teller.say(MESSAGES.notice("position", **{kind: name}, position=position, missed=bool(missed), **missed))
        await self.add(subject)

    async def _stop(self, kind: str, name: str) -> None:
        path = f"{_PLURAL[kind]}/{name}"
        if path not in self.reader:
            raise BadRequest(f"{path} is not listened to")
        self.reader.drop(path)
        await self.held.pop(path).aclose()
        self.teller.say(MESSAGES.notice("left", **{kind: name}))


async def not_understood(said: Json) -> None:
    """What clients say where nothing is to be said."""
    words = ", ".join((*_BEGIN, *_STOP))
    known = f"?ack=1 lets a client say ack, and GET /notifications any of {words}"
    raise BadRequest(f"{orjson.dumps(said).decode()[:100]} is not understood here; {known}")
