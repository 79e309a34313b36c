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
from triplewire.model.clock import Clock, format_timestamp
from triplewire.model.errors import Forbidden, StorageFull, TriplewireError, Unauthenticated
from triplewire.model.problems import describe_error
from triplewire.security import NOBODY, Verb
from triplewire.security.audit import ACTS, BOOKS, REFUSALS, AuditLog

AUDIT_SECONDS: Final = 0.2
"""How long records that no request waits for are collected."""

AUDIT_WAITING: Final = 10_000
"""How many records may wait; more are only counted. It takes 50,000 refusals in a second to get there."""

AUDIT_CHARACTERS: Final = 512
"""Characters of an address in a record."""


AuditRecord = dict[str, Any]

_SAFE_METHODS = (hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS)

logger = logging.getLogger(__name__)


class AuditMiddleware:
    """Records administrative acts, queries, subscriptions, and refusals."""

    def __init__(
        self,
        audits: AuditLog,
        clock: Clock,
        remote: Callable[[web.Request], str | None],
        most_waiting: int = AUDIT_WAITING,
    ) -> None:
        """`remote` returns the address of the client."""
        self._audits = audits
        self._clock = clock
        self._remote = remote
        self._most_waiting = most_waiting
        self._waiting: dict[str, list[AuditRecord]] = {book: [] for book in BOOKS}
        self._omitted = dict.fromkeys(BOOKS, 0)

    def refusals(self) -> Middleware:
        """Return the middleware around authentication, which records refusals."""

        @web.middleware
        async def record_refusal(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except (Unauthenticated, Forbidden) as error:
                self._note(REFUSALS, self._refused(request, error))
                raise

        return record_refusal

    def acts(self) -> Middleware:
        """Return the middleware behind authentication, which records acts."""

        @web.middleware
        async def record_act(request: web.Request, handler: Handler) -> web.StreamResponse:
            operation = operation_of(request.match_info.handler)
            if operation is None:
                return await handler(request)
            if is_administrative(operation, request.method):
                return await self._act(request, handler)
            if is_audited(operation, request.method):
                return await self._record(request, handler, partial(self._note, ACTS))
            return await handler(request)

        return record_act

    async def flush(self) -> None:
        """Write the records that wait. If they cannot be written they are dropped, which is logged: they must not fill
        the memory."""
        for book in BOOKS:
            waiting, omitted = self._waiting[book], self._omitted[book]
            self._waiting[book], self._omitted[book] = [], 0
            if omitted:
                waiting.append({"at": format_timestamp(self._clock.now()), "outcome": "omitted", "count": omitted})
            if waiting:
                await self._write(book, waiting)

    async def _act(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        number = secrets.token_hex(8)
        begun = {**self._describe(request), "act": number, "outcome": "begun"}
        await asyncio.to_thread(self._audits.write, ACTS, [begun], durable=True)
        return await self._record(request, handler, lambda record: self._note(ACTS, {**record, "act": number}))

    async def _record(
        self, request: web.Request, handler: Handler, note: Callable[[AuditRecord], None]
    ) -> web.StreamResponse:
        try:
            response = await handler(request)
        except TriplewireError as error:
            note({**self._describe(request), "outcome": "failed", "status": describe_error(error)["status"]})
            raise
        except BaseException:
            note({**self._describe(request), "outcome": "failed"})
            raise
        location = response.headers.get(hdrs.LOCATION)
        record = {**self._describe(request), "outcome": "done", "status": response.status}
        note({**record, "made": location} if location else record)
        return response

    def _refused(self, request: web.Request, error: Unauthenticated | Forbidden) -> AuditRecord:
        record = self._describe(request)
        who = NOBODY.name if isinstance(error, Unauthenticated) else record["who"]
        status = describe_error(error)["status"]
        return {**record, "who": who, "outcome": "refused", "status": status, "why": str(error)}

    def _describe(self, request: web.Request) -> AuditRecord:
        operation = operation_of(request.match_info.handler)
        return {
            "at": format_timestamp(self._clock.now()),
            "who": caller(request).name,
            "what": request.method if operation is None else operation.id,
            "on": _audited_path(request, operation),
            "from": self._remote(request),
        }

    def _note(self, book: str, record: AuditRecord) -> None:
        if len(self._waiting[book]) < self._most_waiting:
            self._waiting[book].append(record)
        else:
            self._omitted[book] += 1

    async def _write(self, book: str, records: list[AuditRecord]) -> None:
        try:
            await asyncio.to_thread(self._audits.write, book, records)
        except StorageFull:
            logger.error("%s records of %s are lost: the audit log cannot be written", len(records), book)


def is_administrative(operation: Operation, method: str) -> bool:
    """Return whether an operation changes something and needs an administrator."""
    return operation.verbs == (Verb.ADMIN,) and method not in _SAFE_METHODS and operation not in _HEARTBEATS


def is_audited(operation: Operation, method: str) -> bool:
    """Return whether an operation is a query, or makes or ends a subscription."""
    return Verb.QUERY in operation.verbs or (Verb.SUBSCRIBE in operation.verbs and method not in _SAFE_METHODS)


_HEARTBEATS = (resource_operations.PUT_REPEATER, resource_operations.REMOVE_REPEATER)
"""Operations that relays repeat every few seconds."""


def _audited_path(request: web.Request, operation: Operation | None) -> str:
    """Return the address of a request. An event that is to be erased is named by its digest, as in the receipt."""
    if operation is resource_operations.ERASE_EVENT:
        return f"/events/sha256:{hashlib.sha256(request.match_info['id'].encode()).hexdigest()}"
    return request.path[:AUDIT_CHARACTERS]
