"""Where an event has been."""

from __future__ import annotations

from triplewire.network.transit import RELAY_HOPS, RelayPath
from triplewire.rdf.terms import HEADER_CHARACTERS


def test_a_trail_grows_and_is_read_back() -> None:
    path = RelayPath.parse(None).then("a", "x").then("b", "x")
    assert str(path) == "a/x b/x"
    assert RelayPath.parse(str(path)) == path
    assert path.visits("a", "x")
    assert not path.visits("a", "y")
    assert not path.visits("c", "x")
    assert RelayPath.parse("a/x  nothing b/x") == path


def test_a_trail_may_be_too_long() -> None:
    path = RelayPath()
    for number in range(RELAY_HOPS):
        assert not path.too_long
        path = path.then("e", str(number))
    assert not path.too_long
    assert path.then("e", "more").too_long
    assert RelayPath().then("e", "s" * HEADER_CHARACTERS).too_long
