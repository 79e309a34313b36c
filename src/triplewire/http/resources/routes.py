"""Routes of `/subscriptions`, `/templates` and `/ontologies`. Handlers raise; the middleware writes the problem
document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.openapi import resource_operations, serves
from triplewire.http.resources import documents
from triplewire.http.resources.bodies import (
    JSON,
    SUBSCRIPTION_BODY_BYTES,
    json_response,
    parse_page_size,
    read_body_within,
    read_json,
)
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import ONTOLOGY_BYTES, OntologyManager, format_ontology
from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.model import Subscription, format_position, parse_position
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf import SYNTAXES, TURTLE, find_syntax, negotiate
from triplewire.security import Principal, Verb


def registry_routes(
    subscriptions: SubscriptionManager, ontologies: OntologyManager, insights: SubscriptionExplainer
) -> list[web.RouteDef]:
    """Everything about ontologies and templates, and about subscriptions but the delivery of their notifications."""
    questions, vocabularies = _SubscriptionRoutes(subscriptions, insights), _OntologyRoutes(ontologies)
    forms = _TemplateRoutes(subscriptions)
    return [
        web.post("/subscriptions", questions.make),
        web.get("/subscriptions", questions.page),
        web.get("/subscriptions/{id}", questions.find),
        web.delete("/subscriptions/{id}", questions.end),
        web.get("/subscriptions/{id}/explain", questions.explain),
        web.get("/templates", forms.all),
        web.put("/templates/{name}", forms.put),
        web.get("/templates/{name}", forms.find),
        web.delete("/templates/{name}", forms.remove),
        web.get("/ontologies", vocabularies.all),
        web.put("/ontologies/{name}", vocabularies.load),
        web.get("/ontologies/{name}", vocabularies.find),
        web.delete("/ontologies/{name}", vocabularies.remove),
    ]


class _SubscriptionRoutes:
    """The registry waits for disks and the SPARQL parser takes its time: both happen in threads."""

    def __init__(self, subscriptions: SubscriptionManager, insights: SubscriptionExplainer) -> None:
        self._subscriptions = subscriptions
        self._insights = insights

    @serves(resource_operations.MAKE_SUBSCRIPTION)
    async def make(self, request: web.Request) -> web.StreamResponse:
        """An object makes one subscription, an array makes all that it holds or none, lines each make one or not. A dry
        run of an object makes none."""
        if _is_dry_run(request):
            wish = SubscriptionRequest.from_json(await _read_json(request))
            return json_response((await asyncio.to_thread(self._insights.rehearse, wish, caller(request))).value())
        if request.content_type == documents.MEDIA_TYPE:
            make = partial(self._subscriptions.make_each, by=caller(request))
            return await documents.bulk_response(
                request, partial(documents.answer_lines, documents.parse_bulk_subscription, make)
            )
        given = await _read_json(request)
        if isinstance(given, list):
            wishes = [SubscriptionRequest.from_json(each) for each in given]
            made = await self._make(wishes, caller(request))
            return json_response(
                [documents.new_subscription_document(*each) for each in zip(made, wishes, strict=True)], status=201
            )
        wish = SubscriptionRequest.from_json(given)
        (one,) = await self._make([wish], caller(request))
        return json_response(
            documents.new_subscription_document(one, wish), status=201, headers={"Location": f"/subscriptions/{one.id}"}
        )

    @serves(resource_operations.SUBSCRIPTIONS)
    async def page(self, request: web.Request) -> web.Response:
        cursor = parse_position(request.query.get("cursor", "earliest"))
        page = await asyncio.to_thread(self._subscriptions.page, cursor, parse_page_size(request), caller(request))
        following = None if page.next is None else format_position(page.next)
        return json_response(
            {"subscriptions": [documents.subscription_document(each) for each in page.things], "next": following}
        )

    @serves(resource_operations.FIND_SUBSCRIPTION)
    async def find(self, request: web.Request) -> web.Response:
        return json_response(await asyncio.to_thread(self._found, request.match_info["id"], caller(request)))

    def _found(self, id: str, by: Principal) -> dict[str, Any]:
        """With what is told of one alone: how many ask the same, in which lane it is, and until when it stays."""
        found, lease = self._subscriptions.find(id, by), self._subscriptions.lease(id)
        # How many others ask the same is nothing that they have said to each other.
        shared = {"sharing": self._subscriptions.sharing.count(id)} if by.may(Verb.ADMIN) else {}
        told = {**documents.subscription_document(found), **shared}
        lane = self._subscriptions.lane(found)
        told |= {} if lane is None else {"lane": documents.lane_document(lane)}
        hook = self._subscriptions.hook(id)
        told |= {} if hook is None else {"webhook": documents.webhook_document(hook)}
        return told if lease is None else {**told, "expires": format_timestamp(lease.until)}

    @serves(resource_operations.END_SUBSCRIPTION)
    async def end(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._subscriptions.end, request.match_info["id"], caller(request))
        return web.Response(status=204)

    @serves(resource_operations.EXPLAIN_SUBSCRIPTION)
    async def explain(self, request: web.Request) -> web.Response:
        """As JSON, or as plain text for who wants that."""
        event = request.query.get("event")
        if not event:
            raise BadRequest("event must name an event: ?event= with its id, or with its position")
        insight = await asyncio.to_thread(self._insights.explain, request.match_info["id"], event, caller(request))
        if "text/plain" in request.headers.get("Accept", ""):
            return web.Response(text=insight.text())
        return json_response(insight.value())

    async def _make(self, wishes: Sequence[SubscriptionRequest], by: Principal) -> list[Subscription]:
        if not wishes:
            raise BadRequest("the array holds no subscription")
        return await asyncio.to_thread(self._subscriptions.make, wishes, by)


class _OntologyRoutes:
    """Like subscriptions: disks and parsers are waited for in threads."""

    def __init__(self, ontologies: OntologyManager) -> None:
        self._ontologies = ontologies

    @serves(resource_operations.LOAD_ONTOLOGY)
    async def load(self, request: web.Request) -> web.Response:
        """In place of what had the name, if anything had."""
        syntax = find_syntax(request.headers.get("Content-Type"))
        name, body = request.match_info["name"], await read_body_within(request, "the ontology", ONTOLOGY_BYTES)
        loaded = await asyncio.to_thread(self._ontologies.load, name, body, syntax)
        return json_response(documents.ontology_document(loaded), headers={"Location": f"/ontologies/{name}"})

    @serves(resource_operations.ONTOLOGIES)
    async def all(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._ontologies.all)
        return json_response({"ontologies": [documents.ontology_document(each) for each in found]})

    @serves(resource_operations.FIND_ONTOLOGY)
    async def find(self, request: web.Request) -> web.Response:
        loaded = await asyncio.to_thread(self._ontologies.find, request.match_info["name"])
        accept = ",".join(request.headers.getall("Accept", ()))
        syntax = negotiate(accept, TURTLE)
        if syntax is None:
            raise NotAcceptable(accept, tuple(each.media_type for each in SYNTAXES))
        body = await asyncio.to_thread(format_ontology, loaded, syntax)
        headers = {"ETag": f'"{format_position(loaded.version)}"', "Vary": "Accept"}
        return web.Response(body=body, content_type=syntax.media_type, headers=headers)

    @serves(resource_operations.REMOVE_ONTOLOGY)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._ontologies.remove, request.match_info["name"])
        return web.Response(status=204)


class _TemplateRoutes:
    """Query texts with parameters."""

    def __init__(self, subscriptions: SubscriptionManager) -> None:
        self._templates = subscriptions.templates

    @serves(resource_operations.PUT_TEMPLATE)
    async def put(self, request: web.Request) -> web.Response:
        """In place of what had the name, if anything had."""
        given, name = await _read_json(request), request.match_info["name"]
        made = await asyncio.to_thread(self._templates.put, name, given)
        return json_response(documents.template_document(made), headers={"Location": f"/templates/{name}"})

    @serves(resource_operations.TEMPLATES)
    async def all(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._templates.all)
        return json_response({"templates": [documents.template_document(each) for each in found]})

    @serves(resource_operations.FIND_TEMPLATE)
    async def find(self, request: web.Request) -> web.Response:
        return json_response(
            documents.template_document(await asyncio.to_thread(self._templates.find, request.match_info["name"]))
        )

    @serves(resource_operations.REMOVE_TEMPLATE)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._templates.remove, request.match_info["name"])
        return web.Response(status=204)


async def _read_json(request: web.Request) -> object:
    return await read_json(request, SUBSCRIPTION_BODY_BYTES, (JSON, documents.MEDIA_TYPE))


def _is_dry_run(request: web.Request) -> bool:
    given = request.query.get("dry_run", "0")
    if given not in ("0", "1"):
        raise BadRequest(f"dry_run must be 1, or 0, not {given!r}")
    return given == "1"
