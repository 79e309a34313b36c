"""Keys: tokens that others have signed, and what must not be believed of them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from functools import cache
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from triplewire.model.clock import ManualClock
from triplewire.model.errors import BadRequest, Unauthenticated
from triplewire.security.jwt import JwtRules, KeySet, UnknownKey

RULES = JwtRules("https://id.example", "triplewire", 30.0)


@cache
def private(kind: str) -> Any:  # noqa: ANN401 - of the library's many kinds
    match kind:
        case "RSA":
            return rsa.generate_private_key(65_537, 2_048)
        case "P-384":
            return ec.generate_private_key(ec.SECP384R1())
        case "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return ec.generate_private_key(ec.SECP256R1())


def published(kind: str, kid: str | None = "one", **others: Any) -> dict[str, Any]:  # noqa: ANN401
    public = private(kind).public_key()
    algorithm: Any = {"RSA": RSAAlgorithm, "Ed25519": OKPAlgorithm}.get(kind, ECAlgorithm)
    made: dict[str, Any] = algorithm.to_jwk(public, as_dict=True)
    return {**made, **({} if kid is None else {"kid": kid}), **others}


def document(*keys: dict[str, Any]) -> bytes:
    return orjson.dumps({"keys": list(keys)})


def claims(clock: ManualClock, **others: Any) -> dict[str, Any]:  # noqa: ANN401
    now = clock.now() // 1_000_000
    said = {"iss": RULES.issuer, "aud": RULES.audience, "sub": "ann", "exp": now + 600, "scope": "publish:home openid"}
    return {name: value for name, value in {**said, **others}.items() if value is not None}


def signed(payload: dict[str, Any], kind: str = "P-256", algorithm: str = "ES256", kid: str | None = "one") -> str:
    return jwt.encode(payload, private(kind), algorithm, headers={"kid": kid} if kid else None)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def keys(clock: ManualClock) -> KeySet:
    made = KeySet(RULES, clock)
    made.replace(document(published("P-256")))
    return made


def test_who_is_signed_for_is_known(keys: KeySet, clock: ManualClock) -> None:
    who = keys.known(signed(claims(clock, roles=["guest", 1])))
    assert who is not None
    assert (who.name, who.roles) == ("jwt:ann", frozenset({"guest"}))
    assert {str(each) for each in who.grants} == {"publish:home"}
    assert who.expires == clock.now() // 1_000_000 + 600


@pytest.mark.parametrize("text", ["", "x", "tw_a_b", "a.b", "a.b.c.d"])
def test_what_does_not_look_like_one_is_left_to_others(keys: KeySet, text: str) -> None:
    assert keys.known(text) is None


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [("RSA", "RS256"), ("RSA", "PS512"), ("P-256", "ES256"), ("P-384", "ES384"), ("Ed25519", "EdDSA")],
)
def test_keys_of_every_kind(clock: ManualClock, kind: str, algorithm: str) -> None:
    keys = KeySet(RULES, clock)
    keys.replace(document(published(kind)))
    assert keys.known(signed(claims(clock), kind, algorithm)) is not None


def test_a_set_with_one_key_needs_no_names(clock: ManualClock) -> None:
    keys = KeySet(RULES, clock)
    keys.replace(document(published("P-256", None)))
    assert keys.known(signed(claims(clock), kid=None)) is not None


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()


def unsigned(payload: dict[str, Any]) -> str:
    """Threat: a token that says it needs no signature."""
    return f"{_part({'alg': 'none', 'kid': 'one', 'typ': 'JWT'})}.{_part(payload)}."


def with_the_public_key(payload: dict[str, Any]) -> str:
    """Threat: the public key, which everyone knows, taken for a shared secret."""
    pem = (
        private("RSA")
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    told = f"{_part({'alg': 'HS256', 'kid': 'one', 'typ': 'JWT'})}.{_part(payload)}"
    sign = hmac.new(pem, told.encode(), hashlib.sha256).digest()
    return f"{told}.{base64.urlsafe_b64encode(sign).rstrip(b'=').decode()}"


def with_another_key(payload: dict[str, Any]) -> str:
    """Threat: somebody else's key under a name that is known."""
    return jwt.encode(payload, rsa.generate_private_key(65_537, 2_048), "RS256", headers={"kid": "one"})


