"""Access checks at start-up: an edge that others can reach does not start without authentication.

It also opens the registry of tokens and the TLS certificates. The supervisor and the command `token` import this
without the HTTP edge.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from triplewire.config import Settings
from triplewire.config.files import prepare_directory
from triplewire.http.listeners import Certificates
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import BadRequest
from triplewire.storage.registry.security import read_tokens
from triplewire.storage.registry.sqlite import SqliteRegistry

AUTH_CHOICES = ("auto", "open", "closed")


def check_auth(settings: Settings) -> None:
    """Looked at before anything starts. Raises BadRequest where everyone could come in from anywhere though nobody said
    that they may; and for settings that make no sense."""
    load_certificates(settings)
    if settings.auth not in AUTH_CHOICES:
        raise BadRequest(f"auth must be {', '.join(AUTH_CHOICES)}, not {settings.auth!r}")
    if settings.jwt_keys and not (settings.jwt_issuer and settings.jwt_audience):
        raise BadRequest("jwt_keys needs jwt_issuer and jwt_audience: else tokens for others would be good here, too")
    if settings.auth == "auto" and not settings.jwt_keys and not is_private(settings) and not has_tokens(settings):
        raise BadRequest(open_edge_message(settings))


def is_private(settings: Settings) -> bool:
    """Whether only this machine reaches the address, and no proxy asks for others."""
    if settings.proxies:
        return False
    if settings.host == "localhost":
        return True
    try:
        return ip_address(settings.host).is_loopback
    except ValueError:
        return False


def has_tokens(settings: Settings) -> bool:
    """Whether a token was ever made: those that are revoked count, they keep the door closed."""
    if not settings.access.exists():
        return False
    registry = open_token_registry(settings, SystemClock())
    try:
        return bool(read_tokens(registry))
    finally:
        registry.close()


def open_token_registry(settings: Settings, clock: Clock) -> SqliteRegistry:
    """The registry of tokens. It has a file of its own, which is for nobody else to read and changes seldom: a look at
    whether it did is all that a request costs."""
    prepare_directory(settings.data)
    settings.access.touch(mode=0o600)
    return SqliteRegistry(settings.access, clock)


def open_edge_message(settings: Settings) -> str:
    where = "the proxy" if settings.proxies else settings.host
    return (
        f"whoever reaches {where} could do everything here, so it does not start like this. Make a token first:\n\n"
        f"    triplewire token create --data {settings.data} --name me --allow '*' --save me.token\n\n"
        "or let others vouch for people (TRIPLEWIRE_JWT_KEYS), or, on a network that you trust, say --open"
    )


def load_certificates(settings: Settings) -> Certificates | None:
    """None where TLS is not asked for. Raises BadRequest for files that cannot be used."""
    if not settings.tls_certificate:
        return None
    return Certificates(Path(settings.tls_certificate), Path(settings.tls_key or settings.tls_certificate))
