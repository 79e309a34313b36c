"""Access checks at start-up: an edge that others can reach does not start without authentication.

It also opens the registry of tokens and the TLS certificates. The supervisor and the command `token` import this
without the HTTP edge.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.config import Settings
from triplewire.config.files import prepare_directory
from triplewire.http.listeners import Certificates
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import BadRequest

if TYPE_CHECKING:
    from triplewire.storage.registry.sqlite import SqliteRegistry

AUTH_CHOICES = ("auto", "open", "closed")


def check_auth(settings: Settings) -> None:
    """Check the settings before anything starts. Raises BadRequest for an edge that other machines reach without
    authentication and without `--open`, and for settings that contradict each other."""
    load_certificates(settings)
    if settings.auth not in AUTH_CHOICES:
        raise BadRequest(f"auth must be {', '.join(AUTH_CHOICES)}, not {settings.auth!r}")
    if settings.jwt_keys and not (settings.jwt_issuer and settings.jwt_audience):
        raise BadRequest("jwt_keys needs jwt_issuer and jwt_audience: else tokens for other services would be valid")
    if settings.auth == "auto" and not settings.jwt_keys and not is_private(settings) and not has_tokens(settings):
        raise BadRequest(open_edge_message(settings))


def is_private(settings: Settings) -> bool:
    """Whether only this machine reaches the address, and no proxy forwards requests of others."""
    if settings.proxies:
        return False
    if settings.host == "localhost":
        return True
    try:
        return ip_address(settings.host).is_loopback
    except ValueError:
        return False


def has_tokens(settings: Settings) -> bool:
    """Whether a token was ever created. Revoked tokens count: they keep the edge closed."""
    from triplewire.storage.registry.security import read_tokens

    if not settings.access.exists():
        return False
    registry = open_token_registry(settings, SystemClock())
    try:
        return bool(read_tokens(registry))
    finally:
        registry.close()


def open_token_registry(settings: Settings, clock: Clock) -> SqliteRegistry:
    """Open the registry of tokens. It is a file of its own, which only its owner can read and which changes seldom, so
    that a request costs no more than a check whether it did."""
    # With PyArrow, which the supervisor does without.
    from triplewire.storage.registry.sqlite import SqliteRegistry

    prepare_directory(settings.data)
    settings.access.touch(mode=0o600)
    return SqliteRegistry(settings.access, clock)


def open_edge_message(settings: Settings) -> str:
    where = "the proxy" if settings.proxies else settings.host
    return (
        f"every client that reaches {where} could do everything, so the edge does not start. Create a token first:\n\n"
        f"    triplewire token create --data {settings.data} --name me --allow '*' --save me.token\n\n"
        "or accept tokens of an identity provider (TRIPLEWIRE_JWT_KEYS), or, on a network that you trust, use --open"
    )


def load_certificates(settings: Settings) -> Certificates | None:
    """Load the TLS certificate, or return None if none is set. Raises BadRequest for files that cannot be used."""
    if not settings.tls_certificate:
        return None
    return Certificates(Path(settings.tls_certificate), Path(settings.tls_key or settings.tls_certificate))
