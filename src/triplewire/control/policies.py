"""`/policy`: the routes of the policy. Errors are raised; whoever serves them says them."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from triplewire.access import parse_policy
from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.catalogue import governing
from triplewire.control.replies import reply
from triplewire.model import format_position, parse_position
from triplewire.model.errors import BadRequest, BodyTooLarge, NotFound, UnknownMediaType
from triplewire.storage.registry.security import PolicyStore, PolicyVersion

_TYPES = (governing.TOML, "text/plain")


def routes(policies: PolicyStore) -> list[web.RouteDef]:
    served = _Policies(policies)
    return [
        web.get("/policy", served.find),
        web.put("/policy", served.load),
        web.delete("/policy", served.remove),
        web.get("/policy/versions", served.versions),
    ]


def document(enacted: PolicyVersion) -> dict[str, Any]:
    """What is told of a version beside its text; one without rules says that there was no policy from then on."""
    told = {"version": format_position(enacted.version)}
    policy = enacted.policy
    return {**told, "rules": None if policy is None else _rules(len(policy.see.rules), len(policy.publish.rules))}


def _rules(see: int, publish: int) -> dict[str, int]:
    return {"see": see, "publish": publish}


class _Policies:
    """The registry waits for disks: in threads."""

    def __init__(self, policies: PolicyStore) -> None:
        self._policies = policies

    @serves(governing.FIND_POLICY)
    async def find(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._found, request.query.get("version"))
        headers = {"ETag": f'"{format_position(found.version)}"'}
        return web.Response(text=found.text, content_type=governing.TOML, headers=headers)

    def _found(self, version: str | None) -> PolicyVersion:
        found = self._policies.current() if version is None else self._policies.version(parse_position(version))
        if found.text is None:
            raise NotFound("there is no policy in force" if version is None else "there was no policy from there on")
        return found

    @serves(governing.LOAD_POLICY)
    async def load(self, request: web.Request) -> web.Response:
        text = await _text(request)
        if request.query.get("dry_run") == "1":
            policy = await asyncio.to_thread(parse_policy, text)
            return reply({"version": None, "rules": _rules(len(policy.see.rules), len(policy.publish.rules))})
        loaded = await asyncio.to_thread(self._policies.load, text)
        return reply(document(loaded), headers={"Location": "/policy"})

    @serves(governing.REMOVE_POLICY)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._policies.remove)
        return web.Response(status=204)

    @serves(governing.POLICY_VERSIONS)
    async def versions(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(lambda: list(self._policies.versions()))
        return reply({"versions": [document(each) for each in found]})


async def _text(request: web.Request) -> str:
    if request.content_type not in _TYPES:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), _TYPES)
    if (request.content_length or 0) > limits.POLICY_BYTES:
        raise BodyTooLarge("the policy", limits.POLICY_BYTES)
    try:
        return (await request.read()).decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the policy is not UTF-8 at byte {error.start}") from None
