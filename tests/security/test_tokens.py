"""Tokens: what is kept of them, and what is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model.errors import BadRequest, Unauthenticated
from triplewire.security.tokens import (
    AccessToken,
    format_token,
    hash_secret,
    matches_secret,
    new_id,
    new_secret,
    parse_access_token,
    parse_lifetime,
)

SECOND = 1_000_000


def token(secret: str = "s", **given: object) -> AccessToken:
    return AccessToken("k3m9x2pq00", "ci", hash_secret(secret), ("publish:home",), **given)  # type: ignore[arg-type]


def test_a_token_is_a_mark_an_id_and_a_secret() -> None:
    id, secret = new_id(), new_secret()
    assert re.fullmatch(r"tw_[a-z0-9]{10}_[A-Za-z0-9]{43}", format_token(id, secret))
    assert parse_access_token(format_token(id, secret)) == (id, secret)


def test_no_two_are_alike() -> None:
    assert len({new_secret() for _ in range(100)}) == len({new_id() for _ in range(100)}) == 100


@pytest.mark.parametrize("text", ["", "tw_", "tw__", "tw_a_b", "eyJ.a.b", "tw_" + "a" * 10 + "_" + "b" * 42, "tw_é_x"])
def test_what_is_no_token_is_not_taken_apart(text: str) -> None:
    assert parse_access_token(text) is None


@settings(max_examples=30)
@given(st.integers(0, 42), st.sampled_from("abcXYZ019"))
def test_every_letter_of_the_secret_counts(place: int, letter: str) -> None:
    secret = new_secret()
    other = secret[:place] + letter + secret[place + 1 :]
    assert matches_secret(token(secret), secret)
    assert matches_secret(token(secret), other) == (other == secret)


def test_nothing_fits_a_token_that_is_not_there() -> None:
    assert not matches_secret(None, new_secret())
    assert not matches_secret(None, "nobody")


def test_neither_the_secret_nor_its_digest_is_shown() -> None:
    secret = new_secret()
    made = token(secret)
    assert secret not in repr(made)
    assert hash_secret(secret).hex() not in repr(made)
    assert repr(hash_secret(secret)) not in repr(made)


def test_it_is_good_until_it_expires() -> None:
    made = token(expires=10 * SECOND)
    made.check(10 * SECOND - 1)
    with pytest.raises(Unauthenticated, match="expired"):
        made.check(10 * SECOND)
    assert made.principal.expires == 10.0


def test_one_that_was_revoked_is_not_good_whatever_the_time() -> None:
    made = token(expires=10 * SECOND, revoked=5 * SECOND)
    with pytest.raises(Unauthenticated, match="the token k3m9x2pq00 is revoked"):
        made.check(0)


def test_who_shows_it_is_known_by_its_id() -> None:
    who = token(roles=("guest",)).principal
    assert (who.name, who.roles) == ("token:k3m9x2pq00", frozenset({"guest"}))
    assert {str(each) for each in who.grants} == {"publish:home"}


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("5m", 300), ("12h", 43_200), ("30d", 2_592_000), ("1w", 604_800)]
)
def test_a_lifetime_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert parse_lifetime(text) == seconds * SECOND


@pytest.mark.parametrize("text", ["", "30", "d", "0d", "-1d", "1.5h", "30 d", "1y", "9999999d"])
def test_what_is_no_lifetime_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="lifetime"):
        parse_lifetime(text)
