"""Events: text and quads say the same."""

from __future__ import annotations

import dataclasses

import pytest

from triplewire.model import Event, Quad


def test_quads_are_the_lines_in_order_with_the_id_as_graph() -> None:
    event = Event("http://e/1", '<http://e/s>\t<http://e/p>\t"b\\tb"\n<http://e/s>\t<http://e/p>\t<http://e/a>')
    assert event.quads == (
        Quad("<http://e/s>", "<http://e/p>", '"b\\tb"', "<http://e/1>"),
        Quad("<http://e/s>", "<http://e/p>", "<http://e/a>", "<http://e/1>"),
    )


def test_only_a_newline_ends_a_line() -> None:
    """Unicode has other line ends, which stay raw in canonical text."""
    event = Event("http://e/1", '<http://e/s>\t<http://e/p>\t"a\u2028b\x85c\x1cd"')
    assert len(event.quads) == 1


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Event("http://e/1", "").id = "other"  # type: ignore[misc]
