"""`/tokens` and `/policy`: create, list and revoke access tokens; load, see and remove the access policy.

`TokenManager` is pure over the registry port and blocks, so call it from a thread. Handlers raise; the middleware
writes the problem document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from aiohttp import web

from triplewire.http.openapi import resource_operations, serves
from triplewire.http.resources.bodies import json_response, read_json
from triplewire.model import format_position, parse_position
from triplewire.model.clock import Clock, format_timestamp
from triplewire.model.errors import BadRequest, BodyTooLarge, Conflict, InvalidField, NotFound, UnknownMediaType
from triplewire.security import parse_policy
from triplewire.security.policy import POLICY_BYTES
from triplewire.security.principals import Principal
from triplewire.security.tokens import (
    TOKEN_CHARACTERS,
    TOKEN_GRANTS,
    AccessToken,
    format_token,
    hash_secret,
    new_id,
    new_secret,
    parse_lifetime,
)
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import (
    TOKEN,
    PolicyStore,
    PolicyVersion,
    read_tokens,
    token_from_change,
    token_to_value,
)

TOKENS: Final = 10_000
"""Tokens that there may be, revoked ones among them: some 10 MB in each edge. Those that are good for nothing make
room."""

TOKEN_BODY_BYTES: Final = 64 * 1024
"""The JSON that asks for a token: all that it may have."""


_TOKEN_FIELDS = ("name", "allow", "roles", "expires")


@dataclass(frozen=True)
class TokenRequest:
    """A token that somebody wants: what for, what it allows (`publish:home`), its roles, and how long it is good."""

    name: str
    allow: tuple[str, ...]
    roles: tuple[str, ...] = ()
    expires: str | None = None
    """A lifetime such as `30d`; None is for good."""

    @classmethod
    def from_json(cls, value: object) -> TokenRequest:
        """From the body of a request. Raises InvalidField, and says which field does not fit."""
        if not isinstance(value, dict):
            raise InvalidField("", "the body must be a JSON object")
        unknown = sorted(set(value) - set(_TOKEN_FIELDS))
        if unknown:
            raise InvalidField(unknown[0], f"{unknown[0]!r} is not known here; {', '.join(_TOKEN_FIELDS)} are")
        expires = value.get("expires")
        if not isinstance(expires, str | None):
            raise InvalidField("expires", "expires must be a lifetime such as 30d")
        return cls(_parse_name(value.get("name")), _parse_texts(value, "allow"), _parse_texts(value, "roles"), expires)


class TokenManager:
    """Those that there are, as the registry holds them."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    def create(self, order: TokenRequest) -> tuple[AccessToken, str]:
        """The token, and its text, which is shown once. Raises InvalidField or BadRequest for an order that
        makes no sense, Conflict where there are too many."""
        _check_token_request(order)
        now = self._clock.now()
        expires = None if order.expires is None else now + parse_lifetime(order.expires)
        id, secret = new_id(), new_secret()
        made = AccessToken(id, order.name, hash_secret(secret), order.allow, order.roles, now, expires)
        self._registry.put(
            [*((TOKEN, each, None) for each in self._in_the_way(now)), (TOKEN, id, token_to_value(made))]
        )
        return made, format_token(id, secret)

    def all(self) -> Sequence[AccessToken]:
        """In the order in which they were made."""
        return sorted(read_tokens(self._registry), key=lambda each: each.created)

    def now(self) -> int:
        """By which it is told whether a token is good."""
        return self._clock.now()

    def find(self, id: str) -> AccessToken:
        """Raises NotFound."""
        change = self._registry.get(TOKEN, id)
        if change is None:
            raise NotFound(f"there is no token {id}")
        return token_from_change(change)

    def revoke(self, id: str) -> AccessToken:
        """From now on it is good for nothing, and who came in by it is sent away. It stays in the list. Raises
        NotFound."""
        found = self.find(id)
        if found.revoked is not None:
            return found
        gone = replace(found, revoked=self._clock.now())
        self._registry.put([(TOKEN, id, token_to_value(gone))])
        return gone

    def _in_the_way(self, now: int) -> list[str]:
        """Where there are as many as may be, those that are good for nothing."""
        found = read_tokens(self._registry)
        if len(found) < TOKENS:
            return []
        gone = [each.id for each in found if each.state(now) != "good"]
        if not gone:
            raise Conflict(f"there are {TOKENS} tokens, which is the most; revoke some")
        return gone


def _check_token_request(order: TokenRequest) -> None:
    if not order.allow:
        raise InvalidField("allow", "allow must say what the token lets do: publish:home, consume:city-*, query, admin")
    if len(order.allow) + len(order.roles) > TOKEN_GRANTS:
        raise InvalidField("allow", f"a token has at most {TOKEN_GRANTS} grants and roles")
    for field, texts in (("name", (order.name,)), ("allow", order.allow), ("roles", order.roles)):
        for text in texts:
            _check_text(field, text)
    Principal.granted("", order.allow)


def _check_text(field: str, text: str) -> None:
    if not text or not text.isprintable() or len(text) > TOKEN_CHARACTERS:
        raise InvalidField(
            field, f"{field} must be printable text of at most {TOKEN_CHARACTERS} characters, not {text!r}"
        )


