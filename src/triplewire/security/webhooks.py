"""Webhook security: the addresses that may be called (protection against SSRF), and the signatures of calls.

A webhook's owner chooses which host this machine calls from inside its own network. So only public addresses are
called, and those that the deployment allows. Signatures are those of Standard Webhooks and of WebSub.
"""

from __future__ import annotations

import binascii
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

from triplewire.model.errors import BadRequest

WEBHOOK_ATTEMPTS_MOST: Final = 100
"""Delivery attempts that a webhook may ask for, at most: over some four days."""

WEBHOOK_URL_CHARACTERS: Final = 2_048
"""Length of a webhook's URL. Servers accept no longer ones, as a rule."""


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_INSIDE: Sequence[Network] = (
    # Where virtual machines of a large provider find what their host tells them alone; the address looks public.
    ip_network("168.63.129.16/32"),
    # Kept for protocols between a machine and its nearest router, and used by a provider as the one above.
    ip_network("192.0.0.0/24"),
    # Anycast relays of 6to4, which lead wherever the next router says.
    ip_network("192.88.99.0/24"),
    # Translations of addresses whose embedded one is not at a known place.
    ip_network("64:ff9b:1::/48"),
)


@dataclass(frozen=True)
class AllowedNetworks:
    """Networks that may be called although they are not public."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def parsed(cls, texts: Iterable[str]) -> AllowedNetworks:
        """From addresses and networks such as `10.1.0.0/16`. Raises BadRequest for what is none."""
        found = []
        for text in texts:
            try:
                found.append(ip_network(text))
            except ValueError as error:
                raise BadRequest(f"webhook_networks: {text!r} is no address or network: {error}") from None
        return cls(tuple(found))

    def permit(self, text: str) -> bool:
        """Whether an address may be called: each address that it stands for is public, or allowed."""
        try:
            address = ip_address(text)
        except ValueError:
            return False
        addresses = _embedded_addresses(address)
        return all(_is_public(each) or any(each in network for network in self.allowed) for each in addresses)


def _embedded_addresses(address: Address) -> Iterator[Address]:
    """The address, or those of the older internet that it is a way to write, or is led on to."""
    if isinstance(address, IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        yield IPv4Address(int(address) & 0xFFFFFFFF)
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo
    else:
        # A scope only says by which of our own networks it is reached.
        yield IPv6Address(int(address))


def _is_public(address: Address) -> bool:
    if address.is_multicast or address.is_unspecified or any(address in each for each in _INSIDE):
        return False
    if isinstance(address, IPv6Address) and address.is_site_local:
        return False
    return address.is_global


_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class WebhookTarget:
    """Where a hook leads. Two with the same `host` and `port` are served by the same machine."""

    url: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """The address without parts that are often secret, for logs."""
        return f"{self.host}:{self.port}"


def parse_target(url: str, networks: AllowedNetworks) -> WebhookTarget:
    """Raises BadRequest for what is no address that may be called, as far as it says so by itself: what a name leads to
    is looked at whenever it is called."""
    if len(url) > WEBHOOK_URL_CHARACTERS:
        raise BadRequest(f"an address has at most {WEBHOOK_URL_CHARACTERS} characters, not {len(url)}")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadRequest("an address has printable ASCII characters and no spaces; others are percent-encoded")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadRequest(f"this is no address: {error}") from None
    if parts.scheme not in _PORTS or not host:
        raise BadRequest("an address begins with http:// or https:// and the name of a host")
    _check_target(parts, host, networks)
    return WebhookTarget(url, host, _PORTS[parts.scheme] if port is None else port)


def _check_target(parts: SplitResult, host: str, networks: AllowedNetworks) -> None:
    if parts.username is not None or parts.password is not None:
        raise BadRequest("an address with a user or a password in it is not taken; the signature says who calls")
    if parts.fragment:
        raise BadRequest("an address with a fragment (#…) is not taken: it is not sent")
    if is_address(host) and not networks.permit(host):
        raise BadRequest(refusal_detail(host))


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def refusal_detail(address: str) -> str:
    """Why an address is not called, and what would change that."""
    return f"{address} is not a public address; the setting webhook_networks allows others, such as 127.0.0.0/8"


PREFIX = "whsec_"
LEAST, MOST = 24, 64
"""Bytes of a key, as Standard Webhooks has it."""


def new_secret() -> str:
    """One that nobody knows."""
    return PREFIX + b64encode(secrets.token_bytes(32)).decode()


def check_secret(text: str) -> str:
    """The secret, if it is one. Raises BadRequest, which does not repeat it."""
    try:
        size = len(_decode_key(text)) if text.startswith(PREFIX) else 0
    except (binascii.Error, ValueError):
        size = 0
    if not LEAST <= size <= MOST:
        raise BadRequest(
            f"a secret is {PREFIX} and {LEAST} to {MOST} random bytes in base64; leave it out for a new one"
        )
    return text


def signature_headers(secret: str, id: str, seconds: int, body: bytes) -> dict[str, str]:
    """The headers of one call by Standard Webhooks."""
    digest = hmac.digest(_decode_key(secret), b"%b.%d.%b" % (id.encode(), seconds, body), sha256)
    signature = f"v1,{b64encode(digest).decode()}"
    return {"webhook-id": id, "webhook-timestamp": str(seconds), "webhook-signature": signature}


def hub_signature(secret: str, body: bytes) -> str:
    """The value of `X-Hub-Signature`."""
    return f"sha256={hmac.digest(secret.encode(), body, sha256).hex()}"


def _decode_key(secret: str) -> bytes:
    return b64decode(secret.removeprefix(PREFIX), validate=True)
