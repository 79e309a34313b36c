"""The audit middleware: records who did what, and who was refused.

An administrative act is written to disk before it is carried out, and its outcome afterwards; if it cannot be written
it is not carried out. Refusals, queries, and subscriptions that are made or ended are written in batches a little
later. Publishing and consuming are not audited, only counted by metrics.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from triplewire.http.auth import caller
from triplewire.http.openapi import Operation, operation_of, resource_operations
from triplewire.http.problems import describe_error
from triplewire.model.clock import Clock, format_timestamp
from triplewire.model.errors import Forbidden, StorageFull, TriplewireError, Unauthenticated
from triplewire.security import NOBODY, Verb
from triplewire.security.audit import ACTS, BOOKS, REFUSALS, AuditLog

AUDIT_SECONDS: Final = 0.2
"""How long lines of the audit log that nobody waits for are collected."""

AUDIT_WAITING: Final = 10_000
"""How many of them may wait; others are counted. It takes 50,000 refusals in a second to get there."""

AUDIT_CHARACTERS: Final = 512
"""What a line of the audit log says of an address."""


AuditRecord = dict[str, Any]

_SAFE_METHODS = (hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS)

logger = logging.getLogger(__name__)


class AuditMiddleware:
    """Sees every request, and remembers those that matter."""

    def __init__(self, audits: AuditLog, clock: Clock, remote: Callable[[web.Request], str | None]) -> None:
        """`remote` tells from where a request comes."""
        self._audits = audits
        self._clock = clock
        self._remote = remote
        self._waiting: dict[str, list[AuditRecord]] = {book: [] for book in BOOKS}
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
            if is_administrative(operation, request.method):
                return await self._act(request, handler)
            if is_audited(operation, request.method):
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

    async def keep(self, seconds: float = AUDIT_SECONDS) -> None:
        """Flush again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await self.flush()

    async def _act(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        number = secrets.token_hex(8)
        begun = {**self._told(request), "act": number, "outcome": "begun"}
        await asyncio.to_thread(self._audits.write, ACTS, [begun], sync=True)
        return await self._seen(request, handler, lambda record: self._note(ACTS, {**record, "act": number}))

    async def _seen(
        self, request: web.Request, handler: Handler, note: Callable[[AuditRecord], None]
    ) -> web.StreamResponse:
        try:
            response = await handler(request)
        except TriplewireError as error:
            note({**self._told(request), "outcome": "failed", "status": describe_error(error)["status"]})
            raise
        except BaseException:
            note({**self._told(request), "outcome": "failed"})
            raise
        made = response.headers.get(hdrs.LOCATION)
        told = {**self._told(request), "outcome": "done", "status": response.status}
        note({**told, "made": made} if made else told)
        return response

    def _refused(self, request: web.Request, error: Unauthenticated | Forbidden) -> AuditRecord:
        told = self._told(request)
        who = NOBODY.name if isinstance(error, Unauthenticated) else told["who"]
        return {**told, "who": who, "outcome": "refused", "status": describe_error(error)["status"], "why": str(error)}

    def _told(self, request: web.Request) -> AuditRecord:
        operation = operation_of(request.match_info.handler)
        return {
            "at": format_timestamp(self._clock.now()),
            "who": caller(request).name,
            "what": request.method if operation is None else operation.id,
            "on": _audited_path(request, operation),
            "from": self._remote(request),
        }

    def _note(self, book: str, record: AuditRecord) -> None:
        if len(self._waiting[book]) < AUDIT_WAITING:
            self._waiting[book].append(record)
        else:
            self._omitted[book] += 1

    async def _write(self, book: str, records: list[AuditRecord]) -> None:
        try:
            await asyncio.to_thread(self._audits.write, book, records)
        except StorageFull:
            logger.error("%s records of %s are lost: the audit log cannot be written", len(records), book)


def is_administrative(operation: Operation, method: str) -> bool:
    """Whether it changes what holds for all, and for that needs an administrator."""
    return operation.verbs == (Verb.ADMIN,) and method not in _SAFE_METHODS and operation not in _HEARTBEATS


def is_audited(operation: Operation, method: str) -> bool:
    """Whether it is a query, or a subscription that is made or ended."""
    return Verb.QUERY in operation.verbs or (Verb.SUBSCRIBE in operation.verbs and method not in _SAFE_METHODS)


_HEARTBEATS = (resource_operations.PUT_REPEATER, resource_operations.REMOVE_REPEATER)
"""Relays say these every few seconds."""


def _audited_path(request: web.Request, operation: Operation | None) -> str:
    """Where it was asked for. What is to be erased is not named: of that a digest stays, as in the receipt."""
    if operation is resource_operations.ERASE_EVENT:
        return f"/events/sha256:{hashlib.sha256(request.match_info['id'].encode()).hexdigest()}"
    return request.path[:AUDIT_CHARACTERS]
