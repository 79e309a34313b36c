"""Bearer tokens that the broker issues itself. The registry stores a digest of the secret, never the token.

    tw_k3m9x2pq_4vN0…     a prefix that secret scanners recognize; the id; the secret

The secret is random, with 256 bits. So one SHA-256 of it is as good as a slow hash, which is meant for secrets that
people choose, and costs a microsecond per request.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from triplewire.model.errors import BadRequest, Unauthenticated
from triplewire.security.principals import Principal

TOKEN_GRANTS: Final = 64
"""Grants and roles of one token: each is looked at in a request."""

TOKEN_CHARACTERS: Final = 256
"""The name of a token, and each of its grants and roles."""


TOKEN_PREFIX = "tw"
_ID_ALPHABET = string.ascii_lowercase + string.digits
_ALPHABET = string.ascii_letters + string.digits
_ID_CHARACTERS = 10
_SECRET_CHARACTERS = 43
"""43 characters of 62: 256 bits."""
_TEXT = re.compile(rf"{TOKEN_PREFIX}_([a-z0-9]{{{_ID_CHARACTERS}}})_([A-Za-z0-9]{{{_SECRET_CHARACTERS}}})")
_NO_TOKEN_DIGEST = hashlib.sha256(b"nobody").digest()


@dataclass(frozen=True)
class AccessToken:
    """A token as it is stored. Times are microseconds since 1970."""

    id: str
    name: str
    """The purpose that its maker gave."""
    digest: bytes = field(repr=False)
    allows: tuple[str, ...]
    """Its grants as they are written."""
    roles: tuple[str, ...] = ()
    created: int = 0
    expires: int | None = None
    revoked: int | None = None

    @property
    def principal(self) -> Principal:
        """The principal of its bearer. Raises BadRequest for a malformed grant."""
        seconds = None if self.expires is None else self.expires / 1_000_000
        return replace(Principal.granted(principal_name(self.id), self.allows, self.roles), expires=seconds)

    def state(self, now: int) -> Literal["good", "expired", "revoked"]:
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "good"

    def check(self, now: int) -> None:
        """Raises Unauthenticated where it is good no more."""
        state = self.state(now)
        if state != "good":
            raise Unauthenticated(f"the token {self.id} is {state}; ask for another", given=True)


def principal_name(id: str) -> str:
    """By which whoever shows a token is known; it is in the audit log, and in answers."""
    return f"token:{id}"


def new_id() -> str:
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_CHARACTERS))


def new_secret() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_CHARACTERS))


def format_token(id: str, secret: str) -> str:
    """The token itself, which is shown once."""
    return f"{TOKEN_PREFIX}_{id}_{secret}"


def parse_access_token(text: str) -> tuple[str, str] | None:
    """The id and the secret of a text that looks like a token; None for another."""
    found = _TEXT.fullmatch(text)
    return None if found is None else (found[1], found[2])


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def matches_secret(token: AccessToken | None, secret: str) -> bool:
    """Whether it is the secret of the token. It takes as long for one that is not there, or that differs at once."""
    return (
        hmac.compare_digest(_NO_TOKEN_DIGEST if token is None else token.digest, hash_secret(secret))
        and token is not None
    )


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LIFETIME = re.compile(r"([0-9]{1,6})([smhdw])")


def parse_lifetime(text: str) -> int:
    """The microseconds that a text such as `30d` or `12h` says. Raises BadRequest."""
    found = _LIFETIME.fullmatch(text)
    if not found or not int(found[1]):
        raise BadRequest(f"{text!r} is no lifetime: say a number and s, m, h, d or w, such as 30d")
    return int(found[1]) * _UNITS[found[2]] * 1_000_000
