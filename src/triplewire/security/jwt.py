"""JSON Web Tokens of another issuer (RFC 7519), verified with the issuer's public key set (RFC 7517).

`scope` holds grants separated by spaces (`publish:home consume:*`); scopes of other services are ignored. The claim
`mercure` grants by topics. `roles` holds the roles, `sub` the name. A token must have `exp`: it cannot be revoked
here. Key sets are read from a file or over HTTPS, never on the event loop, and at a bounded rate.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

import orjson

from triplewire.model.cache import BoundedCache
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, Unauthenticated, Unavailable
from triplewire.security.principals import Grant, Principal, Verb, stream_pattern_of

VERIFIED_TOKENS: Final = 10_000
"""Signed tokens of others that are remembered as checked: a signature takes some 0.2 ms. Some 10 MB at worst."""

JWKS_BYTES: Final = 1024 * 1024
"""A set of public keys. Real ones have a few kB."""

JWKS_TIMEOUT_SECONDS: Final = 10.0
"""How long a set of keys may take to come."""

JWKS_SECONDS: Final = 600.0
"""After which a set of keys is read again, so that a key that was taken back is not believed for longer."""

JWKS_PAUSE_SECONDS: Final = 60.0
"""Between two readings for keys that are not known: anybody can name one, and must not make us ask each time."""

JWKS_RETRY_SECONDS: Final = 5.0
"""Between two readings of which the first failed."""


_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
ALGORITHMS: Mapping[tuple[str, str | None], frozenset[str]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
}
"""By the kind and the curve of a key, what it may have signed with. Neither `none` nor anything with a shared secret is
among them: a public key is no secret, and whoever knows it could sign."""


class UnknownKey(Unauthenticated):
    """A token was signed with a key that is not in the set; a newer set may have it."""


@dataclass(frozen=True)
class JwtRules:
    """Requirements for tokens. Times may differ by `leeway` seconds, because clocks do."""

    issuer: str
    audience: str
    leeway: float = 0.0


@dataclass(frozen=True)
class PublicKey:
    """A public key, and the algorithms that it is for."""

    public: Any
    algorithms: frozenset[str]


class KeySet:
    """A set of public keys, and the principals whose tokens were verified with them."""

    def __init__(self, rules: JwtRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._keys: dict[str | None, PublicKey] = {}
        self._verified: BoundedCache[bytes, Principal] = BoundedCache(VERIFIED_TOKENS)

    def __len__(self) -> int:
        return len(self._keys)

    def replace(self, document: bytes) -> None:
        """Replace the keys. Raises BadRequest for a document that is no key set; then the old keys stay."""
        self._keys = _parse_key_set(document)
        # What was signed with a key that was taken back is not good any more.
        self._verified.clear()

    def known(self, text: str) -> Principal | None:
        """The principal of a token; None for a text that is no JWT. Raises Unauthenticated, or UnknownKey."""
        if text.count(".") != 2:
            return None
        sign = hashlib.sha256(text.encode()).digest()
        found = self._verified.get(sign) or self._verify(text)
        if found.expires is not None and found.expires + self._rules.leeway <= self._clock.now() / 1_000_000:
            raise _refusal("it has expired")
        self._verified.put(sign, found)
        return found

    def _verify(self, text: str) -> Principal:
        import jwt

        try:
            header = jwt.get_unverified_header(text)
            key = self._key_of(header)
            claims = jwt.decode(text, key.public, algorithms=[header["alg"]], options=_OPTIONS)  # type: ignore[arg-type]
        except jwt.PyJWTError as error:
            raise _refusal(str(error)) from None
        self._check(claims)
        return _principal_from_claims(claims)

    def _key_of(self, header: Mapping[str, Any]) -> PublicKey:
        key = self._keys.get(header.get("kid"))
        if key is None:
            raise UnknownKey("the token is not good: it was signed with a key that is not known here", given=True)
        if header.get("alg") not in key.algorithms:
            raise _refusal(f"its key is not for {header.get('alg')!r}")
        return key

    def _check(self, claims: Mapping[str, Any]) -> None:
        """Check issuer, audience and `nbf`. Expiry is checked at each use."""
        audience = claims.get("aud")
        if self._rules.audience not in (audience if isinstance(audience, list) else [audience]):
            raise _refusal(f"it is for another audience than {self._rules.audience}")
        if claims.get("iss") != self._rules.issuer:
            raise _refusal(f"it is of another issuer than {self._rules.issuer}")
        if not _is_time(claims.get("exp")):
            raise _refusal("it does not say when it expires")
        if not isinstance(claims.get("sub"), str) or not claims["sub"]:
            raise _refusal("it does not say whose it is")
        now = self._clock.now() / 1_000_000 + self._rules.leeway
        if any(claims.get(name) is not None and not _is_time(claims[name], now) for name in ("nbf", "iat")):
            raise _refusal("it is not good yet")


_OPTIONS = {f"verify_{name}": False for name in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
"""Checks that the library would do by its own clock, or in another way."""


def _parse_key_set(document: bytes) -> dict[str | None, PublicKey]:
    try:
        found = orjson.loads(document)["keys"]
        keys = {each.get("kid"): key for each in found if (key := _parse_key(each)) is not None}
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise BadRequest(f"this is no set of keys: {error}") from None
    if not keys:
        raise BadRequest("the set has no public key of a kind that is known here: RSA, EC or Ed25519")
    return keys


def _parse_key(raw: Mapping[str, Any]) -> PublicKey | None:
    """None for one that signs nothing for us: of another kind, or for encryption."""
    import jwt

    algorithms = ALGORITHMS.get((raw.get("kty", ""), raw.get("crv")))
    if algorithms is None or raw.get("use", "sig") != "sig":
        return None
    if "d" in raw:
        raise BadRequest("the set has a private key, which nobody must have but who signs: publish the public ones")
    stated = algorithms & {raw.get("alg")} if "alg" in raw else algorithms
    try:
        return PublicKey(jwt.PyJWK.from_dict(dict(raw), min(algorithms)).key, stated)
    except jwt.PyJWTError as error:
        raise BadRequest(f"a key of the set cannot be read: {error}") from None


def _principal_from_claims(claims: Mapping[str, Any]) -> Principal:
    roles = _texts(claims.get("roles"))
    scope = claims.get("scope", "")
    grants = frozenset(_parse_scope(scope.split() if isinstance(scope, str) else ())) | _grants_of_topics(
        claims.get("mercure")
    )
    return Principal(f"jwt:{claims['sub']}", grants, frozenset(roles), float(claims["exp"]))


def _parse_scope(texts: Iterable[str]) -> Iterable[Grant]:
    for text in texts:
        try:
            yield from Grant.parsed(text)
        except BadRequest:
            # `openid`, `profile` and the like are for others.
            continue


def _grants_of_topics(claim: object) -> frozenset[Grant]:
    """Grants of the claim `mercure`: to publish to topics, and to subscribe to them, which is `consume`."""
    said = claim if isinstance(claim, dict) else {}
    pairs = ((verb, said.get(name)) for name, verb in (("publish", Verb.PUBLISH), ("subscribe", Verb.CONSUME)))
    named = ((verb, stream_pattern_of(each)) for verb, topics in pairs for each in _texts(topics))
    return frozenset(Grant(verb, pattern) for verb, pattern in named if pattern is not None)


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _is_time(value: object, latest: float = math.inf) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= latest


def _refusal(why: str) -> Unauthenticated:
    return Unauthenticated(f"the token is not good: {why}", given=True)


_LOOPBACK = ("localhost", "127.0.0.1", "::1")

logger = logging.getLogger(__name__)


class JwtAuthenticator:
    """Authenticates by JWT. The keys are read at the first token, again when a key is unknown, and periodically; never
    on the event loop, and at a bounded rate, whatever clients send."""

    def __init__(self, keys: KeySet, read: Callable[[], bytes], clock: Clock) -> None:
        self._keys = keys
        self._read = read
        self._clock = clock
        self._not_before = float("-inf")
        self._old = float("-inf")
        self._turn = asyncio.Lock()

    async def known(self, credential: str) -> Principal | None:
        """Raises Unavailable if the keys could never be read."""
        if credential.count(".") != 2:
            return None
        await self._refresh(self._old)
        try:
            return self._keys.known(credential)
        except UnknownKey:
            await self._refresh(self._not_before)
            return self._keys.known(credential)

    async def _refresh(self, due: float) -> None:
        """Read the keys if they are due. A failure is logged, and retried later; the known keys stay."""
        if self._clock.ticks() >= max(due, self._not_before):
            async with self._turn:
                if self._clock.ticks() >= max(due, self._not_before):
                    await self._fetch()
        if not len(self._keys):
            raise Unavailable("the keys by which tokens are checked could not be read; try again later")

    async def _fetch(self) -> None:
        pause = JWKS_RETRY_SECONDS
        try:
            self._keys.replace(await asyncio.to_thread(self._read))
            pause = JWKS_PAUSE_SECONDS
            self._old = self._clock.ticks() + JWKS_SECONDS
        except (OSError, ValueError, BadRequest) as error:
            logger.error("the keys by which tokens are checked stay as they were: %s", error)
        self._not_before = self._clock.ticks() + pause


def key_set_reader(location: str) -> Callable[[], bytes]:
    """Return a function that reads the document from a file or an https address. Raises BadRequest for an address that
    is not protected by TLS, except on this machine."""
    parts = urlsplit(location)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return partial(_download, location)
    if "://" in location:
        raise BadRequest(f"jwt_keys must be a file or an https address, not {location}")
    return lambda: _read_limited(Path(location).open("rb"))


def _download(url: str) -> bytes:
    asked = urllib.request.Request(url, headers={"Accept": "application/jwk-set+json, application/json"})
    return _read_limited(urllib.request.urlopen(asked, timeout=JWKS_TIMEOUT_SECONDS))


def _read_limited(source: BinaryIO) -> bytes:
    with source:
        document = source.read(JWKS_BYTES + 1)
    if len(document) > JWKS_BYTES:
        raise BadRequest(f"the set of keys is larger than {JWKS_BYTES} bytes")
    return document
