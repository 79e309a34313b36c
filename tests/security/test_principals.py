"""Grants, as they are written and what they cover."""

from __future__ import annotations

import pytest

from triplewire.model.errors import BadRequest, Forbidden
from triplewire.security import EVERYONE, Grant, Principal, Verb


@pytest.mark.parametrize(
    ("text", "stream", "covered"),
    [
        ("publish:home", "home", True),
        ("publish:home", "homes", False),
        ("publish:home", "hom", False),
        ("publish:city-*", "city-1", True),
        ("publish:city-*", "city-", True),
        ("publish:city-*", "city", False),
        ("publish:*", "anything", True),
        ("publish", "anything", True),
        ("*", "anything", True),
        ("consume:home", "home", False),
    ],
)
def test_what_a_grant_covers(text: str, stream: str, covered: bool) -> None:
    assert Principal.granted("ann", [text]).may(Verb.PUBLISH, stream) is covered


@pytest.mark.parametrize(
    "text", ["", "read", "publish:", "publish:a*b", "publish:**", ":home", "admin:home", "Publish"]
)
def test_what_is_no_grant(text: str) -> None:
    with pytest.raises(BadRequest, match="admin"):
        Grant.parsed(text)


@pytest.mark.parametrize("text", ["publish:home", "consume:city-*", "query", "admin"])
def test_a_grant_is_written_as_it_was_read(text: str) -> None:
    (grant,) = Grant.parsed(text)
    assert str(grant) == text


def test_no_verb_includes_another() -> None:
    for held in Verb:
        principal = Principal.granted("ann", [held])
        assert [verb for verb in Verb if principal.may(verb)] == [held]


def test_what_is_missing_is_said() -> None:
    with pytest.raises(Forbidden, match="ann has no grant for publish:home") as caught:
        Principal.granted("ann", ["publish:office"]).require(Verb.PUBLISH, "home")
    assert caught.value.scope == "publish:home"


def test_patterns_that_another_covers_are_left_out_for_all() -> None:
    assert Principal.granted("ann", ["query:a", "query:b-*"]).patterns(Verb.QUERY) == {"a", "b-*"}
    assert Principal.granted("ann", ["query:a", "query"]).patterns(Verb.QUERY) == {"*"}
    assert EVERYONE.patterns(Verb.CONSUME) == {"*"}
