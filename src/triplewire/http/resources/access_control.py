"""`/tokens` and `/policy`: create, list and revoke access tokens; load, read and remove the access policy.

`TokenManager` is pure over the registry port and blocks, so call it from a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from aiohttp import web

from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.openapi.documents import TokenDocument, TokenRequestDocument
from triplewire.http.resources import registry_resource as resource
from triplewire.http.resources.bodies import check_members, json_response, read_json, read_text_within
from triplewire.http.resources.registry_resource import RegistryResource
from triplewire.model import format_position, parse_position
from triplewire.model.clock import Clock, format_timestamp
from triplewire.model.errors import Conflict, InvalidField, NotFound, UnknownMediaType
from triplewire.security import EVERYONE, Policy, parse_policy
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
from triplewire.storage.registry import security as stores
from triplewire.storage.registry.ports import Registry

TOKENS: Final = 10_000
"""Tokens in the registry, with revoked ones: some 10 MB in each edge. At the limit, expired and revoked tokens are
removed."""

TOKEN_BODY_BYTES: Final = 64 * 1024
"""The body of a token request, with all grants and roles that it may have."""


@dataclass(frozen=True)
class TokenRequest:
    """A token to create: its purpose, its grants (`publish:home`), its roles, and its lifetime."""

    name: str
    allow: tuple[str, ...]
    roles: tuple[str, ...] = ()
    expires: str | None = None
    """A lifetime such as `30d`; None is unlimited."""

    @classmethod
    def from_json(cls, value: object) -> TokenRequest:
        """Raises InvalidField with the field that does not fit."""
        if not isinstance(value, dict):
            raise InvalidField("", "the body must be a JSON object")
        check_members(value, "a token", TokenRequestDocument)
        expires = value.get("expires")
        if not isinstance(expires, str | None):
            raise InvalidField("expires", "expires must be a lifetime such as 30d")
        return cls(_parse_name(value.get("name")), _parse_texts(value, "allow"), _parse_texts(value, "roles"), expires)


class TokenManager(RegistryResource[AccessToken]):
    """Creates, finds and revokes tokens in the registry. `most` is the number of tokens that there may be."""

    kind = stores.TOKEN
    noun = "token"
    from_change = staticmethod(stores.token_from_change)

    def __init__(self, registry: Registry, clock: Clock, most: int = TOKENS) -> None:
        super().__init__(registry)
        self._clock = clock
        self._most = most

    def create(self, request: TokenRequest) -> tuple[AccessToken, str]:
        """Return the token and its text, which is shown once. Raises InvalidField or BadRequest, or Conflict at the
        limit."""
        _check_token_request(request)
        now = self._clock.now()
        expires = None if request.expires is None else now + parse_lifetime(request.expires)
        id, secret = new_id(), new_secret()
        made = AccessToken(id, request.name, hash_secret(secret), request.allow, request.roles, now, expires)
        self._registry.put(
            [
                *((stores.TOKEN, each, None) for each in self._find_expendable(now)),
                (stores.TOKEN, id, stores.token_to_value(made)),
            ]
        )
        return made, format_token(id, secret)

    def all(self) -> Sequence[AccessToken]:
        """In the request in which they were made."""
        return sorted(stores.read_tokens(self._registry), key=lambda each: each.created)

    def now(self) -> int:
        """The time by which tokens expire."""
        return self._clock.now()

    def revoke(self, id: str, by: Principal = EVERYONE) -> AccessToken:
        """Refuse a token from now on, and end its sessions. It stays in the list. Raises NotFound."""
        found = self.find(id)
        if found.revoked is not None:
            return found
        revoked = replace(found, revoked=self._clock.now())
        self._registry.put([(stores.TOKEN, id, stores.token_to_value(revoked))])
        return revoked

    def _find_expendable(self, now: int) -> list[str]:
        """The expired and revoked tokens, if there are as many tokens as there may be. Raises Conflict."""
        found = stores.read_tokens(self._registry)
        if len(found) < self._most:
            return []
        expendable = [each.id for each in found if each.state(now) != "good"]
        if not expendable:
            raise Conflict(f"there are {self._most} tokens, which is the limit; revoke some")
        return expendable


def _check_token_request(request: TokenRequest) -> None:
    if not request.allow:
        raise InvalidField("allow", "allow must list grants such as publish:home, consume:city-*, query, admin")
    if len(request.allow) + len(request.roles) > TOKEN_GRANTS:
        raise InvalidField("allow", f"a token has at most {TOKEN_GRANTS} grants and roles")
    for field, texts in (("name", (request.name,)), ("allow", request.allow), ("roles", request.roles)):
        for text in texts:
            _check_text(field, text)
    Principal.granted("", request.allow)


def _check_text(field: str, text: str) -> None:
    if not text or not text.isprintable() or len(text) > TOKEN_CHARACTERS:
        raise InvalidField(
            field, f"{field} must be printable text of at most {TOKEN_CHARACTERS} characters, not {text!r}"
        )


def _parse_name(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidField("name", "name must be a text that says what the token is for")
    return value


def _parse_texts(value: dict[str, object], field: str) -> tuple[str, ...]:
    texts = value.get(field, [])
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise InvalidField(field, f"{field} must be a list of texts")
    return tuple(texts)


def token_routes(tokens: TokenManager) -> list[web.RouteDef]:
    @serves(resource_operations.CREATE_TOKEN)
    async def create(request: web.Request) -> web.Response:
        """201 with the text of the token: no other response ever has it."""
        given = await read_json(request, TOKEN_BODY_BYTES)
        made, text = await asyncio.to_thread(tokens.create, TokenRequest.from_json(given))
        headers = {"Location": f"/tokens/{made.id}", "Cache-Control": "no-store"}
        return json_response({**show(made).to_json(), "token": text}, status=201, headers=headers)

    def show(token: AccessToken) -> TokenDocument:
        return token_document(token, tokens.now())

    return routes_of(
        create,
        resource.handle_list(resource_operations.TOKENS, "tokens", tokens.all, show),
        resource.handle_find(resource_operations.FIND_TOKEN, lambda id, by: show(tokens.find(id, by))),
        resource.handle_delete(resource_operations.REVOKE_TOKEN, tokens.revoke),
    )


def token_document(token: AccessToken, now: int) -> TokenDocument:
    """A token without its secret."""
    return TokenDocument(
        id=token.id,
        name=token.name,
        allow=list(token.allows),
        roles=list(token.roles),
        state=token.state(now),
        created=format_timestamp(token.created),
        expires=None if token.expires is None else format_timestamp(token.expires),
        revoked=None if token.revoked is None else format_timestamp(token.revoked),
    )


_POLICY_TYPES = (resource_operations.TOML_TYPE, "text/plain")


def policy_routes(policies: stores.PolicyStore) -> list[web.RouteDef]:
    served = _PolicyRoutes(policies)
    return routes_of(served.find, served.load, served.remove, served.versions)


def policy_document(enacted: stores.PolicyVersion) -> dict[str, Any]:
    """A version of the policy without its text; `rules` is null if the policy was removed."""
    return {
        "version": format_position(enacted.version),
        "rules": None if enacted.policy is None else _rule_counts(enacted.policy),
    }


def _rule_counts(policy: Policy) -> dict[str, int]:
    return {"see": len(policy.see.rules), "publish": len(policy.publish.rules)}


class _PolicyRoutes:
    def __init__(self, policies: stores.PolicyStore) -> None:
        self._policies = policies

    @serves(resource_operations.FIND_POLICY)
    async def find(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._find, request.query.get("version"))
        headers = {"ETag": f'"{format_position(found.version)}"'}
        return web.Response(text=found.text, content_type=resource_operations.TOML_TYPE, headers=headers)

    def _find(self, version: str | None) -> stores.PolicyVersion:
        found = self._policies.current() if version is None else self._policies.version(parse_position(version))
        if found.text is None:
            raise NotFound(
                "there is no policy in force" if version is None else "the policy was removed at this version"
            )
        return found

    @serves(resource_operations.LOAD_POLICY)
    async def load(self, request: web.Request) -> web.Response:
        text = await _read_policy(request)
        if request.query.get("dry_run") == "1":
            policy = await asyncio.to_thread(parse_policy, text)
            return json_response({"version": None, "rules": _rule_counts(policy)})
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
    return await read_text_within(request, "the policy", POLICY_BYTES)
