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
from typing import Protocol, TextIO

from triplewire.model import END, START
from triplewire.model.errors import Unavailable
from triplewire.model.subscriptions import Owner
from triplewire.storage import sqlite
from triplewire.storage.registry.codec import EntryCodec


@dataclass(frozen=True)
class DeadLetter:
    """A message that could not be delivered. Its content is not stored here but read from history again, so that
    erasure covers it."""

    hook: str
    position: int
    attempts: int
    reason: str
    status: int | None
    """The status of the last response; None if there was none."""
    parked: int
    """When, in microseconds of the wall clock."""


@dataclass(frozen=True)
class WebhookProgress:
    """The progress of a webhook: everything up to `position` was delivered or is a dead letter."""

    position: int
    failures: int = 0
    """Failed attempts at the message after that."""
    reason: str = ""
    """The reason of the last failure."""
    parked: int = 0
    """The number of dead letters; computed, not stored."""


class ProgressStore(Protocol):
    """Progress, dead letters and secrets of webhooks by id. Called from any thread, by several processes at once.

    Every twin passes the same contract suite (`tests/storage/test_webhooks.py`).
    """

    def note(self, places: Mapping[str, WebhookProgress], parked: Sequence[DeadLetter] = ()) -> None:
        """Store progress and new dead letters in one durable transaction. Raises StorageFull; then nothing is
        stored."""

    def places(self) -> Mapping[str, WebhookProgress]:
        """The progress of all webhooks that have progress or dead letters."""

    def letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[DeadLetter]:
        """The dead letters of a webhook at positions above one, in order, at most `limit`."""

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        """Remove dead letters."""


class RedeliveryRequests(Protocol):
    """Requests to deliver dead letters again, which the delivering process carries out."""

    def ask(self, hook: str, positions: Sequence[int] | None = None) -> int:
        """Request dead letters to be delivered again, all or those at positions; return their number."""

    def asked(self) -> Mapping[str, Sequence[int]]:
        """The positions of letters that are to be delivered again, in order."""

    def done(self, hook: str, positions: Sequence[int]) -> None:
        """Remove requests: they were carried out, or will not be."""


class SecretStore(Protocol):
    """Signing secrets of webhooks."""

    def keep(self, secrets: Mapping[str, str]) -> None:
        """Store secrets durably, in place of older ones."""

    def secret(self, hook: str) -> str | None: ...

    def forget(self, hook: str) -> None:
        """Delete everything about a webhook: dead letters, progress and secret, which is overwritten."""


class DeliveryLock(Protocol):
    """The lock of the delivering process: one at a time per data directory."""

    def take(self) -> bool:
        """Take the lock, until it is released or the process ends; return False if another process holds it."""

    def leave(self) -> None: ...


class WebhookStore(ProgressStore, RedeliveryRequests, SecretStore, DeliveryLock, Protocol):
    """All of them in one."""


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
    """The webhook store in a file that any number of processes write and read, with a lock file beside it. The system
    releases the lock when a process ends, in whatever way, so no clock is involved."""

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


WEBHOOK = "hook"


class WebhookDialect(StrEnum):
    """The protocol of calls."""

    WEBHOOK = "webhook"
    WEBSUB = "websub"


class WebhookState(StrEnum):
    """The state of a webhook."""

    ON = "on"
    GONE = "gone"
    """The target has answered 410 Gone: nothing is delivered."""
    ENDED = "ended"
    """It was ended: the delivering process stops, and deletes it."""


@dataclass(frozen=True)
class Webhook:
    """A webhook has the id of its subscription. One of WebSub belongs to a stream and has a topic."""

    id: str
    url: str
    dialect: WebhookDialect = WebhookDialect.WEBHOOK
    state: WebhookState = WebhookState.ON
    attempts: int | None = None
    """Attempts before a message becomes a dead letter; None is the default."""
    created: int = 0
    stream: str | None = None
    format: str = "json"
    topic: str = ""
    hub: str = ""
    begin: int = 0
    """The position after which events are delivered."""
    until: int = END
    """The end of its lease, in microseconds of the wall clock."""
    owner: Owner | None = None
    """The principal whose visibility applies; None for everyone."""
    since: int = 0
    """The position of its last change."""


_WEBHOOKS = EntryCodec(Webhook, key="id", position="since")
webhook_to_value = _WEBHOOKS.to_value
webhook_from_change = _WEBHOOKS.from_change
