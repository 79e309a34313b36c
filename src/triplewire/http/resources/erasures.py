"""`DELETE /events` and `/erasures`: request erasure, and see its receipts.

`Erasures` is pure over the registry port and blocks, so call it from a thread. An erasure holds as soon as it is
durable: from then on no client is shown the events that it names. Handlers raise; the middleware writes the problem
document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import uuid4

from aiohttp import web

from triplewire.http.openapi import resource_operations, serves
from triplewire.http.resources.bodies import json_response, parse_page_size
from triplewire.model import ErasureScope, format_position, parse_position
from triplewire.model.clock import Clock, format_timestamp
from triplewire.model.errors import BadRequest, NotFound
from triplewire.rdf import check_id
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.storage.registry.erasure import ERASURE, STEPS, ErasureReceipt, receipt_from_change, request_entries
from triplewire.storage.registry.ports import Registry

BY = "by"
_FORBIDDEN = "\"'\\"


@dataclass(frozen=True)
class ErasureRequest:
    """What is to be erased, and who says so."""

    scope: ErasureScope
    name: str
    by: str | None = None

    @classmethod
    def of_event(cls, id: str, query: Mapping[str, str]) -> ErasureRequest:
        """From an address and its parameters. Raises BadRequest."""
        _check_parameters(query, {BY})
        return cls(ErasureScope.EVENT, check_id(id), _parse_text(BY, query.get(BY)))

    @classmethod
    def of_many(cls, query: Mapping[str, str]) -> ErasureRequest:
        """From parameters. Raises BadRequest unless they name a source or a subject, one of them."""
        _check_parameters(query, {ErasureScope.SOURCE, ErasureScope.SUBJECT, BY})
        source, subject = (
            _parse_text(ErasureScope.SOURCE, query.get(ErasureScope.SOURCE)),
            query.get(ErasureScope.SUBJECT),
        )
        by = _parse_text(BY, query.get(BY))
        if (source is None) == (subject is None):
            raise BadRequest(
                "give ?source= or ?subject=, one of them; DELETE /events/{id} erases one event, "
                "and there is no way to erase all at once"
            )
        return (
            cls(ErasureScope.SOURCE, source, by)
            if source is not None
            else cls(ErasureScope.SUBJECT, _parse_iri(subject or ""), by)
        )


@dataclass(frozen=True)
class ErasurePage:
    """Some receipts, and the position after which the next of them are; None at the end."""

    receipts: Sequence[ErasureReceipt]
    next: int | None


class Erasures:
    """What was asked to be forgotten, as the registry holds it."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    def ask(self, wanted: ErasureRequest) -> ErasureReceipt:
        """The receipt, once the erasure is durable. From then on nobody is shown what it names."""
        now = self._clock.now()
        digest = sha256(wanted.name.encode()).hexdigest()
        receipt = ErasureReceipt(uuid4().hex, wanted.scope, digest, now, wanted.by).done("hidden", now)
        position, _ = self._registry.put(request_entries(receipt, wanted.name))
        return replace(receipt, position=position)

    def find(self, id: str) -> ErasureReceipt:
        """Raises NotFound for one that is not there."""
        change = self._registry.get(ERASURE, id)
        if change is None:
            raise NotFound(f"there is no receipt {id}")
        return receipt_from_change(change)

    def page(self, after: int, limit: int) -> ErasurePage:
        """Those that changed after a position, in the order of their last change."""
        found = self._registry.list(ERASURE, after=after, limit=limit)
        return ErasurePage(
            [receipt_from_change(each) for each in found], found[-1].position if len(found) == limit else None
        )


def _check_parameters(query: Mapping[str, str], known: set[str]) -> None:
    for name in query:
        if name not in known:
            raise BadRequest(f"the parameter {name} is not known here; {', '.join(sorted(known))} are")


def _parse_text(name: str, text: str | None) -> str | None:
    """A parameter as the door would have taken it when an event was published."""
    if text is None:
        return None
    if len(text) > HEADER_CHARACTERS:
        raise BadRequest(f"{name} has {len(text)} characters; at most {HEADER_CHARACTERS} are taken")
    if not text or not text.isprintable() or any(character in _FORBIDDEN for character in text):
        raise BadRequest(f"{name} must be printable text without quotes and backslashes, not {text!r}")
    return text


def _parse_iri(text: str) -> str:
    try:
        return check_id(text)
    except BadRequest:
        raise BadRequest(f"subject must be an absolute IRI, without angle brackets, not {text[:60]!r}") from None


# `DELETE /events` and `/erasures`: the routes of erasure. Errors are raised; whoever serves them says them.


def erasure_routes(erasures: Erasures) -> list[web.RouteDef]:
    receipts = _ErasureRoutes(erasures)
    return [
        web.delete("/events/{id}", receipts.erase_event),
        web.delete("/events", receipts.erase_many),
        web.get("/erasures", receipts.page),
        web.get("/erasures/{id}", receipts.find),
    ]


def erasure_document(receipt: ErasureReceipt) -> dict[str, Any]:
    """What is told of an erasure: never what it erases, but for a digest of its name."""
    return {
        "id": receipt.id,
        "erases": receipt.scope.value,
        "sha256": receipt.digest,
        "by": receipt.by,
        "requested": format_timestamp(receipt.requested),
        "position": format_position(receipt.position),
        "steps": [_step_document(receipt, each) for each in STEPS],
        "counts": dict(receipt.counts),
        "completed": None if receipt.completed is None else format_timestamp(receipt.completed),
    }


def _step_document(receipt: ErasureReceipt, step: str) -> dict[str, Any]:
    at = receipt.steps.get(step)
    waiting = {"step": step, "state": "waiting", "at": None}
    return waiting if at is None else {"step": step, "state": "done", "at": format_timestamp(at)}


class _ErasureRoutes:
    def __init__(self, erasures: Erasures) -> None:
        self._erasures = erasures

    @serves(resource_operations.ERASE_EVENT)
    async def erase_event(self, request: web.Request) -> web.Response:
        return await self._accepted(ErasureRequest.of_event(request.match_info["id"], request.query))

    @serves(resource_operations.ERASE_MANY)
    async def erase_many(self, request: web.Request) -> web.Response:
        return await self._accepted(ErasureRequest.of_many(request.query))

    async def _accepted(self, wanted: ErasureRequest) -> web.Response:
        """202: it is durable that it will be done, and from now on nobody is shown it."""
        receipt = await asyncio.to_thread(self._erasures.ask, wanted)
        headers = {"Location": f"/erasures/{receipt.id}"}
        return json_response(erasure_document(receipt), status=202, headers=headers)

    @serves(resource_operations.FIND_ERASURE)
    async def find(self, request: web.Request) -> web.Response:
        return json_response(erasure_document(await asyncio.to_thread(self._erasures.find, request.match_info["id"])))

    @serves(resource_operations.ERASURES)
    async def page(self, request: web.Request) -> web.Response:
        cursor = parse_position(request.query.get("cursor", "earliest"))
        page = await asyncio.to_thread(self._erasures.page, cursor, parse_page_size(request))
        following = None if page.next is None else format_position(page.next)
        return json_response({"erasures": [erasure_document(each) for each in page.receipts], "next": following})
