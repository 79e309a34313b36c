"""Authentication and authorization of requests: a middleware finds the credential, the principal and the grant that
the operation needs.

The principal is kept with the request, where handlers read it by `caller`. Sessions are open connections with the
principal that used each last: a connection is aborted when its token is revoked or has expired, whatever it is used
for, and the client is refused when it reconnects.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from triplewire.http.openapi import Operation, operation_of
from triplewire.model.clock import Clock
from triplewire.model.errors import Forbidden, TriplewireError, Unauthenticated, Unavailable
from triplewire.security import EVERYONE, NOBODY, Grant, Principal
from triplewire.security.principals import ALL_STREAMS, Authenticator
from triplewire.security.tokens import AccessToken, matches_secret, parse_access_token, principal_name
from triplewire.storage.registry.security import TokenCache
from triplewire.storage.registry.streams import check_stream_name

GUEST_LOOK_SECONDS: Final = 0.1
"""Between two looks at whether a token was revoked by which somebody is connected: some microseconds each."""

EXPIRY_LOOK_SECONDS: Final = 1.0
"""Between two looks at whether one has expired: a few milliseconds with as many listeners as there may be."""


# Credentials: what a request shows of who sends it.

TOKEN_PARAMETER = "access_token"
"""For browsers, which can give no headers to an EventSource or a WebSocket, and for nothing else: addresses end up in
histories and logs."""
MERCURE_COOKIE = "mercureAuthorization"
"""The same for Mercure, at its address alone. Pages of others could send it along, so it only lets listen."""
_MERCURE = "/.well-known/mercure"
_READING = (hdrs.METH_GET, hdrs.METH_HEAD)


def credential_of(request: web.Request, operation: Operation) -> str | None:
    """The bearer token of a request (RFC 6750), or, to read, its password (RFC 7617): some clients know nothing else.
    None where there is none. Raises Unauthenticated for another kind."""
    header = request.headers.get(hdrs.AUTHORIZATION)
    if header is None:
        return _listener_credential(request) if operation.lasts and request.method == hdrs.METH_GET else None
    scheme, _, shown = header.partition(" ")
    kind, found = scheme.lower(), shown.strip()
    if kind == "basic" and request.method in _READING:
        # Browsers send passwords along with what pages of others ask for, so these change nothing.
        found = _password(found)
    elif kind != "bearer":
        found = ""
    if not found:
        raise Unauthenticated("the header Authorization must be Bearer and a token", given=True)
    return found


def _password(shown: str) -> str:
    """Of a name and a password; nothing where there is none."""
    try:
        return base64.b64decode(shown, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _listener_credential(request: web.Request) -> str | None:
    if request.path != _MERCURE:
        return request.query.get(TOKEN_PARAMETER)
    return (
        request.query.get(TOKEN_PARAMETER) or request.query.get("authorization") or request.cookies.get(MERCURE_COOKIE)
    )


# Guests: those who were let in and are still here, so that they can be sent away when they are welcome no more.
#
# A token that is revoked must not go on being told what happens, or sending, by a connection that was opened before.
# What a connection is for does not matter: it is cut, and whoever comes back is refused at the door.

logger = logging.getLogger(__name__)


class AbortableConnection(Protocol):
    """What a guest came by."""

    def abort(self) -> None: ...

    def is_closing(self) -> bool: ...


class Sessions:
    """By their connections: who came by each last."""

    def __init__(
        self,
        clock: Clock,
        version: Callable[[], int] = lambda: 0,
        good: Callable[[Principal], bool] = lambda principal: True,
    ) -> None:
        """`version` is another one where something may have become of any of them; `good` tells whether one is still
        welcome."""
        self._clock = clock
        self._version = version
        self._good = good
        self._here: dict[AbortableConnection, Principal] = {}
        """Those that have gone are in it until the next look: connections over TLS cannot be referred to weakly."""
        self._looked = clock.ticks(), 0

    def __len__(self) -> int:
        return len(self._here)

    def enter(self, principal: Principal, connection: AbortableConnection | None) -> None:
        if connection is not None:
            self._here[connection] = principal

    def look(self) -> int:
        """Forget those who have gone, and send those away who are welcome no more; how many. This is done now and then,
        and at once where the version is new."""
        now, version = self._clock.ticks(), self._version()
        if version == self._looked[1] and now - self._looked[0] < EXPIRY_LOOK_SECONDS:
            return 0
        self._looked = now, version
        here = {each: principal for each, principal in self._here.items() if not each.is_closing()}
        self._here = {each: principal for each, principal in here.items() if self._welcome(principal)}
        gone = here.keys() - self._here.keys()
        for each in gone:
            each.abort()
        return len(gone)

    async def keep(self, seconds: float = GUEST_LOOK_SECONDS) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            try:
                self.look()
            except TriplewireError:
                logger.warning("nobody looked who is still welcome", exc_info=True)

    def _welcome(self, principal: Principal) -> bool:
        expired = principal.expires is not None and principal.expires <= self._clock.now() / 1_000_000
        return not expired and self._good(principal)


# Callers: who asks, kept with a request on its way to a handler.

_CALLER = web.RequestKey("caller", Principal)


def set_caller(request: web.Request, principal: Principal) -> None:
    """To be said by the door, once it knows."""
    request[_CALLER] = principal


def caller(request: web.Request) -> Principal:
    """Who asks; everyone where no door has looked."""
    found: Principal = request.get(_CALLER, EVERYONE)
    return found


class AuthMiddleware:
    """Lets in who may do what they ask for. Without authenticators it stands open."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator] = (),
        is_open: Callable[[], bool] = lambda: False,
        guests: Sessions | None = None,
    ) -> None:
        """The first that can tell a credential decides. `is_open` is asked each time; `guests` hears who comes in."""
        self._authenticators = authenticators
        self._is_open = is_open
        self._guests = guests

    def middleware(self) -> Middleware:
        """Finds out who asks and what for, before anything of the request is read."""

        @web.middleware
        async def enter(request: web.Request, handler: Handler) -> web.StreamResponse:
            operation = operation_of(request.match_info.handler)
            if operation is not None and self._authenticators and not self._is_open():
                await (self._admit if operation.verbs else self._greet)(request, operation)
            return await handler(request)

        return enter

    async def _greet(self, request: web.Request, operation: Operation) -> None:
        """What is for everyone may tell more to some. Nobody is refused there, whatever they show."""
        set_caller(request, NOBODY)
        with suppress(Unauthenticated, Unavailable):
            set_caller(request, await self._known(credential_of(request, operation)))

    async def _admit(self, request: web.Request, operation: Operation) -> None:
        principal = await self._known(credential_of(request, operation))
        set_caller(request, principal)
        if self._guests is not None:
            self._guests.enter(principal, request.transport)
        stream = None if operation.stream is None else check_stream_name(request.match_info[operation.stream])
        if not any(principal.may(verb, stream) for verb in operation.verbs):
            wanted = " or ".join(str(Grant(verb, stream or ALL_STREAMS)) for verb in operation.verbs)
            raise Forbidden(f"{principal.name} has no grant for {wanted}", scope=wanted)

    async def _known(self, credential: str | None) -> Principal:
        if credential is None:
            raise Unauthenticated("this needs a token: send the header Authorization: Bearer and the token")
        for authenticator in self._authenticators:
            principal = await authenticator.known(credential)
            if principal is not None:
                return principal
        raise Unauthenticated("the token is not known here", given=True)


