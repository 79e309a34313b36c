"""The webhook store: registered webhooks, delivery progress, dead letters, signing secrets and the delivery lock.

It holds what must survive any end of the process that delivers. The SQLite twin is a file of its own beside the log,
so that publishers never wait for it. Webhooks themselves are registry entries; secrets are not.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TextIO

from triplewire.model import END, START
from triplewire.model.errors import Unavailable
from triplewire.model.subscriptions import Owner
from triplewire.storage import sqlite
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import parse_owner


@dataclass(frozen=True)
class DeadLetter:
    """A message that was not taken, whatever was tried. What it said is not kept here but read again from history, so
    that what is erased there is nowhere."""

    hook: str
    position: int
    attempts: int
    reason: str
    status: int | None
    """Of the last answer; None where there was none."""
    parked: int
    """When, in microseconds of the wall clock."""


@dataclass(frozen=True)
class WebhookProgress:
    """How far a hook is: everything up to `position` was taken or parked."""

    position: int
    failures: int = 0
    """How often the message after that was tried in vain so far."""
    reason: str = ""
    """Why, the last time."""
    parked: int = 0
    """How many letters it has; counted, not noted."""


class ProgressStore(Protocol):
    """Places, letters and secrets of hooks by their ids. Called from any thread, by several processes at once.

    Every twin passes the same contract suite (`tests/storage/test_webhooks.py`).
    """

    def note(self, places: Mapping[str, WebhookProgress], parked: Sequence[DeadLetter] = ()) -> None:
        """How far hooks are, and what of that was parked, in one durable transaction. Raises StorageFull, and then
        nothing is noted."""

    def places(self) -> Mapping[str, WebhookProgress]:
        """Of all hooks of which something was noted, or something is parked."""

    def letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[DeadLetter]:
        """Those of a hook at positions above one, in order, so many at most."""

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        """Letters of a hook."""


class RedeliveryRequests(Protocol):
    """What whoever is asked to has delivered again, and whoever delivers does."""

    def ask(self, hook: str, positions: Sequence[int] | None = None) -> int:
        """To deliver letters of a hook again, all or those at positions; how many they are."""

    def asked(self) -> Mapping[str, Sequence[int]]:
        """The positions of letters that are to be delivered again, in order."""

    def done(self, hook: str, positions: Sequence[int]) -> None:
        """They were, or they are not going to be."""


class SecretStore(Protocol):
    """What hooks are signed with. It never leaves but to sign."""

    def keep(self, secrets: Mapping[str, str]) -> None:
        """Durably, in the place of what hooks had before."""

    def secret(self, hook: str) -> str | None: ...

    def forget(self, hook: str) -> None:
        """Everything about a hook: its letters, its place and its secret, which is written over."""


class DeliveryLock(Protocol):
    """Who delivers: one process at a time over one directory."""

    def take(self) -> bool:
        """Whether it is this one's turn, from now on until it is left, or the process ends in whatever way."""

    def leave(self) -> None: ...


class WebhookStore(ProgressStore, RedeliveryRequests, SecretStore, DeliveryLock, Protocol):
    """All of them in one."""


# The books of hooks in an SQLite file of their own, beside the log: nobody who publishes waits for them.

WEBHOOK_SCHEMA = {
    "places": """
        CREATE TABLE places (
            hook TEXT PRIMARY KEY, position INTEGER NOT NULL, failures INTEGER NOT NULL, reason TEXT NOT NULL
        ) WITHOUT ROWID""",
    "letters": """
        CREATE TABLE letters (
            hook TEXT NOT NULL, position INTEGER NOT NULL, attempts INTEGER NOT NULL, reason TEXT NOT NULL,
            status INTEGER, parked INTEGER NOT NULL, again INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (hook, position)
        ) WITHOUT ROWID""",
    "letters_again": "CREATE INDEX letters_again ON letters (hook, position) WHERE again",
    "secrets": "CREATE TABLE secrets (hook TEXT PRIMARY KEY, secret TEXT NOT NULL) WITHOUT ROWID",
}

_PLACE = "INSERT OR REPLACE INTO places (hook, position, failures, reason) VALUES (?, ?, ?, ?)"
_PARK = "INSERT OR REPLACE INTO letters (hook, position, attempts, reason, status, parked) VALUES (?, ?, ?, ?, ?, ?)"
_PLACES = """SELECT hook, max(position), max(failures), max(reason), sum(parked) FROM (
        SELECT hook, position, failures, reason, 0 AS parked FROM places
        UNION ALL SELECT hook, 0, 0, '', count(*) FROM letters GROUP BY hook
    ) GROUP BY hook"""
_LETTERS = """SELECT hook, position, attempts, reason, status, parked FROM letters
    WHERE hook = ? AND position > ? ORDER BY position LIMIT ?"""
