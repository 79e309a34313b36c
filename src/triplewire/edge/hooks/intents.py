"""Intents: what a subscriber asks a hub for, and whether it is the one who is meant.

```
subscriber                                hub
    │── POST /websub  hub.mode=subscribe ──▶│
    │◀───────────────────────────── 202 ────│
    │◀── GET callback?hub.challenge=… ──────│   is it you who asked?
    │── 200 and the challenge ─────────────▶│
    │◀── POST callback  an event ───────────│   until the lease is over
```
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from urllib.parse import parse_qsl, urlencode, urlsplit

from triplewire.config import limits
from triplewire.edge.hooks.posts import TOPICS
from triplewire.model.errors import BadRequest
from triplewire.security.webhooks import AllowedNetworks, parse_target
from triplewire.storage.registry.streams import check_stream_name


class Mode(StrEnum):
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"


@dataclass(frozen=True)
class Topic:
    """A stream as a subscriber knows it, and the format in which it is sent."""

    url: str
    stream: str
    format: str

    @classmethod
    def parsed(cls, url: str, host: str) -> Topic:
        """Raises BadRequest for what is no stream of this host."""
        parts = urlsplit(url)
        folder, _, name = parts.path.rpartition("/")
        if parts.scheme not in ("http", "https") or parts.netloc != host or folder != "/streams" or parts.fragment:
            raise BadRequest(f"hub.topic must be the address of a stream here, such as http://{host}/streams/home")
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        format = asked.pop("format", "nquads")
        if asked or format not in TOPICS:
            raise BadRequest(f"hub.topic may say ?format={' or '.join(TOPICS)}, and nothing else")
        return cls(url, check_stream_name(name), format)


@dataclass(frozen=True)
class Intent:
    """What is asked for."""

    mode: Mode
    topic: Topic
    callback: str
    lease: int
    secret: str | None = field(default=None, repr=False)
    challenge: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @classmethod
    def parsed(cls, form: Mapping[str, str], host: str, networks: AllowedNetworks) -> Intent:
        """Raises BadRequest."""
        try:
            mode = Mode(form.get("hub.mode", ""))
        except ValueError:
            raise BadRequest(f"hub.mode must be {' or '.join(Mode)}") from None
        callback = parse_target(form.get("hub.callback", ""), networks).url
        topic = Topic.parsed(form.get("hub.topic", ""), host)
        return cls(mode, topic, callback, _lease(form.get("hub.lease_seconds")), _secret(form.get("hub.secret")))

    @property
    def id(self) -> str:
        """The same for whoever asks the same again: that renews it."""
        return sha256(f"{self.topic.url}\n{self.callback}".encode()).hexdigest()[:32]

    def question(self) -> str:
        """The address by which the subscriber is asked whether it meant that."""
        asked = {"hub.mode": self.mode.value, "hub.topic": self.topic.url, "hub.challenge": self.challenge}
        asked |= {"hub.lease_seconds": str(self.lease)} if self.mode is Mode.SUBSCRIBE else {}
        return _extended(self.callback, asked)

    def denial(self, reason: str) -> str:
        """The address by which the subscriber is told that it will not be."""
        return _extended(self.callback, {"hub.mode": "denied", "hub.topic": self.topic.url, "hub.reason": reason})


def _extended(url: str, parameters: Mapping[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(parameters)}"


def _lease(given: str | None) -> int:
    """As asked for, within what a hub grants."""
    if given is None or given == "":
        return limits.WEBSUB_LEASE_SECONDS
    if not (given.isascii() and given.isdigit()):
        raise BadRequest(f"hub.lease_seconds must be a whole number of seconds, not {given!r}")
    return min(max(int(given[:12]), limits.WEBSUB_LEASE_SECONDS_LEAST), limits.WEBSUB_LEASE_SECONDS_MOST)


def _secret(given: str | None) -> str | None:
    if given is not None and not 0 < len(given.encode()) < limits.WEBSUB_SECRET_BYTES:
        raise BadRequest(f"hub.secret has at least one and less than {limits.WEBSUB_SECRET_BYTES} bytes")
    return given
