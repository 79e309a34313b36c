"""Authentication and authorization of requests: a middleware finds the credential, the principal and the grant that
the operation needs.

The principal is kept with the request, where handlers read it by `caller`. Sessions are open connections with the
principal that used each last: a connection is aborted when its token is revoked or has expired, whatever it is used
for, and the client is refused when it reconnects.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from triplewire.http.openapi import Operation, operation_of
from triplewire.model.cache import BoundedCache
from triplewire.model.clock import Clock
from triplewire.model.errors import Forbidden, Unauthenticated, Unavailable
from triplewire.security import EVERYONE, NOBODY, Grant, Principal
from triplewire.security.principals import ALL_STREAMS, Authenticator
from triplewire.security.tokens import AccessToken, matches_secret, parse_access_token, principal_name
from triplewire.storage.registry.security import TokenCache
from triplewire.storage.registry.streams import check_stream_name

SESSION_SECONDS: Final = 0.1
"""Time between two checks for revoked tokens: some microseconds each."""

EXPIRY_SECONDS: Final = 1.0
"""Time between two checks for expired tokens: a few milliseconds with as many listeners as there may be."""

CACHED_TOKENS: Final = 10_000
"""Tokens whose principals are cached: about 1 kB each."""

TOKEN_PARAMETER = "access_token"
"""Parameter for the token of a browser, which cannot set headers of an EventSource or a WebSocket, and for nothing
else: addresses end up in histories and logs."""
MERCURE_COOKIE = "mercureAuthorization"
"""Cookie for the same, at the address of Mercure. It allows listening only, since pages of others could send it."""
_MERCURE = "/.well-known/mercure"
_READING = (hdrs.METH_GET, hdrs.METH_HEAD)


def credential_of(request: web.Request, operation: Operation) -> str | None:
    """Return the bearer token of a request (RFC 6750), or for reading the password (RFC 7617), since some clients have
    nothing else; None without any. Raises Unauthenticated for another kind."""
    header = request.headers.get(hdrs.AUTHORIZATION)
    if header is None:
        return _listener_credential(request) if operation.is_channel and request.method == hdrs.METH_GET else None
    scheme, _, value = header.partition(" ")
    kind, credential = scheme.lower(), value.strip()
    if kind == "basic" and request.method in _READING:
        # Browsers add passwords to requests of other origins' pages, so these must not change anything.
        credential = _password(credential)
    elif kind != "bearer":
        credential = ""
    if not credential:
        raise Unauthenticated("the header Authorization must be Bearer and a token", given=True)
    return credential


def _password(encoded: str) -> str:
    """Return the password of encoded credentials; an empty text if there is none."""
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _listener_credential(request: web.Request) -> str | None:
    if request.path != _MERCURE:
        return request.query.get(TOKEN_PARAMETER)
    return (
        request.query.get(TOKEN_PARAMETER) or request.query.get("authorization") or request.cookies.get(MERCURE_COOKIE)
    )


class AbortableConnection(Protocol):
    """A connection that can be ended at once."""

    def abort(self) -> None: ...

    def is_closing(self) -> bool: ...


class Sessions:
    """Open connections, each with the principal that used it last."""

    def __init__(
        self,
        clock: Clock,
        version: Callable[[], int] = lambda: 0,
        is_valid: Callable[[Principal], bool] = lambda principal: True,
    ) -> None:
        """`version()` changes whenever a credential may have been revoked; `is_valid` returns whether that of a
        principal is still valid."""
        self._clock = clock
        self._version = version
        self._is_valid = is_valid
        self._open: dict[AbortableConnection, Principal] = {}
        """Closed ones stay until the next check: TLS connections cannot be referred to weakly."""
        self._checked = clock.ticks(), 0

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, principal: Principal, connection: AbortableConnection | None) -> None:
        if connection is not None:
            self._open[connection] = principal

    def check(self) -> int:
        """Abort the connections whose credential is not valid any more, and forget closed ones; return how many were
        aborted. It does so every `EXPIRY_SECONDS`, and at once when the version has changed."""
        now, version = self._clock.ticks(), self._version()
        if version == self._checked[1] and now - self._checked[0] < EXPIRY_SECONDS:
            return 0
        self._checked = now, version
        alive = {each: principal for each, principal in self._open.items() if not each.is_closing()}
        self._open = {each: principal for each, principal in alive.items() if self._may_stay(principal)}
        aborted = alive.keys() - self._open.keys()
        for each in aborted:
            each.abort()
        return len(aborted)

    def _may_stay(self, principal: Principal) -> bool:
        expired = principal.expires is not None and principal.expires <= self._clock.now() / 1_000_000
        return not expired and self._is_valid(principal)


_CALLER = web.RequestKey("caller", Principal)


def set_caller(request: web.Request, principal: Principal) -> None:
    """Keep the principal with a request, for `caller`."""
    request[_CALLER] = principal


def caller(request: web.Request) -> Principal:
    """Return the principal of a request; EVERYONE if it was not authenticated."""
    principal: Principal = request.get(_CALLER, EVERYONE)
    return principal


@dataclass(frozen=True)
class AuthMiddleware:
    """Authenticates and authorizes requests. Without authenticators everything is allowed."""

    authenticators: Sequence[Authenticator] = ()
    """The first that knows a credential decides."""
    is_open: Callable[[], bool] = lambda: False
    """Asked for each request."""
    sessions: Sessions | None = None

    def middleware(self) -> Middleware:
        """Return the middleware, which runs before the body is read."""

        @web.middleware
        async def authorize(request: web.Request, handler: Handler) -> web.StreamResponse:
            operation = operation_of(request.match_info.handler)
            if operation is not None and self.authenticators and not self.is_open():
                await (self._authorize if operation.verbs else self._identify)(request, operation)
            return await handler(request)

        return authorize

    async def _identify(self, request: web.Request, operation: Operation) -> None:
        """Identify the caller of a public operation, which may tell it more; a wrong credential is ignored."""
        set_caller(request, NOBODY)
        with suppress(Unauthenticated, Unavailable):
            set_caller(request, await self._authenticate(credential_of(request, operation)))

    async def _authorize(self, request: web.Request, operation: Operation) -> None:
        principal = await self._authenticate(credential_of(request, operation))
        set_caller(request, principal)
        if self.sessions is not None:
            self.sessions.enter(principal, request.transport)
        stream = None if operation.stream is None else check_stream_name(request.match_info[operation.stream])
        if not any(principal.may(verb, stream) for verb in operation.verbs):
            wanted = " or ".join(str(Grant(verb, stream or ALL_STREAMS)) for verb in operation.verbs)
            raise Forbidden(f"{principal.name} has no grant for {wanted}", scope=wanted)

    async def _authenticate(self, credential: str | None) -> Principal:
        if credential is None:
            raise Unauthenticated("a token is needed: send the header Authorization with Bearer and the token")
        for authenticator in self.authenticators:
            principal = await authenticator.known(credential)
            if principal is not None:
                return principal
        raise Unauthenticated("the token is unknown", given=True)


class TokenAuthenticator:
    """Authenticates access tokens of this broker. The token cache is refreshed for every request, so that a token which
    any process has revoked is refused from then on."""

    def __init__(self, tokens: TokenCache, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._principals: BoundedCache[str, tuple[AccessToken, Principal]] = BoundedCache(CACHED_TOKENS)
        """Principals of tokens, as long as these stay the same."""

    async def known(self, credential: str) -> Principal | None:
        parsed = parse_access_token(credential)
        if parsed is None:
            return None
        id, secret = parsed
        self._tokens.newest()
        token = self._tokens.find(id)
        if not matches_secret(token, secret) or token is None:
            raise Unauthenticated("the token is unknown", given=True)
        token.check(self._clock.now())
        return self._principal(token)

    def is_valid(self, principal: Principal) -> bool:
        """Return whether the token of a principal is still valid, as of the last refresh."""
        id = principal.name.partition(":")[2]
        if principal_name(id) != principal.name:
            return True
        token = self._tokens.find(id)
        return token is not None and token.state(self._clock.now()) == "good"

    def _principal(self, token: AccessToken) -> Principal:
        known = self._principals.get(token.id)
        if known is None or known[0] is not token:
            known = token, token.principal
            self._principals.put(token.id, known)
        return known[1]