_REMOVE = "DELETE FROM letters WHERE hook = ? AND position = ?"
_ASK_ALL = "UPDATE letters SET again = 1 WHERE hook = ?"
_ASK = "UPDATE letters SET again = 1 WHERE hook = ? AND position = ?"
_ASKED = "SELECT hook, position FROM letters INDEXED BY letters_again WHERE again ORDER BY hook, position"
_DONE = "UPDATE letters SET again = 0 WHERE hook = ? AND position = ?"
_KEEP = "INSERT OR REPLACE INTO secrets (hook, secret) VALUES (?, ?)"
_SECRET = "SELECT secret FROM secrets WHERE hook = ?"
_FORGET = tuple(f"DELETE FROM {table} WHERE hook = ?" for table in ("places", "letters", "secrets"))


class SqliteWebhookStore:
    """A file that any number of processes write and read; a lock beside it says whose turn it is. The system lets go of
    the lock when a process ends, in whatever way, so no clock has a say in it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Before SQLite makes files beside it, which nobody else may read either.
        path.touch(mode=0o600)
        self._database = sqlite.Database(path, WEBHOOK_SCHEMA)
        self._lock_path = path.with_suffix(".lock")
        self._lock: TextIO | None = None

    def note(self, places: Mapping[str, WebhookProgress], parked: Sequence[DeadLetter] = ()) -> None:
        rows = [(each.hook, each.position, each.attempts, each.reason, each.status, each.parked) for each in parked]
        with self._database.writing() as connection:
            noted = [(hook, each.position, each.failures, each.reason) for hook, each in places.items()]
            connection.executemany(_PLACE, noted)
            connection.executemany(_PARK, rows)

    def places(self) -> Mapping[str, WebhookProgress]:
        with self._database.reading() as connection:
            found = connection.execute(_PLACES).fetchall()
        return {hook: WebhookProgress(*place) for hook, *place in found}

    def letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[DeadLetter]:
        with self._database.reading() as connection:
            return [DeadLetter(*row) for row in connection.execute(_LETTERS, (hook, after, limit)).fetchall()]

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        self._each(_REMOVE, hook, positions)

    def ask(self, hook: str, positions: Sequence[int] | None = None) -> int:
        with self._database.writing() as connection:
            if positions is None:
                return connection.execute(_ASK_ALL, (hook,)).rowcount
            return sum(connection.execute(_ASK, (hook, each)).rowcount for each in positions)

    def asked(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        with self._database.reading() as connection:
            for hook, position in connection.execute(_ASKED).fetchall():
                found.setdefault(hook, []).append(position)
        return found

    def done(self, hook: str, positions: Sequence[int]) -> None:
        self._each(_DONE, hook, positions)

    def keep(self, secrets: Mapping[str, str]) -> None:
        with self._database.writing() as connection:
            connection.executemany(_KEEP, secrets.items())

    def secret(self, hook: str) -> str | None:
        with self._database.reading() as connection:
            found = connection.execute(_SECRET, (hook,)).fetchone()
        return None if found is None else found[0]

    def forget(self, hook: str) -> None:
        with self._database.writing() as connection:
            for statement in _FORGET:
                connection.execute(statement, (hook,))
        # Where somebody is in the way, what was written over goes with the next one that is forgotten.
        with suppress(Unavailable):
            self._database.scrub()

    def take(self) -> bool:
        lock = self._lock_path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return False
        self._lock = lock
        return True

    def leave(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        self.leave()
        self._database.close()

    def _each(self, statement: str, hook: str, positions: Sequence[int]) -> None:
        with self._database.writing() as connection:
            connection.executemany(statement, [(hook, each) for each in positions])


# Hooks as registry entries: to whom a subscription, or a stream, is delivered by POST. Secrets are kept elsewhere.

WEBHOOK = "hook"


class WebhookDialect(StrEnum):
    """How it is spoken to a target."""

    WEBHOOK = "webhook"
    WEBSUB = "websub"


class WebhookState(StrEnum):
    """What becomes of a hook."""

    ON = "on"
    """It is delivered."""
    GONE = "gone"
    """The target has said that it is there no more: nothing is delivered."""
    ENDED = "ended"
    """Somebody ended it: whoever delivers stops, and forgets it."""


@dataclass(frozen=True)
class Webhook:
    """A webhook has the id of its subscription. One of WebSub is of a stream, and says as what it knows it."""

    id: str
    url: str
    dialect: WebhookDialect = WebhookDialect.WEBHOOK
    state: WebhookState = WebhookState.ON
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


def webhook_to_value(hook: Webhook) -> Mapping[str, Any]:
    """What is stored under (`hook`, id)."""
    value: dict[str, Any] = {"url": hook.url, "dialect": hook.dialect.value, "state": hook.state.value}
    value |= {"created": hook.created} | ({} if hook.attempts is None else {"attempts": hook.attempts})
    if hook.stream is None:
        return value
    topic = {"stream": hook.stream, "format": hook.format, "topic": hook.topic, "hub": hook.hub}
    owner = {} if hook.owner is None else {"owner": vars(hook.owner)}
    return {**value, **topic, **owner, "begin": hook.begin, "until": hook.until}


def webhook_from_change(change: RegistryChange) -> Webhook:
    """The hook that a change set. A removal sets none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = dict(change.value)
    dialect, state = WebhookDialect(value.pop("dialect")), WebhookState(value.pop("state"))
    owner = parse_owner(value.pop("owner", None))
    return Webhook(change.key, dialect=dialect, state=state, owner=owner, since=change.position, **value)
