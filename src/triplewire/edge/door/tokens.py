"""Tokens at the door: who shows one that was made here."""

from __future__ import annotations

from triplewire.access import Principal
from triplewire.access.tokens import Token, fits, parsed, principal_name
from triplewire.model.clock import Clock
from triplewire.model.errors import Unauthenticated
from triplewire.storage.registry.security import TokenCache


class TokenAuthenticator:
    """Knows those who show a token. One that was revoked by any process is not good from then on: the ring is looked at
    for every request."""

    def __init__(self, ring: TokenCache, clock: Clock) -> None:
        self._ring = ring
        self._clock = clock
        self._principals: dict[str, tuple[Token, Principal]] = {}
        """What was worked out of a token, as long as it stays the same."""

    async def known(self, credential: str) -> Principal | None:
        found = parsed(credential)
        if found is None:
            return None
        id, secret = found
        self._ring.newest()
        token = self._ring.find(id)
        if not fits(token, secret) or token is None:
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

    def _principal(self, token: Token) -> Principal:
        known = self._principals.get(token.id)
        if known is None or known[0] is not token:
            known = self._principals[token.id] = token, token.principal
        return known[1]
