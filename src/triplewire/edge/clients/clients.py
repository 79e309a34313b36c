"""Clients: who sends a request, as far as addresses tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp import web

from triplewire.model.errors import BadRequest

FORWARDED = "X-Forwarded-For"

_HOUSE = 64
"""Bits of an IPv6 address that are given to one customer; who has them has 2^64 addresses to send from."""


@dataclass(frozen=True)
class Clients:
    """Tells clients apart. Only proxies that are trusted are believed when they say for whom they ask."""

    proxies: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parsed(cls, proxies: Iterable[str]) -> Clients:
        """From addresses and networks, such as `10.0.0.0/8`. Raises BadRequest."""
        try:
            return cls(tuple(ip_network(each) for each in proxies))
        except ValueError as error:
            raise BadRequest(f"a trusted proxy must be an address or a network: {error}") from None

    def of(self, request: web.Request) -> str | None:
        """The client, or None for one on this machine, which is not limited."""
        address = self.address(request)
        return None if address is None else named(address)

    def address(self, request: web.Request) -> str | None:
        """From where a request comes, as far as that is known."""
        peer = request.transport.get_extra_info("peername") if request.transport else None
        if not isinstance(peer, tuple):
            return None
        said = request.headers.getall(FORWARDED, ()) if self.proxies else ()
        return self._beyond(str(peer[0]), [each.strip() for text in said for each in text.split(",")])

    def _beyond(self, peer: str, said: Sequence[str]) -> str:
        """The last address that is not of a trusted proxy: what stands before it may be made up."""
        found = peer
        for each in reversed(said):
            if not self._trusts(found) or not _is_address(each):
                break
            found = each
        return found

    def _trusts(self, address: str) -> bool:
        return any(ip_address(_bare(address)) in network for network in self.proxies)


@lru_cache(4096)
def named(address: str) -> str | None:
    """What a client with that address is known by; None on this machine."""
    found = ip_address(_bare(address))
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    found = mapped or found
    if found.is_loopback:
        return None
    return str(found) if found.version == 4 else str(ip_network(f"{found}/{_HOUSE}", strict=False))


def _bare(address: str) -> str:
    return address.partition("%")[0]


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
