"""Which of several things an Accept header likes best."""

from __future__ import annotations

import pytest

from triplewire.rdf.syntaxes import choose_offer, parse_qualities

QUADS, TURTLE, TRIG = range(3)
OFFERED = [("application/n-quads", "text/x-nquads"), ("text/turtle",), ("application/trig",)]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, QUADS),
        ("", QUADS),
        ("*/*", QUADS),
        ("text/x-nquads", QUADS),
        ("application/*", QUADS),
        ("text/*", TURTLE),
        ("text/turtle", TURTLE),
        ("text/turtle, application/trig", TURTLE),
        ("text/turtle;q=0.5, application/trig;q=0.9", TRIG),
        ("text/html, application/trig;q=0.9, */*;q=0.1", TRIG),
        ("application/n-quads;q=0, */*", TURTLE),
        ("text/turtle;q=0, text/html", None),
        ("text/html", None),
        ("text/turtle;q=much", None),
        ("text/turtle;q=2", None),
    ],
)
def test_an_accept_header_chooses(accept: str | None, expected: int | None) -> None:
    assert choose_offer(accept, OFFERED) == expected


def test_qualities_are_told_by_name() -> None:
    assert parse_qualities("gzip, zstd;q=0.5, br;q=0") == {"gzip": 1.0, "zstd": 0.5, "br": 0.0}
    assert parse_qualities(None) == {}
