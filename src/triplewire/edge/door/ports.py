"""What a door needs: somebody who knows people by what they show."""

from __future__ import annotations

from typing import Protocol

from triplewire.access import Principal


class Authenticator(Protocol):
    """Knows principals by their credentials."""

    async def known(self, credential: str) -> Principal | None:
        """Who shows the credential, or None where it is none of those that it can tell. Raises Unauthenticated for one
        that it can tell and that is not good: expired, revoked, forged."""
        ...