def _parse_name(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidField("name", "name must say what the token is for")
    return value


def _parse_texts(value: dict[str, object], field: str) -> tuple[str, ...]:
    found = value.get(field, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidField(field, f"{field} must be a list of texts")
    return tuple(found)


# `/tokens`: the routes of tokens. Errors are raised; whoever serves them says them.


def token_routes(tokens: TokenManager) -> list[web.RouteDef]:
    issuances = _TokenRoutes(tokens)
    return [
        web.post("/tokens", issuances.create),
        web.get("/tokens", issuances.all),
        web.get("/tokens/{id}", issuances.find),
        web.delete("/tokens/{id}", issuances.revoke),
    ]


def token_document(token: AccessToken, now: int) -> dict[str, Any]:
    """What is told of a token; nothing by which anybody could come in."""
    return {
        "id": token.id,
        "name": token.name,
        "allow": list(token.allows),
        "roles": list(token.roles),
        "state": token.state(now),
        "created": format_timestamp(token.created),
        "expires": None if token.expires is None else format_timestamp(token.expires),
        "revoked": None if token.revoked is None else format_timestamp(token.revoked),
    }


class _TokenRoutes:
    def __init__(self, tokens: TokenManager) -> None:
        self._tokens = tokens

    @serves(resource_operations.CREATE_TOKEN)
    async def create(self, request: web.Request) -> web.Response:
        """201, with the token itself: the only answer that ever has it."""
        given = await read_json(request, TOKEN_BODY_BYTES)
        made, text = await asyncio.to_thread(self._tokens.create, TokenRequest.from_json(given))
        headers = {"Location": f"/tokens/{made.id}", "Cache-Control": "no-store"}
        return json_response({**self._told(made), "token": text}, status=201, headers=headers)

    @serves(resource_operations.TOKENS)
    async def all(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._tokens.all)
        return json_response({"tokens": [self._told(each) for each in found]})

    @serves(resource_operations.FIND_TOKEN)
    async def find(self, request: web.Request) -> web.Response:
        return json_response(self._told(await asyncio.to_thread(self._tokens.find, request.match_info["id"])))

    @serves(resource_operations.REVOKE_TOKEN)
    async def revoke(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._tokens.revoke, request.match_info["id"])
        return web.Response(status=204)

    def _told(self, token: AccessToken) -> dict[str, Any]:
        return token_document(token, self._tokens.now())


# `/policy`: the routes of the policy. Errors are raised; whoever serves them says them.

_POLICY_TYPES = (resource_operations.TOML_TYPE, "text/plain")


def policy_routes(policies: PolicyStore) -> list[web.RouteDef]:
    served = _PolicyRoutes(policies)
    return [
        web.get("/policy", served.find),
        web.put("/policy", served.load),
        web.delete("/policy", served.remove),
        web.get("/policy/versions", served.versions),
    ]


def policy_document(enacted: PolicyVersion) -> dict[str, Any]:
    """What is told of a version beside its text; one without rules says that there was no policy from then on."""
    told = {"version": format_position(enacted.version)}
    policy = enacted.policy
    return {**told, "rules": None if policy is None else _rule_counts(len(policy.see.rules), len(policy.publish.rules))}


def _rule_counts(see: int, publish: int) -> dict[str, int]:
    return {"see": see, "publish": publish}


class _PolicyRoutes:
    """The registry waits for disks: in threads."""

    def __init__(self, policies: PolicyStore) -> None:
        self._policies = policies

    @serves(resource_operations.FIND_POLICY)
    async def find(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._found, request.query.get("version"))
        headers = {"ETag": f'"{format_position(found.version)}"'}
        return web.Response(text=found.text, content_type=resource_operations.TOML_TYPE, headers=headers)

    def _found(self, version: str | None) -> PolicyVersion:
        found = self._policies.current() if version is None else self._policies.version(parse_position(version))
        if found.text is None:
            raise NotFound("there is no policy in force" if version is None else "there was no policy from there on")
        return found

    @serves(resource_operations.LOAD_POLICY)
    async def load(self, request: web.Request) -> web.Response:
        text = await _read_policy(request)
        if request.query.get("dry_run") == "1":
            policy = await asyncio.to_thread(parse_policy, text)
            return json_response(
                {"version": None, "rules": _rule_counts(len(policy.see.rules), len(policy.publish.rules))}
            )
        loaded = await asyncio.to_thread(self._policies.load, text)
        return json_response(policy_document(loaded), headers={"Location": "/policy"})

    @serves(resource_operations.REMOVE_POLICY)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._policies.remove)
        return web.Response(status=204)

    @serves(resource_operations.POLICY_VERSIONS)
    async def versions(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(lambda: list(self._policies.versions()))
        return json_response({"versions": [policy_document(each) for each in found]})


async def _read_policy(request: web.Request) -> str:
    if request.content_type not in _POLICY_TYPES:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), _POLICY_TYPES)
    if (request.content_length or 0) > POLICY_BYTES:
        raise BodyTooLarge("the policy", POLICY_BYTES)
    try:
        return (await request.read()).decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the policy is not UTF-8 at byte {error.start}") from None
