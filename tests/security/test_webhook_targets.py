"""Addresses that a hook may not lead to. Threat: somebody has this machine call what only it can reach."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model.errors import BadRequest
from triplewire.security.webhooks import AllowedNetworks, parse_target

INSIDE = (
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
)
OUTSIDE = ("1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001:80e::200e")


@pytest.mark.parametrize("address", INSIDE)
def test_what_is_not_public_is_not_called(address: str) -> None:
    assert not AllowedNetworks().permit(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_what_is_public_is_called(address: str) -> None:
    assert AllowedNetworks().permit(address)


def ways(address: str) -> list[str]:
    """Addresses of the newer internet that lead to one of the older, or are only another way to write it."""
    number = int(IPv4Address(address))
    low = [(0xFFFF << 32) | number, (0x64FF9B << 96) | number, number, (0x2002 << 112) | (number << 80)]
    teredo = (0x20010000 << 96) | (number << 64) | (~number & 0xFFFFFFFF)
    return [str(IPv6Address(each)) for each in (*low, teredo)]


@given(st.sampled_from([each for each in INSIDE if ":" not in each]), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_another_way_to_write_an_address_changes_nothing(address: str, way: int) -> None:
    assert not AllowedNetworks().permit(ways(address)[way])


def test_what_is_allowed_is_called_in_whatever_way_it_is_written_and_nothing_beside_it() -> None:
    allowed = AllowedNetworks.parsed(["127.0.0.0/8", "fd00::/8"])
    assert allowed.permit("127.0.0.1")
    assert allowed.permit("::ffff:127.0.0.1")
    assert allowed.permit("fd12::1")
    assert not allowed.permit("10.0.0.1")
    assert not allowed.permit("::1")
    assert not allowed.permit("no address")


def test_a_setting_that_is_no_network_is_refused() -> None:
    with pytest.raises(BadRequest, match="webhook_networks"):
        AllowedNetworks.parsed(["localhost"])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "http:///path",
        "http://127.0.0.1/",
        "http://[::1]:8080/",
        "http://[::ffff:169.254.169.254]/latest",
        "http://user:password@example.org/",
        "http://user@example.org/",
        "http://example.org/#part",
        "http://example.org:99999/",
        "http://exa mple.org/",
        "http://example.org/\r\nX-Forged: 1",
        "http://exämple.org/",
        "http://[::1",
        "http://example.org/" + "x" * 2048,
    ],
)
def test_an_address_that_cannot_be_called_is_refused_when_it_is_given(url: str) -> None:
    with pytest.raises(BadRequest):
        parse_target(url, AllowedNetworks())


def test_an_address_is_taken_apart() -> None:
    found = parse_target("https://Example.org/hook?key=1", AllowedNetworks())
    assert (found.host, found.port, found.place) == ("example.org", 443, "example.org:443")
