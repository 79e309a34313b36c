"""An edge with a door that is closed to all but those who show a token, and the tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tests.http.harness import House, house
from triplewire.http.app import EdgeLimits, EdgeParts
from triplewire.http.audit import AuditMiddleware
from triplewire.http.auth import Sessions, TokenAuthenticator
from triplewire.http.resources import access_control
from triplewire.http.resources.access_control import TokenManager, TokenRequest
from triplewire.model.clock import ManualClock
from triplewire.storage.log.ports import SEGMENT_LIMITS, SegmentLimits
from triplewire.storage.registry.security import TokenCache

NQUADS = {"Content-Type": "application/n-quads"}


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@dataclass
class Closed:
    """The edge, and whoever makes tokens for it."""

    at: House
    tokens: TokenManager
    clock: ManualClock

    def token(self, *allow: str, expires: str | None = None) -> tuple[str, str]:
        """The id and the text of a new one."""
        made, text = self.tokens.create(TokenRequest("test", allow, expires=expires))
        return made.id, text


@asynccontextmanager
async def closed(
    witness: AuditMiddleware | None = None,
    *,
    waits: bool = False,
    segments: SegmentLimits = SEGMENT_LIMITS,
    limits: EdgeLimits | None = None,
) -> AsyncIterator[Closed]:
    """With `waits` it is open until there is a token."""
    found: list[tuple[TokenManager, ManualClock]] = []

    def shut(parts: EdgeParts) -> EdgeParts:
        assert isinstance(parts.clock, ManualClock)
        tokens = TokenManager(parts.registry, parts.clock)
        ring = TokenCache(parts.registry, lambda: True)
        knows = TokenAuthenticator(ring, parts.clock)
        found.append((tokens, parts.clock))
        return replace(
            parts,
            authenticators=(knows,),
            is_open=(lambda: not ring.newest()) if waits else (lambda: False),
            sessions=Sessions(parts.clock, ring.newest, knows.is_valid),
            routes=access_control.token_routes(tokens),
            audit=witness,
        )

    async with house(change=shut, segments=segments, limits=limits) as at:
        yield Closed(at, *found[0])


__all__ = ["NQUADS", "Closed", "bearer", "closed"]
