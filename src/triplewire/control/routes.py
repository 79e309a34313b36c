"""`/subscriptions` and `/ontologies`: the routes of control. Errors are raised; whoever serves them says them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from triplewire.access import Principal, Verb
from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import querying, subscribing
from triplewire.control import bulks, documents
from triplewire.control.bodies import body_of, json_of
from triplewire.control.insights import Insights
from triplewire.control.ontologies import Ontologies, written
from triplewire.control.replies import JSON, page_size, reply
from triplewire.control.subscriptions import Subscriptions
from triplewire.control.wishes import Wish
from triplewire.matching.results import format_timestamp
from triplewire.model import Subscription, format_position, parse_position
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf import SYNTAXES, TURTLE, find_syntax, negotiate


def routes(subscriptions: Subscriptions, ontologies: Ontologies, insights: Insights) -> list[web.RouteDef]:
    """Everything about ontologies and templates, and about subscriptions but the delivery of their notifications."""
    questions, vocabularies = _Subscriptions(subscriptions, insights), _Ontologies(ontologies)
    forms = _Templates(subscriptions)
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


class _Subscriptions:
    """The registry waits for disks and the SPARQL parser takes its time: both happen in threads."""

    def __init__(self, subscriptions: Subscriptions, insights: Insights) -> None:
        self._subscriptions = subscriptions
        self._insights = insights

    @serves(subscribing.MAKE)
    async def make(self, request: web.Request) -> web.StreamResponse:
        """An object makes one subscription, an array makes all that it holds or none, lines each make one or not. A dry
        run of an object makes none."""
        if _dry_run(request):
            wish = Wish.from_json(await _json(request))
            return reply((await asyncio.to_thread(self._insights.rehearse, wish, caller(request))).value())
        if request.content_type == bulks.MEDIA_TYPE:
            make = partial(self._subscriptions.make_each, by=caller(request))
            return await bulks.reply(request, partial(bulks.answered, bulks.wish, make))
        given = await _json(request)
        if isinstance(given, list):
            wishes = [Wish.from_json(each) for each in given]
            made = await self._make(wishes, caller(request))
            return reply([documents.made(*each) for each in zip(made, wishes, strict=True)], status=201)
        wish = Wish.from_json(given)
        (one,) = await self._make([wish], caller(request))
        return reply(documents.made(one, wish), status=201, headers={"Location": f"/subscriptions/{one.id}"})

    @serves(subscribing.PAGE)
    async def page(self, request: web.Request) -> web.Response:
        cursor = parse_position(request.query.get("cursor", "earliest"))
        page = await asyncio.to_thread(self._subscriptions.page, cursor, page_size(request), caller(request))
        following = None if page.next is None else format_position(page.next)
        return reply({"subscriptions": [documents.subscription(each) for each in page.things], "next": following})

    @serves(subscribing.FIND)
    async def find(self, request: web.Request) -> web.Response:
        return reply(await asyncio.to_thread(self._found, request.match_info["id"], caller(request)))

    def _found(self, id: str, by: Principal) -> dict[str, Any]:
        """With what is told of one alone: how many ask the same, in which lane it is, and until when it stays."""
        found, lease = self._subscriptions.find(id, by), self._subscriptions.lease(id)
        # How many others ask the same is nothing that they have said to each other.
        shared = {"sharing": self._subscriptions.sharing.count(id)} if by.may(Verb.ADMIN) else {}
        told = {**documents.subscription(found), **shared}
        lane = self._subscriptions.lane(found)
        told |= {} if lane is None else {"lane": documents.lane(lane)}
        hook = self._subscriptions.hook(id)
        told |= {} if hook is None else {"webhook": documents.webhook(hook)}
        return told if lease is None else {**told, "expires": format_timestamp(lease.until)}

    @serves(subscribing.END)
    async def end(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._subscriptions.end, request.match_info["id"], caller(request))
        return web.Response(status=204)

    @serves(subscribing.EXPLAIN)
    async def explain(self, request: web.Request) -> web.Response:
        """As JSON, or as plain text for who wants that."""
        event = request.query.get("event")
        if not event:
            raise BadRequest("event must name an event: ?event= with its id, or with its position")
        insight = await asyncio.to_thread(self._insights.explain, request.match_info["id"], event, caller(request))
        if "text/plain" in request.headers.get("Accept", ""):
            return web.Response(text=insight.text())
        return reply(insight.value())

    async def _make(self, wishes: Sequence[Wish], by: Principal) -> list[Subscription]:
        if not wishes:
            raise BadRequest("the array holds no subscription")
        return await asyncio.to_thread(self._subscriptions.make, wishes, by)


class _Ontologies:
    """Like subscriptions: disks and parsers are waited for in threads."""

    def __init__(self, ontologies: Ontologies) -> None:
        self._ontologies = ontologies

    @serves(querying.LOAD_ONTOLOGY)
    async def load(self, request: web.Request) -> web.Response:
        """In place of what had the name, if anything had."""
        syntax = find_syntax(request.headers.get("Content-Type"))
        name, body = request.match_info["name"], await body_of(request, "the ontology", limits.ONTOLOGY_BYTES)
        loaded = await asyncio.to_thread(self._ontologies.load, name, body, syntax)
        return reply(documents.ontology(loaded), headers={"Location": f"/ontologies/{name}"})

    @serves(querying.ONTOLOGIES)
    async def all(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._ontologies.all)
        return reply({"ontologies": [documents.ontology(each) for each in found]})

    @serves(querying.FIND_ONTOLOGY)
    async def find(self, request: web.Request) -> web.Response:
        loaded = await asyncio.to_thread(self._ontologies.find, request.match_info["name"])
        accept = ",".join(request.headers.getall("Accept", ()))
        syntax = negotiate(accept, TURTLE)
        if syntax is None:
            raise NotAcceptable(accept, tuple(each.media_type for each in SYNTAXES))
        body = await asyncio.to_thread(written, loaded, syntax)
        headers = {"ETag": f'"{format_position(loaded.version)}"', "Vary": "Accept"}
        return web.Response(body=body, content_type=syntax.media_type, headers=headers)

    @serves(querying.REMOVE_ONTOLOGY)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._ontologies.remove, request.match_info["name"])
        return web.Response(status=204)


class _Templates:
    """Query texts with parameters."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._templates = subscriptions.templates

    @serves(subscribing.PUT_TEMPLATE)
    async def put(self, request: web.Request) -> web.Response:
        """In place of what had the name, if anything had."""
        given, name = await _json(request), request.match_info["name"]
        made = await asyncio.to_thread(self._templates.put, name, given)
        return reply(documents.template(made), headers={"Location": f"/templates/{name}"})

    @serves(subscribing.TEMPLATES)
    async def all(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._templates.all)
        return reply({"templates": [documents.template(each) for each in found]})

    @serves(subscribing.FIND_TEMPLATE)
    async def find(self, request: web.Request) -> web.Response:
        return reply(documents.template(await asyncio.to_thread(self._templates.find, request.match_info["name"])))

    @serves(subscribing.REMOVE_TEMPLATE)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._templates.remove, request.match_info["name"])
        return web.Response(status=204)


async def _json(request: web.Request) -> object:
    return await json_of(request, limits.SUBSCRIPTION_BODY_BYTES, (JSON, bulks.MEDIA_TYPE))


def _dry_run(request: web.Request) -> bool:
    given = request.query.get("dry_run", "0")
    if given not in ("0", "1"):
        raise BadRequest(f"dry_run must be 1, or 0, not {given!r}")
    return given == "1"
