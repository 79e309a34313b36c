"""Signatures, as those check them who are called; and when to try again."""

from __future__ import annotations

import time
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook

from triplewire.http.webhooks.calls import (
    WEBHOOK_ATTEMPTS,
    WEBHOOK_PAUSE_LONGEST,
    WEBHOOK_RETRY_AFTER,
    RetrySchedule,
    parse_retry_after,
)
from triplewire.model.clock import Backoff
from triplewire.model.errors import BadRequest
from triplewire.security.webhooks import check_secret, hub_signature, new_secret, signature_headers


@given(st.binary(min_size=24, max_size=64), st.sampled_from(["{}", '{"a": "é"}', '{"body": "<urn:s> .\\n"}']))
@settings(max_examples=40, deadline=None)
def test_a_library_for_receivers_takes_them(key: bytes, body: str) -> None:
    secret = check_secret("whsec_" + b64encode(key).decode())
    Webhook(secret).verify(body, signature_headers(secret, "s1_000000000000002a", int(time.time()), body.encode()))


def test_a_new_secret_is_one_and_another_each_time() -> None:
    assert check_secret(new_secret()) != check_secret(new_secret())


@pytest.mark.parametrize("text", ["", "password", "whsec_", "whsec_QUJD", "whsec_" + "ä" * 40, "whsec_" + "A" * 200])
def test_what_is_no_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(BadRequest) as error:
        check_secret(text)
    assert not text.removeprefix("whsec_") or text not in str(error.value)


def test_the_signature_of_websub_is_that_of_rfc_4231() -> None:
    wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert hub_signature("Jefe", b"what do ya want for nothing?") == f"sha256={wanted}"


def test_pauses_double_within_bounds_and_vary_by_half() -> None:
    least, most = (
        RetrySchedule(backoff=Backoff(1.0, WEBHOOK_PAUSE_LONGEST, chance=lambda: 0.0)),
        RetrySchedule(backoff=Backoff(1.0, WEBHOOK_PAUSE_LONGEST, chance=lambda: 1.0)),
    )
    assert [most.pause(each) for each in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 8.0]
    assert [least.pause(each) for each in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert most.pause(1000) == WEBHOOK_PAUSE_LONGEST
    assert most.pause(1, 30.0) == 30.0
    assert most.pause(1, 1e9) == WEBHOOK_RETRY_AFTER
    assert [most.is_over(each) for each in (1, WEBHOOK_ATTEMPTS)] == [False, True]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, None),
        ("", None),
        ("120", 120.0),
        ("-1", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
    ],
)
def test_a_target_says_when_to_come_back_in_seconds_or_by_a_date(value: str | None, wanted: float | None) -> None:
    assert parse_retry_after(value, 1_445_412_480_000_000) == wanted
