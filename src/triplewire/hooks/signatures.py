"""Signatures: how a receiver knows who calls it. Those of Standard Webhooks, and those of WebSub."""

from __future__ import annotations

import binascii
import hmac
import secrets
from base64 import b64decode, b64encode
from hashlib import sha256

from triplewire.errors import BadRequest

PREFIX = "whsec_"
LEAST, MOST = 24, 64
"""Bytes of a key, as Standard Webhooks has it."""


def new_secret() -> str:
    """One that nobody knows."""
    return PREFIX + b64encode(secrets.token_bytes(32)).decode()


def check_secret(text: str) -> str:
    """The secret, if it is one. Raises BadRequest, which does not repeat it."""
    try:
        size = len(_key(text)) if text.startswith(PREFIX) else 0
    except (binascii.Error, ValueError):
        size = 0
    if not LEAST <= size <= MOST:
        raise BadRequest(
            f"a secret is {PREFIX} and {LEAST} to {MOST} random bytes in base64; leave it out for a new one"
        )
    return text


def signed(secret: str, id: str, seconds: int, body: bytes) -> dict[str, str]:
    """The headers of one call by Standard Webhooks."""
    digest = hmac.digest(_key(secret), b"%b.%d.%b" % (id.encode(), seconds, body), sha256)
    signature = f"v1,{b64encode(digest).decode()}"
    return {"webhook-id": id, "webhook-timestamp": str(seconds), "webhook-signature": signature}


def hub_signature(secret: str, body: bytes) -> str:
    """The value of `X-Hub-Signature`."""
    return f"sha256={hmac.digest(secret.encode(), body, sha256).hex()}"


def _key(secret: str) -> bytes:
    return b64decode(secret.removeprefix(PREFIX), validate=True)