# Tokens at the door: who shows one that was made here.


class TokenAuthenticator:
    """Knows those who show a token. One that was revoked by any process is not good from then on: the ring is looked at
    for every request."""

    def __init__(self, ring: TokenCache, clock: Clock) -> None:
        self._ring = ring
        self._clock = clock
        self._principals: dict[str, tuple[AccessToken, Principal]] = {}
        """What was worked out of a token, as long as it stays the same."""

    async def known(self, credential: str) -> Principal | None:
        found = parse_access_token(credential)
        if found is None:
            return None
        id, secret = found
        self._ring.newest()
        token = self._ring.find(id)
        if not matches_secret(token, secret) or token is None:
            raise Unauthenticated("the token is not known here", given=True)
        token.check(self._clock.now())
        return self._principal(token)

    def good(self, principal: Principal) -> bool:
        """Whether somebody who came in is still welcome, as of the last look at the ring."""
        id = principal.name.partition(":")[2]
        if principal_name(id) != principal.name:
            return True
        token = self._ring.find(id)
        return token is not None and token.state(self._clock.now()) == "good"

    def _principal(self, token: AccessToken) -> Principal:
        known = self._principals.get(token.id)
        if known is None or known[0] is not token:
            known = self._principals[token.id] = token, token.principal
        return known[1]
