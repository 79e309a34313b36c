"""Which syntax a header names."""

from __future__ import annotations

import pytest

from triplewire.model.errors import UnknownMediaType
from triplewire.rdf import (
    JSON_LD,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    SYNTAXES,
    TRIG,
    TURTLE,
    Syntax,
    find_file_syntax,
    find_syntax,
)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/turtle", TURTLE),
        ("application/trig; charset=utf-8", TRIG),
        ("Application/N-Quads", N_QUADS),
        (" application/n-triples ;x=y", N_TRIPLES),
        ('application/ld+json; profile="http://www.w3.org/ns/json-ld#compacted"', JSON_LD),
        ("application/rdf+xml", RDF_XML),
    ],
)
def test_a_content_type_names_a_syntax(content_type: str, expected: Syntax) -> None:
    assert find_syntax(content_type) == expected


@pytest.mark.parametrize("content_type", [None, "", "application/x-www-form-urlencoded", "turtle", "text/*"])
def test_an_unknown_one_is_answered_with_the_known(content_type: str | None) -> None:
    with pytest.raises(UnknownMediaType) as caught:
        find_syntax(content_type)
    assert caught.value.known == tuple(syntax.media_type for syntax in SYNTAXES)


@pytest.mark.parametrize("syntax", SYNTAXES, ids=lambda syntax: syntax.name)
def test_a_file_name_names_a_syntax(syntax: Syntax) -> None:
    assert find_file_syntax(f"Events{syntax.ending.upper()}") == syntax


def test_an_unknown_file_name_is_answered_with_the_known() -> None:
    with pytest.raises(UnknownMediaType, match=r"\.ttl, \.trig"):
        find_file_syntax("events.csv")
