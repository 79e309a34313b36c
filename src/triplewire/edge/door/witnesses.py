"""Witnesses: write down who did what, and who was refused.

An act that changes what holds for all is written down on the disk before it is done, and what came of it afterwards:
if
it cannot be written down it is not done. Refusals, queries, and subscriptions that were made or ended are written
down
together a little later; events that are published or consumed are not, they are counted elsewhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from triplewire.access import NOBODY, Verb
from triplewire.config import limits
from triplewire.contract import Operation, operation_of
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import running
from triplewire.matching.results import format_timestamp
from triplewire.model.clock import Clock
from triplewire.model.errors import Forbidden, StorageFull, TriplewireError, Unauthenticated
from triplewire.problems import described
from triplewire.security.audit import ACTS, BOOKS, REFUSALS, AuditLog

Record = dict[str, Any]

_READING = (hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS)

logger = logging.getLogger(__name__)


class Witness:
    """Sees every request, and remembers those that matter."""

    def __init__(self, audits: AuditLog, clock: Clock, remote: Callable[[web.Request], str | None]) -> None:
        """`remote` tells from where a request comes."""
        self._audits = audits
        self._clock = clock
        self._remote = remote
        self._waiting: dict[str, list[Record]] = {book: [] for book in BOOKS}
        self._omitted = dict.fromkeys(BOOKS, 0)

    def refusals(self) -> Middleware:
        """Around the door."""

        @web.middleware
        async def see(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except (Unauthenticated, Forbidden) as error:
                self._note(REFUSALS, self._refused(request, error))
                raise

        return see

    def acts(self) -> Middleware:
        """Behind the door, where it is known who asks."""

        @web.middleware
        async def see(request: web.Request, handler: Handler) -> web.StreamResponse:
            operation = operation_of(request.match_info.handler)
            if operation is None:
                return await handler(request)
            if is_act(operation, request.method):
                return await self._act(request, handler)
            if is_noted(operation, request.method):
                return await self._seen(request, handler, partial(self._note, ACTS))
            return await handler(request)

        return see

    async def flush(self) -> None:
        """Write down what waits. What cannot be written is told and given up: it must not fill the memory."""
        for book in BOOKS:
            waiting, omitted = self._waiting[book], self._omitted[book]
            self._waiting[book], self._omitted[book] = [], 0
            if omitted:
                waiting.append({"at": format_timestamp(self._clock.now()), "outcome": "omitted", "count": omitted})
            if waiting:
                await self._write(book, waiting)

    async def keep(self, seconds: float = limits.AUDIT_SECONDS) -> None:
        """Flush again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await self.flush()

    async def _act(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        number = secrets.token_hex(8)
        begun = {**self._told(request), "act": number, "outcome": "begun"}
        await asyncio.to_thread(self._audits.write, ACTS, [begun], sync=True)
        return await self._seen(request, handler, lambda record: self._note(ACTS, {**record, "act": number}))

    async def _seen(self, request: web.Request, handler: Handler, note: Callable[[Record], None]) -> web.StreamResponse:
        try:
            response = await handler(request)
        except TriplewireError as error:
            note({**self._told(request), "outcome": "failed", "status": described(error)["status"]})
            raise
        except BaseException:
            note({**self._told(request), "outcome": "failed"})
            raise
        made = response.headers.get(hdrs.LOCATION)
        told = {**self._told(request), "outcome": "done", "status": response.status}
        note({**told, "made": made} if made else told)
        return response

    def _refused(self, request: web.Request, error: Unauthenticated | Forbidden) -> Record:
        told = self._told(request)
        who = NOBODY.name if isinstance(error, Unauthenticated) else told["who"]
        return {**told, "who": who, "outcome": "refused", "status": described(error)["status"], "why": str(error)}

    def _told(self, request: web.Request) -> Record:
        operation = operation_of(request.match_info.handler)
        return {
            "at": format_timestamp(self._clock.now()),
            "who": caller(request).name,
            "what": request.method if operation is None else operation.id,
            "on": _place(request, operation),
            "from": self._remote(request),
        }

    def _note(self, book: str, record: Record) -> None:
        if len(self._waiting[book]) < limits.AUDIT_WAITING:
            self._waiting[book].append(record)
        else:
            self._omitted[book] += 1

    async def _write(self, book: str, records: list[Record]) -> None:
        try:
            await asyncio.to_thread(self._audits.write, book, records)
        except StorageFull:
            logger.error("%s records of %s are lost: the audit log cannot be written", len(records), book)


def is_act(operation: Operation, method: str) -> bool:
    """Whether it changes what holds for all, and for that needs an administrator."""
    return operation.verbs == (Verb.ADMIN,) and method not in _READING and operation not in _HEARTBEATS


def is_noted(operation: Operation, method: str) -> bool:
    """Whether it is a query, or a subscription that is made or ended."""
    return Verb.QUERY in operation.verbs or (Verb.SUBSCRIBE in operation.verbs and method not in _READING)


_HEARTBEATS = (running.PUT_REPEATER, running.REMOVE_REPEATER)
"""Relays say these every few seconds."""


def _place(request: web.Request, operation: Operation | None) -> str:
    """Where it was asked for. What is to be erased is not named: of that a digest stays, as in the receipt."""
    if operation is running.ERASE_EVENT:
        return f"/events/sha256:{hashlib.sha256(request.match_info['id'].encode()).hexdigest()}"
    return request.path[: limits.AUDIT_CHARACTERS]
