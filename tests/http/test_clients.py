"""Clients: told apart by addresses that cannot be made up."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from triplewire.http.rate_limits import FORWARDED_FOR, ClientAddresses, client_key
from triplewire.model.errors import BadRequest

PROXY, NEXT, CLIENT, LIAR = "10.0.0.1", "10.0.0.2", "192.0.2.7", "198.51.100.9"


class Transport:
    """A connection from an address."""

    def __init__(self, peer: Any) -> None:  # noqa: ANN401
        self._peer = peer

    def get_extra_info(self, name: str, default: object = None) -> Any:  # noqa: ANN401
        return self._peer if name == "peername" else default


def client(peer: str | None, *forwarded: str, proxies: tuple[str, ...] = ("10.0.0.0/8",)) -> str | None:
    headers = CIMultiDict([(FORWARDED_FOR, each) for each in forwarded])
    transport = Transport(peer and (peer, 1234))
    request = make_mocked_request("GET", "/", headers=headers, transport=transport)
    return ClientAddresses.parsed(proxies).client(request)


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        (CLIENT, (), CLIENT),
        (CLIENT, (LIAR,), CLIENT),
        (PROXY, (CLIENT,), CLIENT),
        (PROXY, (f"{LIAR}, {CLIENT}",), CLIENT),
        (PROXY, (LIAR, CLIENT), CLIENT),
        (PROXY, (f"{LIAR}, {CLIENT}, {NEXT}",), CLIENT),
        (PROXY, (f"{LIAR}, nonsense",), PROXY),
        (PROXY, ("",), PROXY),
        (PROXY, (), PROXY),
        (PROXY, (NEXT,), NEXT),
        ("::ffff:10.0.0.1", (CLIENT,), "10.0.0.1"),
    ],
)
def test_who_asks_is_the_last_address_that_no_trusted_proxy_has(
    peer: str, forwarded: tuple[str, ...], found: str
) -> None:
    assert client(peer, *forwarded) == found


def test_without_trusted_proxies_nobody_is_believed() -> None:
    assert client(PROXY, CLIENT, proxies=()) == PROXY


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_who_is_on_this_machine_is_nobody(address: str) -> None:
    assert client(address) is None
    assert client(None) is None


def test_who_has_many_addresses_of_one_network_is_one_client() -> None:
    assert client_key("2001:db8:1:2::5") == client_key("2001:db8:1:2:ffff::6%eth0") == "2001:db8:1:2::/64"
    assert client_key("2001:db8:1:3::5") != client_key("2001:db8:1:2::5")


def test_a_proxy_that_is_no_address_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"10\.0\.0\.0/99"):
        ClientAddresses.parsed(["10.0.0.0/99"])
