"""Where an event has been."""

from __future__ import annotations

from triplewire.network.transit import RELAY_HOPS, RelayPath
from triplewire.rdf.terms import HEADER_CHARACTERS


def test_a_trail_grows_and_is_read_back() -> None:
    trail = RelayPath.parse(None).then("a", "x").then("b", "x")
    assert str(trail) == "a/x b/x"
    assert RelayPath.parse(str(trail)) == trail
    assert trail.visits("a", "x")
    assert not trail.visits("a", "y")
    assert not trail.visits("c", "x")
    assert RelayPath.parse("a/x  nothing b/x") == trail


def test_a_trail_may_be_too_long() -> None:
    trail = RelayPath()
    for number in range(RELAY_HOPS):
        assert not trail.long
        trail = trail.then("e", str(number))
    assert not trail.long
    assert trail.then("e", "more").long
    assert RelayPath().then("e", "s" * HEADER_CHARACTERS).long
