"""Envelopes: a message as it is sent to a target, with an id by which a repeat is known, and signed each time anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplewire.edge.hooks.posts import FORMATS, POSTS
from triplewire.model import format_position
from triplewire.security.webhooks import hub_signature, signature_headers
from triplewire.storage.webhooks import Webhook, WebhookDialect

_MESSAGES = (b'{"type":"event"', b'{"type":"notification"')
"""How those begin that are not about the delivery itself; there is one at a position, at most."""


@dataclass(frozen=True)
class Envelope:
    """One message of one hook."""

    id: str
    body: bytes


def enveloped(hook: Webhook, position: int, part: bytes) -> Sequence[Envelope]:
    """What is sent of what is told at a position: as a rule one message, none where it only says how far it is, and two
    where it is told before that something is kept no more."""
    id = f"{hook.id}_{format_position(position)}"
    if FORMATS[hook.format] is not POSTS:
        return [Envelope(id, part)] if part.strip() else []
    lines = enumerate(part.splitlines())
    return [Envelope(id if each.startswith(_MESSAGES) else f"{id}_{number}", each) for number, each in lines]


def headers(hook: Webhook, secret: str | None, envelope: Envelope, now: int) -> dict[str, str]:
    """Of one call, at a time in microseconds."""
    said = {"Content-Type": FORMATS[hook.format].media_type}
    if hook.dialect is WebhookDialect.WEBSUB:
        said["Link"] = f'<{hook.hub}>; rel="hub", <{hook.topic}>; rel="self"'
        return said if secret is None else {**said, "X-Hub-Signature": hub_signature(secret, envelope.body)}
    return {**said, **signature_headers(secret or "", envelope.id, now // 1_000_000, envelope.body)}
