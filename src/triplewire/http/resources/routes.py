"""Routes of `/subscriptions`, and of the templates and ontologies that subscriptions use."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.openapi.documents import SubscriptionDocument, WebhookDocument
from triplewire.http.openapi.schemas import ABSENT, present
from triplewire.http.resources.bodies import JSON, SUBSCRIPTION_BODY_BYTES, json_response, read_json
from triplewire.http.resources.bulk import NDJSON
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import OntologyManager, ontology_routes
from triplewire.http.resources.registry_resource import (
    handle_delete,
    handle_find,
    handle_page,
    register_json,
    register_lines,
)
from triplewire.http.resources.subscription_requests import SubscriptionRequest, format_start, parse_bulk_subscription
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.http.resources.templates import template_routes
from triplewire.model import Subscription, format_position
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest
from triplewire.security import Principal, Verb
from triplewire.storage.registry.subscriptions import Lane, narrowing_fields


def registry_routes(
    subscriptions: SubscriptionManager, ontologies: OntologyManager, explainer: SubscriptionExplainer
) -> list[web.RouteDef]:
    """Routes of subscriptions, templates and ontologies; notifications are delivered elsewhere."""
    return [
        *subscription_routes(subscriptions, explainer),
        *template_routes(subscriptions.templates),
        *ontology_routes(ontologies),
    ]


def subscription_routes(subscriptions: SubscriptionManager, explainer: SubscriptionExplainer) -> list[web.RouteDef]:
    special = _SubscriptionRoutes(subscriptions, explainer)
    return routes_of(
        special.create,
        handle_page(resource_operations.SUBSCRIPTIONS, "subscriptions", subscriptions.page, subscription_document),
        handle_find(resource_operations.FIND_SUBSCRIPTION, special.read),
        handle_delete(resource_operations.END_SUBSCRIPTION, subscriptions.end),
        special.explain,
    )


class _SubscriptionRoutes:
    """Operations that only subscriptions have. The registry and the SPARQL parser run in threads."""

    def __init__(self, subscriptions: SubscriptionManager, explainer: SubscriptionExplainer) -> None:
        self._subscriptions = subscriptions
        self._explainer = explainer

    @serves(resource_operations.MAKE_SUBSCRIPTION)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """An object creates one subscription, an array all that it holds or none, each line one or not. A dry run
        creates none."""
        dry_run = _is_dry_run(request)
        if request.content_type == NDJSON and not dry_run:
            return await register_lines(request, self._subscriptions, parse_bulk_subscription)
        given = await read_json(request, SUBSCRIPTION_BODY_BYTES, (JSON, NDJSON))
        if dry_run:
            asked = SubscriptionRequest.from_json(given)
            return json_response((await asyncio.to_thread(self._explainer.dry_run, asked, caller(request))).value())
        return await register_json(
            given, request, self._subscriptions, SubscriptionRequest.from_json, new_subscription_document
        )

    def read(self, id: str, by: Principal) -> SubscriptionDocument:
        """One subscription, with its sharing, lane, webhook and lease."""
        found, lease = self._subscriptions.find(id, by), self._subscriptions.lease(id)
        lane, hook = self._subscriptions.lane(found), self._subscriptions.hook(id)
        return subscription_document(
            found,
            # The number of other subscribers with the same query is confidential.
            sharing=self._subscriptions.sharing.count(id) if by.may(Verb.ADMIN) else ABSENT,
            lane=ABSENT if lane is None else _lane_document(lane),
            webhook=ABSENT
            if hook is None
            else WebhookDocument(url=hook.url, state=hook.state.value, attempts=present(hook.attempts)),
            expires=ABSENT if lease is None else format_timestamp(lease.until),
        )

    @serves(resource_operations.EXPLAIN_SUBSCRIPTION)
    async def explain(self, request: web.Request) -> web.Response:
        """JSON, or plain text if the client accepts that."""
        event = request.query.get("event")
        if not event:
            raise BadRequest("event must name an event: ?event= with its id or its position")
        found = await asyncio.to_thread(self._explainer.explain, request.match_info["id"], event, caller(request))
        if "text/plain" in request.headers.get("Accept", ""):
            return web.Response(text=found.text())
        return json_response(found.value())


def subscription_document(found: Subscription, **members: Any) -> SubscriptionDocument:  # noqa: ANN401
    """The members that it was created with, and others."""
    if found.template is not None:
        name, version = found.template
        members |= {"template": name, "version": format_position(version), "values": dict(found.values)}
    return SubscriptionDocument(
        id=found.id,
        sparql=present(found.sparql),
        **orjson.loads(found.filter or "{}"),
        kind=found.kind.value,
        **{"stream": None, **narrowing_fields(found)},
        ttl=present(found.ttl),
        entailment=present(found.entailment),
        created=format_timestamp(found.created),
        since=format_position(found.made),
        from_=ABSENT if found.begins is None else format_start(found.begins),
        notifications=f"/subscriptions/{found.id}/notifications",
        **members,
    )


def new_subscription_document(found: Subscription, asked: SubscriptionRequest) -> SubscriptionDocument:
    """The response to its creator: it has the secret of the webhook, if that was generated here."""
    return subscription_document(found, webhook=ABSENT if asked.webhook is None else asked.webhook.document())


def _lane_document(lane: Lane) -> dict[str, Any]:
    """The lane of a slow subscription: since when, and the CPU time of an event then."""
    return {"name": "slow", "since": format_position(lane.since), "milliseconds_per_event": round(lane.cost * 1_000, 3)}


def _is_dry_run(request: web.Request) -> bool:
    given = request.query.get("dry_run", "0")
    if given not in ("0", "1"):
        raise BadRequest(f"dry_run must be 0 or 1, not {given!r}")
    return given == "1"
