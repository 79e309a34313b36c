"""`DELETE /events` and `/erasures`: the routes of erasure. Errors are raised; whoever serves them says them."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from triplewire.contract import serves
from triplewire.contract.catalogue import running
from triplewire.control.erasures import Erasures, Wanted
from triplewire.control.replies import page_size, reply
from triplewire.matching.results import format_timestamp
from triplewire.model import format_position, parse_position
from triplewire.storage.registry.erasure import STEPS, ErasureReceipt


def routes(erasures: Erasures) -> list[web.RouteDef]:
    receipts = _Receipts(erasures)
    return [
        web.delete("/events/{id}", receipts.erase_event),
        web.delete("/events", receipts.erase_many),
        web.get("/erasures", receipts.page),
        web.get("/erasures/{id}", receipts.find),
    ]


def document(receipt: ErasureReceipt) -> dict[str, Any]:
    """What is told of an erasure: never what it erases, but for a digest of its name."""
    return {
        "id": receipt.id,
        "erases": receipt.scope.value,
        "sha256": receipt.digest,
        "by": receipt.by,
        "requested": format_timestamp(receipt.requested),
        "position": format_position(receipt.position),
        "steps": [_step(receipt, each) for each in STEPS],
        "counts": dict(receipt.counts),
        "completed": None if receipt.completed is None else format_timestamp(receipt.completed),
    }


def _step(receipt: ErasureReceipt, step: str) -> dict[str, Any]:
    at = receipt.steps.get(step)
    waiting = {"step": step, "state": "waiting", "at": None}
    return waiting if at is None else {"step": step, "state": "done", "at": format_timestamp(at)}


class _Receipts:
    def __init__(self, erasures: Erasures) -> None:
        self._erasures = erasures

    @serves(running.ERASE_EVENT)
    async def erase_event(self, request: web.Request) -> web.Response:
        return await self._accepted(Wanted.of_event(request.match_info["id"], request.query))

    @serves(running.ERASE_MANY)
    async def erase_many(self, request: web.Request) -> web.Response:
        return await self._accepted(Wanted.of_many(request.query))

    async def _accepted(self, wanted: Wanted) -> web.Response:
        """202: it is durable that it will be done, and from now on nobody is shown it."""
        receipt = await asyncio.to_thread(self._erasures.ask, wanted)
        headers = {"Location": f"/erasures/{receipt.id}"}
        return reply(document(receipt), status=202, headers=headers)

    @serves(running.FIND_ERASURE)
    async def find(self, request: web.Request) -> web.Response:
        return reply(document(await asyncio.to_thread(self._erasures.find, request.match_info["id"])))

    @serves(running.ERASURES)
    async def page(self, request: web.Request) -> web.Response:
        cursor = parse_position(request.query.get("cursor", "earliest"))
        page = await asyncio.to_thread(self._erasures.page, cursor, page_size(request))
        following = None if page.next is None else format_position(page.next)
        return reply({"erasures": [document(each) for each in page.receipts], "next": following})
