"""Entrances: what stands at the door of an edge, of the embedded twins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triplewire.access.keys import Keys, Rules
from triplewire.compose.doors import is_private
from triplewire.config import Settings, limits
from triplewire.edge.clients.clients import Clients
from triplewire.edge.door import Authenticator, Guests, Witness
from triplewire.edge.door.keysets import KeySetAuthenticator, source_of
from triplewire.edge.door.tokens import TokenAuthenticator
from triplewire.model.clock import Clock
from triplewire.security.audit import AuditLog
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import TokenCache
from triplewire.storage.sqlite import CommitWatch


@dataclass(frozen=True)
class Entrance:
    """Fields of an edge's parts."""

    authenticators: tuple[Authenticator, ...]
    is_open: Callable[[], bool]
    guests: Guests
    witness: Witness


def entrance_of(settings: Settings, access: Registry, clock: Clock) -> Entrance:
    """As the settings say. Raises BadRequest."""
    ring = TokenCache(access, CommitWatch(settings.access).changed)
    knows = TokenAuthenticator(ring, clock)
    authenticators = () if settings.door == "open" else (knows, *_signed(settings, clock))
    # A door that others reach is never open by itself: it does not start without tokens, and stays as it is.
    waits = settings.door == "auto" and is_private(settings) and not settings.jwt_keys
    clients = Clients.parsed(settings.proxies)
    return Entrance(
        authenticators,
        (lambda: not ring.newest()) if waits else (lambda: False),
        Guests(clock, ring.newest, knows.good),
        Witness(AuditLog(settings.audit, limits.AUDIT_BYTES, limits.AUDIT_VOLUMES), clock, clients.address),
    )


def _signed(settings: Settings, clock: Clock) -> tuple[Authenticator, ...]:
    if not settings.jwt_keys:
        return ()
    rules = Rules(settings.jwt_issuer, settings.jwt_audience, settings.jwt_leeway)
    return (KeySetAuthenticator(Keys(rules, clock), source_of(settings.jwt_keys), clock),)
