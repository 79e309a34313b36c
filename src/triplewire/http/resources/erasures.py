"""`DELETE /events` and `/erasures`: request erasure, and read its receipts.

`Erasures` is pure over the registry port and blocks, so call it from a thread. An erasure holds as soon as it is
durable: from then on no client sees the events that it names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from uuid import uuid4

from aiohttp import web

from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.openapi.documents import ErasureDocument, ErasureStepDocument
from triplewire.http.resources.bodies import json_response
from triplewire.http.resources.registry_resource import RegistryResource, handle_find, handle_page
from triplewire.model import ErasureScope, format_position
from triplewire.model.clock import Clock, format_timestamp
from triplewire.model.errors import BadRequest
from triplewire.rdf import check_id
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.storage.registry.erasure import ERASURE, STEPS, ErasureReceipt, receipt_from_change, request_entries
from triplewire.storage.registry.ports import Registry

BY = "by"
_FORBIDDEN = "\"'\\"


@dataclass(frozen=True)
class ErasureRequest:
    """An erasure to carry out, and who requests it."""

    scope: ErasureScope
    name: str
    by: str | None = None

    @classmethod
    def of_event(cls, id: str, query: Mapping[str, str]) -> ErasureRequest:
        """Parse `DELETE /events/{id}`. Raises BadRequest."""
        _check_parameters(query, {BY})
        return cls(ErasureScope.EVENT, check_id(id), _parse_text(BY, query.get(BY)))

    @classmethod
    def of_many(cls, query: Mapping[str, str]) -> ErasureRequest:
        """Parse `DELETE /events`. Raises BadRequest unless it names either a source or a subject."""
        _check_parameters(query, {ErasureScope.SOURCE, ErasureScope.SUBJECT, BY})
        source, subject = (
            _parse_text(ErasureScope.SOURCE, query.get(ErasureScope.SOURCE)),
            query.get(ErasureScope.SUBJECT),
        )
        by = _parse_text(BY, query.get(BY))
        if (source is None) == (subject is None):
            raise BadRequest(
                "give either ?source= or ?subject=; DELETE /events/{id} erases one event, "
                "and all events cannot be erased at once"
            )
        return (
            cls(ErasureScope.SOURCE, source, by)
            if source is not None
            else cls(ErasureScope.SUBJECT, _parse_iri(subject or ""), by)
        )


class Erasures(RegistryResource[ErasureReceipt]):
    """Requests erasures, and finds their receipts in the registry, in order of their last change."""

    kind = ERASURE
    noun = "receipt"
    from_change = staticmethod(receipt_from_change)

    def __init__(self, registry: Registry, clock: Clock) -> None:
        super().__init__(registry)
        self._clock = clock

    def request(self, wanted: ErasureRequest) -> ErasureReceipt:
        """Return the receipt when the erasure is durable. From then on no client sees what it names."""
        now = self._clock.now()
        digest = sha256(wanted.name.encode()).hexdigest()
        receipt = ErasureReceipt(uuid4().hex, wanted.scope, digest, now, wanted.by).done("hidden", now)
        position, _ = self._registry.put(request_entries(receipt, wanted.name))
        return replace(receipt, position=position)


def _check_parameters(query: Mapping[str, str], known: set[str]) -> None:
    for name in query:
        if name not in known:
            raise BadRequest(f"there is no parameter {name}; there are {', '.join(sorted(known))}")


def _parse_text(name: str, text: str | None) -> str | None:
    """A parameter, checked like the header of a published event."""
    if text is None:
        return None
    if len(text) > HEADER_CHARACTERS:
        raise BadRequest(f"{name} has {len(text)} characters; at most {HEADER_CHARACTERS} are allowed")
    if not text or not text.isprintable() or any(character in _FORBIDDEN for character in text):
        raise BadRequest(f"{name} must be printable text without quotes and backslashes, not {text!r}")
    return text


def _parse_iri(text: str) -> str:
    try:
        return check_id(text)
    except BadRequest:
        raise BadRequest(f"subject must be an absolute IRI, without angle brackets, not {text[:60]!r}") from None


def erasure_routes(erasures: Erasures) -> list[web.RouteDef]:
    @serves(resource_operations.ERASE_EVENT)
    async def erase_event(request: web.Request) -> web.Response:
        return await accept(ErasureRequest.of_event(request.match_info["id"], request.query))

    @serves(resource_operations.ERASE_MANY)
    async def erase_many(request: web.Request) -> web.Response:
        return await accept(ErasureRequest.of_many(request.query))

    async def accept(wanted: ErasureRequest) -> web.Response:
        """202: the request is durable, and no client sees the events from now on."""
        receipt = await asyncio.to_thread(erasures.request, wanted)
        headers = {"Location": f"/erasures/{receipt.id}"}
        return json_response(erasure_document(receipt).to_json(), status=202, headers=headers)

    return routes_of(
        erase_event,
        erase_many,
        handle_page(resource_operations.ERASURES, "erasures", erasures.page, erasure_document),
        handle_find(resource_operations.FIND_ERASURE, lambda id, by: erasure_document(erasures.find(id, by))),
    )


def erasure_document(receipt: ErasureReceipt) -> ErasureDocument:
    """A receipt: the erased name is only there as a digest."""
    return ErasureDocument(
        id=receipt.id,
        erases=receipt.scope,
        sha256=receipt.digest,
        by=receipt.by,
        requested=format_timestamp(receipt.requested),
        position=format_position(receipt.position),
        steps=[_step_document(receipt, each) for each in STEPS],
        counts=dict(receipt.counts),
        completed=None if receipt.completed is None else format_timestamp(receipt.completed),
    )


def _step_document(receipt: ErasureReceipt, step: str) -> ErasureStepDocument:
    at = receipt.steps.get(step)
    if at is None:
        return ErasureStepDocument(step=step, state="waiting", at=None)
    return ErasureStepDocument(step=step, state="done", at=format_timestamp(at))
