"""Webhooks: what a client says of where its notifications are to be sent, and what is kept of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triplewire.config import limits
from triplewire.model.errors import BadRequest, InvalidField
from triplewire.security.webhooks import AllowedNetworks, check_secret, new_secret, parse_target
from triplewire.storage.webhooks import SecretStore
from triplewire.storage.webhooks import Webhook as Webhook_webhooks

FIELDS = ("url", "secret", "attempts")


@dataclass(frozen=True)
class Webhook:
    """Checked, but for whether the address may be called."""

    url: str
    secret: str = field(repr=False)
    attempts: int | None = None
    fresh: bool = False
    """The secret was made here, and is told once."""

    @classmethod
    def from_json(cls, value: object) -> Webhook:
        """Raises Unfit, which never repeats a secret."""
        if not isinstance(value, dict) or not isinstance(value.get("url"), str):
            raise InvalidField("webhook", 'webhook is an object with an address: {"url": "https://example.org/hook"}')
        for name in value:
            if name not in FIELDS:
                raise InvalidField("webhook", f"a webhook has no {name}; it has {', '.join(FIELDS)}")
        given = value.get("secret")
        secret = new_secret() if given is None else _secret(given)
        return cls(value["url"], secret, _attempts(value.get("attempts")), given is None)

    def told(self) -> dict[str, Any]:
        """To whoever made it, once."""
        told = {"url": self.url} | ({} if self.attempts is None else {"attempts": self.attempts})
        return {**told, "secret": self.secret} if self.fresh else told


@dataclass(frozen=True)
class Webhooks:
    """Where secrets are kept, and who may be called."""

    secrets: SecretStore
    networks: AllowedNetworks

    def hook(self, id: str, wanted: Webhook, created: int) -> Webhook_webhooks:
        """Of a subscription. Raises Unfit for an address that may not be called."""
        try:
            target = parse_target(wanted.url, self.networks)
        except BadRequest as error:
            raise InvalidField("webhook", f"url: {error}") from None
        return Webhook_webhooks(id, target.url, attempts=wanted.attempts, created=created)

    def keep(self, secrets: Mapping[str, str]) -> None:
        """Before the hooks are there."""
        if secrets:
            self.secrets.keep(secrets)


def _secret(given: object) -> str:
    try:
        return check_secret(given if isinstance(given, str) else "")
    except BadRequest as error:
        raise InvalidField("webhook", str(error)) from None


def _attempts(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= limits.HOOK_ATTEMPTS_MOST:
        raise InvalidField("webhook", f"attempts must be a whole number from 1 to {limits.HOOK_ATTEMPTS_MOST}")
    return given
