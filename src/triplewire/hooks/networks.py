"""Networks: which addresses a hook may lead to.

Whoever makes a hook chooses whom this machine calls, from inside of whatever network it stands in. So only addresses
that anybody on the internet could call are called, and those that the deployment allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from triplewire.errors import BadRequest

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
class Networks:
    """Those that may be called although they are not public."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def parsed(cls, texts: Iterable[str]) -> Networks:
        """From addresses and networks such as `10.1.0.0/16`. Raises BadRequest for what is none."""
        found = []
        for text in texts:
            try:
                found.append(ip_network(text))
            except ValueError as error:
                raise BadRequest(f"hook_networks: {text!r} is no address or network: {error}") from None
        return cls(tuple(found))

    def permit(self, text: str) -> bool:
        """Whether an address may be called: each address that it stands for is public, or allowed."""
        try:
            address = ip_address(text)
        except ValueError:
            return False
        return all(self._permit(each) for each in _meant(address))

    def _permit(self, address: Address) -> bool:
        return _public(address) or any(address in each for each in self.allowed)


def _meant(address: Address) -> Iterator[Address]:
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


def _public(address: Address) -> bool:
    if address.is_multicast or address.is_unspecified or any(address in each for each in _INSIDE):
        return False
    if isinstance(address, IPv6Address) and address.is_site_local:
        return False
    return address.is_global
