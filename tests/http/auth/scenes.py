"""A whole edge, as it is composed for production, with a closed door and tokens of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import aiohttp
from aiohttp import hdrs, web

from tests.http.harness import Echo
from triplewire.config import Settings
from triplewire.http.app import application
from triplewire.http.openapi import Operation, operation_of
from triplewire.http.resources.access_control import TokenManager, TokenRequest
from triplewire.http.server import make_runner
from triplewire.model.clock import ManualClock, SystemClock
from triplewire.security import Verb
from triplewire.security.tokens import format_token, new_id, new_secret
from triplewire.service.access import open_token_registry
from triplewire.service.edge import open_edge_parts

STREAM = "home"
PARTS = (STREAM, "1", "0000000000000001")
"""What may stand in the place of other parts of a path."""


@dataclass(frozen=True)
class Route:
    """One of the router's, with an address that leads to it."""

    method: str
    path: str
    operation: Operation

    @property
    def scopes(self) -> list[str]:
        return [f"{verb}:{STREAM}" if self.operation.stream else str(verb) for verb in self.operation.verbs]

    def others(self) -> list[str]:
        """All that the operation does not need: other verbs, and its own verbs on another stream."""
        verbs = [str(verb) for verb in Verb if verb not in self.operation.verbs]
        return [*verbs, *(f"{verb}:office" for verb in self.operation.verbs if self.operation.stream)]


@dataclass(frozen=True)
class Bad:
    """Texts of tokens by what they are."""

    revoked: str
    expired: str
    unknown: str


@dataclass(frozen=True)
class Scene:
    url: str
    routes: list[Route]
    tokens: TokenManager
    bad: Bad
    session: aiohttp.ClientSession
    made: dict[tuple[str, ...], str] = field(default_factory=dict)

    async def status(self, route: Route, headers: dict[str, str] | None = None) -> int:
        """What a request gets that says nothing else. An answer that has begun is not waited for."""
        async with self.session.request(
            route.method, self.url + route.path, headers=headers, allow_redirects=False
        ) as response:
            if response.status == 401:
                assert response.headers[hdrs.WWW_AUTHENTICATE].startswith("Bearer")
                assert response.content_type == "application/problem+json" or route.method == hdrs.METH_HEAD
            return response.status

    def token(self, *allow: str) -> str:
        """One for each set of grants: to make one is to wait for the disk."""
        if allow not in self.made:
            self.made[allow] = self.tokens.create(TokenRequest("test", allow))[1]
        return self.made[allow]


def routes_of(app: web.Application) -> list[Route]:
    found = []
    for route in app.router.routes():
        operation = operation_of(route.handler)
        assert operation is not None, f"{route} serves no operation"
        assert route.resource is not None
        found.append(Route(route.method, path_to(route.resource), operation))
    return found


def path_to(resource: web.AbstractResource) -> str:
    """An address that leads to a resource, and names the stream where it names one."""
    path, pattern = resource.canonical, resource.get_info().get("pattern")
    names = [part[1:-1] for part in path.split("/") if part[:1] == "{"]
    for values in product(*((STREAM,) if name == "stream" else PARTS for name in names)):
        made = path
        for name, value in zip(names, values, strict=True):
            made = made.replace(f"{{{name}}}", value)
        if pattern is None or pattern.fullmatch(made):
            return made
    raise AssertionError(f"nothing leads to {path}; add to PARTS what it takes")


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    settings = Settings(data=folder, auth="closed")
    with open_edge_parts(settings) as parts:
        app = application(replace(parts, answers=Echo()))
        runner = make_runner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        access = open_token_registry(settings, SystemClock())
        tokens, past = TokenManager(access, SystemClock()), TokenManager(access, ManualClock())
        gone, revoked = tokens.create(TokenRequest("gone", ("*",)))
        tokens.revoke(gone.id)
        _, expired = past.create(TokenRequest("old", ("*",), expires="1s"))
        bad = Bad(revoked, expired, format_token(new_id(), new_secret()))
        try:
            async with aiohttp.ClientSession() as session:
                yield Scene(f"http://127.0.0.1:{runner.addresses[0][1]}", routes_of(app), tokens, bad, session)
        finally:
            await runner.cleanup()
            access.close()
