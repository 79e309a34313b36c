"""Doors: a middleware through which every request comes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire.access import NOBODY, Grant, Principal
from triplewire.access.grants import ALL
from triplewire.contract import Operation, operation_of
from triplewire.contract.callers import call_by
from triplewire.edge.door.credentials import credential_of
from triplewire.edge.door.guests import Guests
from triplewire.edge.door.ports import Authenticator
from triplewire.model.errors import Forbidden, Unauthenticated, Unavailable
from triplewire.storage.registry.streams import check_stream_name


class Door:
    """Lets in who may do what they ask for. Without authenticators it stands open."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator] = (),
        is_open: Callable[[], bool] = lambda: False,
        guests: Guests | None = None,
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
        call_by(request, NOBODY)
        with suppress(Unauthenticated, Unavailable):
            call_by(request, await self._known(credential_of(request, operation)))

    async def _admit(self, request: web.Request, operation: Operation) -> None:
        principal = await self._known(credential_of(request, operation))
        call_by(request, principal)
        if self._guests is not None:
            self._guests.enter(principal, request.transport)
        stream = None if operation.stream is None else check_stream_name(request.match_info[operation.stream])
        if not any(principal.may(verb, stream) for verb in operation.verbs):
            wanted = " or ".join(str(Grant(verb, stream or ALL)) for verb in operation.verbs)
            raise Forbidden(f"{principal.name} has no grant for {wanted}", scope=wanted)

    async def _known(self, credential: str | None) -> Principal:
        if credential is None:
            raise Unauthenticated("this needs a token: send the header Authorization: Bearer and the token")
        for authenticator in self._authenticators:
            principal = await authenticator.known(credential)
            if principal is not None:
                return principal
        raise Unauthenticated("the token is not known here", given=True)
