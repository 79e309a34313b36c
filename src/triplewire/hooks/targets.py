"""Targets: the addresses of hooks, as far as can be told by looking at them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from triplewire.config import limits
from triplewire.errors import BadRequest
from triplewire.hooks.networks import Networks

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Target:
    """Where a hook leads. Two with the same `host` and `port` are served by the same machine."""

    url: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """What may be told to anybody who looks after a deployment: addresses often have something secret in them."""
        return f"{self.host}:{self.port}"


def target_of(url: str, networks: Networks) -> Target:
    """Raises BadRequest for what is no address that may be called, as far as it says so by itself: what a name leads to
    is looked at whenever it is called."""
    if len(url) > limits.HOOK_URL_CHARACTERS:
        raise BadRequest(f"an address has at most {limits.HOOK_URL_CHARACTERS} characters, not {len(url)}")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadRequest("an address has printable ASCII characters and no spaces; others are percent-encoded")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadRequest(f"this is no address: {error}") from None
    if parts.scheme not in _PORTS or not host:
        raise BadRequest("an address begins with http:// or https:// and the name of a host")
    _check(parts, host, networks)
    return Target(url, host, _PORTS[parts.scheme] if port is None else port)


def _check(parts: SplitResult, host: str, networks: Networks) -> None:
    if parts.username is not None or parts.password is not None:
        raise BadRequest("an address with a user or a password in it is not taken; the signature says who calls")
    if parts.fragment:
        raise BadRequest("an address with a fragment (#…) is not taken: it is not sent")
    if is_address(host) and not networks.permit(host):
        raise BadRequest(refusal(host))


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def refusal(address: str) -> str:
    """Why an address is not called, and what would change that."""
    return f"{address} is not a public address; the setting hook_networks allows others, such as 127.0.0.0/8"