def with_a_key_of_its_own(payload: dict[str, Any]) -> str:
    """Threat: a token that brings the key by which it wants to be checked."""
    other = ec.generate_private_key(ec.SECP256R1())
    brought = ECAlgorithm.to_jwk(other.public_key(), as_dict=True)
    return jwt.encode(payload, other, "ES256", headers={"kid": "one", "jwk": brought})


def changed(payload: dict[str, Any]) -> str:
    """Threat: more grants than were signed."""
    head, _, sign = signed(payload, "RSA", "RS256").split(".")
    return f"{head}.{_part({**payload, 'scope': '*'})}.{sign}"


@pytest.mark.parametrize("forge", [unsigned, with_the_public_key, with_another_key, with_a_key_of_its_own, changed])
def test_what_is_forged_is_not_good(clock: ManualClock, forge: Callable[[dict[str, Any]], str]) -> None:
    keys = KeySet(RULES, clock)
    keys.replace(document(published("RSA")))
    with pytest.raises(Unauthenticated, match="not good"):
        keys.known(forge(claims(clock)))


@pytest.mark.parametrize(
    "others",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "others"},
        {"aud": ["others", "more"]},
        {"aud": None},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"nbf": 1_800_000_000},
        {"iat": 1_800_000_000},
        {"nbf": "soon"},
    ],
)
def test_what_says_something_else_is_not_good(keys: KeySet, clock: ManualClock, others: dict[str, Any]) -> None:
    payload = claims(clock, **others)
    # Signed as it is: the library would not say some of it.
    text = jwt.api_jws.PyJWS().encode(orjson.dumps(payload), private("P-256"), "ES256", headers={"kid": "one"})
    with pytest.raises(Unauthenticated):
        keys.known(text)


def test_one_of_several_audiences_will_do(keys: KeySet, clock: ManualClock) -> None:
    assert keys.known(signed(claims(clock, aud=["others", RULES.audience]))) is not None


def test_clocks_may_differ_a_little(keys: KeySet, clock: ManualClock) -> None:
    now = clock.now() // 1_000_000
    text = signed(claims(clock, nbf=now + 29, exp=now + 60))
    assert keys.known(text) is not None
    clock.advance(89)
    assert keys.known(text) is not None
    clock.advance(1)
    with pytest.raises(Unauthenticated, match="expired"):
        keys.known(text)


def test_a_key_that_is_not_in_the_set_may_be_in_the_next(keys: KeySet, clock: ManualClock) -> None:
    text = signed(claims(clock), "P-384", "ES384", "two")
    with pytest.raises(UnknownKey):
        keys.known(text)
    keys.replace(document(published("P-256"), published("P-384", "two")))
    assert keys.known(text) is not None


def test_a_key_that_was_taken_back_is_not_believed_though_it_was(keys: KeySet, clock: ManualClock) -> None:
    text = signed(claims(clock))
    assert keys.known(text) is not None
    keys.replace(document(published("P-384", "two")))
    with pytest.raises(UnknownKey):
        keys.known(text)


def test_a_key_signs_only_with_what_it_is_for(clock: ManualClock) -> None:
    keys = KeySet(RULES, clock)
    keys.replace(document(published("RSA", alg="RS256")))
    assert keys.known(signed(claims(clock), "RSA", "RS256")) is not None
    with pytest.raises(Unauthenticated, match="not for 'PS256'"):
        keys.known(signed(claims(clock), "RSA", "PS256"))


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"{}",
        b"[]",
        b'{"keys": 1}',
        b'{"keys": [1]}',
        b'{"keys": []}',
        b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}',
        b'{"keys": [{"kty": "RSA", "n": "x", "e": "y"}]}',
        document({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}),
    ],
)
def test_what_is_no_set_of_keys_changes_nothing(keys: KeySet, clock: ManualClock, given: bytes) -> None:
    with pytest.raises(BadRequest):
        keys.replace(given)
    assert keys.known(signed(claims(clock))) is not None


def test_keys_for_other_uses_are_passed_over(clock: ManualClock) -> None:
    keys = KeySet(RULES, clock)
    keys.replace(document(published("P-256"), published("RSA", "two", use="enc")))
    assert len(keys) == 1


def test_a_set_with_a_private_key_is_refused_and_not_repeated(clock: ManualClock) -> None:
    secret: dict[str, Any] = ECAlgorithm.to_jwk(private("P-256"), as_dict=True)
    with pytest.raises(BadRequest, match="private key") as caught:
        KeySet(RULES, clock).replace(document(secret))
    assert secret["d"] not in str(caught.value)
