"""Hooks as registry entries: to whom a subscription, or a stream, is delivered by POST. Secrets are kept elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from triplewire.model import END
from triplewire.model.subscriptions import Owner
from triplewire.registry.ports import Change
from triplewire.registry.subscriptions import owner_in

HOOK = "hook"


class Dialect(StrEnum):
    """How it is spoken to a target."""

    WEBHOOK = "webhook"
    WEBSUB = "websub"


class State(StrEnum):
    """What becomes of a hook."""

    ON = "on"
    """It is delivered."""
    GONE = "gone"
    """The target has said that it is there no more: nothing is delivered."""
    ENDED = "ended"
    """Somebody ended it: whoever delivers stops, and forgets it."""


@dataclass(frozen=True)
class Hook:
    """A webhook has the id of its subscription. One of WebSub is of a stream, and says as what it knows it."""

    id: str
    url: str
    dialect: Dialect = Dialect.WEBHOOK
    state: State = State.ON
    attempts: int | None = None
    """How often a message is tried before it is parked; None for as often as usual."""
    created: int = 0
    stream: str | None = None
    format: str = "json"
    topic: str = ""
    hub: str = ""
    begin: int = 0
    """The position after which the stream is told."""
    until: int = END
    """When its lease is over, in microseconds of the wall clock."""
    owner: Owner | None = None
    """Who had a stream delivered, and hears of it what they see; None for everyone."""
    since: int = 0
    """Where it was set last."""


def to_value(hook: Hook) -> Mapping[str, Any]:
    """What is stored under (`hook`, id)."""
    value: dict[str, Any] = {"url": hook.url, "dialect": hook.dialect.value, "state": hook.state.value}
    value |= {"created": hook.created} | ({} if hook.attempts is None else {"attempts": hook.attempts})
    if hook.stream is None:
        return value
    topic = {"stream": hook.stream, "format": hook.format, "topic": hook.topic, "hub": hook.hub}
    owner = {} if hook.owner is None else {"owner": vars(hook.owner)}
    return {**value, **topic, **owner, "begin": hook.begin, "until": hook.until}


def from_change(change: Change) -> Hook:
    """The hook that a change set. A removal sets none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = dict(change.value)
    dialect, state = Dialect(value.pop("dialect")), State(value.pop("state"))
    owner = owner_in(value.pop("owner", None))
    return Hook(change.key, dialect=dialect, state=state, owner=owner, since=change.position, **value)
