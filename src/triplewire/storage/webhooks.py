"""The webhook store: registered webhooks, delivery progress, dead letters, signing secrets and the delivery lock.

It holds what must survive any end of the process that delivers. The SQLite twin is a file of its own beside the log,
so that publishers never wait for it. Webhooks themselves are registry entries; secrets are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from triplewire.config.files import file_lock
from triplewire.model import END, START
from triplewire.model.errors import Conflict, Unavailable
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


class WebhookStore(Protocol):
    """Progress, dead letters and secrets of webhooks by id, and the lock of the delivering process.

    Called from any thread, by several processes at once. Every twin passes the same contract suite
    (`tests/storage/test_webhooks.py`).
    """

    def record(self, progress: Mapping[str, WebhookProgress], dead_letters: Sequence[DeadLetter] = ()) -> None:
        """Store progress and new dead letters in one durable transaction. Raises StorageFull; then nothing is
        stored."""

    def progress(self) -> Mapping[str, WebhookProgress]:
        """The progress of all webhooks that have progress or dead letters."""

    def dead_letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[DeadLetter]:
        """The dead letters of a webhook at positions above one, in order, at most `limit`."""

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        """Remove dead letters."""

    def request_redelivery(self, hook: str, positions: Sequence[int] | None = None) -> int:
        """Request that the delivering process delivers dead letters again, all or those at positions; return their
        number."""

    def redeliveries(self) -> Mapping[str, Sequence[int]]:
        """The positions of dead letters that are to be delivered again, in order."""

    def end_redelivery(self, hook: str, positions: Sequence[int]) -> None:
        """Remove requests: they were carried out, or will not be."""

    def put_secrets(self, secrets: Mapping[str, str]) -> None:
        """Store signing secrets durably, in place of older ones."""

    def secret(self, hook: str) -> str | None: ...

    def forget(self, hook: str) -> None:
        """Delete everything about a webhook: dead letters, progress and secret, which is overwritten."""

    def acquire(self) -> bool:
        """Take the lock of the delivering process, one at a time per data directory, until it is released or the
        process ends; return False if another process holds it."""

    def release(self) -> None: ...


WEBHOOK_SCHEMA = {
    "progress": """
        CREATE TABLE progress (
            hook TEXT PRIMARY KEY, position INTEGER NOT NULL, failures INTEGER NOT NULL, reason TEXT NOT NULL
        ) WITHOUT ROWID""",
    "dead_letters": """
        CREATE TABLE dead_letters (
            hook TEXT NOT NULL, position INTEGER NOT NULL, attempts INTEGER NOT NULL, reason TEXT NOT NULL,
            status INTEGER, parked INTEGER NOT NULL, again INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (hook, position)
        ) WITHOUT ROWID""",
    "redeliveries": "CREATE INDEX redeliveries ON dead_letters (hook, position) WHERE again",
    "secrets": "CREATE TABLE secrets (hook TEXT PRIMARY KEY, secret TEXT NOT NULL) WITHOUT ROWID",
}

_LETTER = "hook, position, attempts, reason, status, parked"
_ADVANCE = "INSERT OR REPLACE INTO progress (hook, position, failures, reason) VALUES (?, ?, ?, ?)"
_PARK = f"INSERT OR REPLACE INTO dead_letters ({_LETTER}) VALUES (?, ?, ?, ?, ?, ?)"
_PROGRESS = """SELECT hook, max(position), max(failures), max(reason), sum(parked) FROM (
        SELECT hook, position, failures, reason, 0 AS parked FROM progress
        UNION ALL SELECT hook, 0, 0, '', count(*) FROM dead_letters GROUP BY hook
    ) GROUP BY hook"""
_LETTERS = f"SELECT {_LETTER} FROM dead_letters WHERE hook = ? AND position > ? ORDER BY position LIMIT ?"
_REMOVE = "DELETE FROM dead_letters WHERE hook = ? AND position = ?"
_REQUEST_ALL = "UPDATE dead_letters SET again = 1 WHERE hook = ?"
_REQUEST = "UPDATE dead_letters SET again = 1 WHERE hook = ? AND position = ?"
_REDELIVERIES = "SELECT hook, position FROM dead_letters INDEXED BY redeliveries WHERE again ORDER BY hook, position"
_END = "UPDATE dead_letters SET again = 0 WHERE hook = ? AND position = ?"
_PUT_SECRET = "INSERT OR REPLACE INTO secrets (hook, secret) VALUES (?, ?)"
_SECRET = "SELECT secret FROM secrets WHERE hook = ?"
_FORGET = tuple(f"DELETE FROM {table} WHERE hook = ?" for table in ("progress", "dead_letters", "secrets"))


class SqliteWebhookStore:
    """The webhook store in a file that any number of processes write and read, with a lock file beside it. The system
    releases the lock when a process ends, in whatever way, so no clock is involved."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Before SQLite makes files beside it, which nobody else may read either.
        path.touch(mode=0o600)
        self._database = sqlite.Database(path, WEBHOOK_SCHEMA)
        self._lock_path = path.with_suffix(".lock")
        self._lock = ExitStack()

    def record(self, progress: Mapping[str, WebhookProgress], dead_letters: Sequence[DeadLetter] = ()) -> None:
        rows = [(hook, each.position, each.failures, each.reason) for hook, each in progress.items()]
        with self._database.writing() as connection:
            connection.executemany(_ADVANCE, rows)
            connection.executemany(_PARK, [tuple(vars(each).values()) for each in dead_letters])

    def progress(self) -> Mapping[str, WebhookProgress]:
        with self._database.reading() as connection:
            rows = connection.execute(_PROGRESS).fetchall()
        return {hook: WebhookProgress(*fields) for hook, *fields in rows}

    def dead_letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[DeadLetter]:
        with self._database.reading() as connection:
            return [DeadLetter(*row) for row in connection.execute(_LETTERS, (hook, after, limit)).fetchall()]

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        self._change_each(_REMOVE, hook, positions)

    def request_redelivery(self, hook: str, positions: Sequence[int] | None = None) -> int:
        if positions is not None:
            return self._change_each(_REQUEST, hook, positions)
        with self._database.writing() as connection:
            return connection.execute(_REQUEST_ALL, (hook,)).rowcount

    def redeliveries(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        with self._database.reading() as connection:
            for hook, position in connection.execute(_REDELIVERIES).fetchall():
                found.setdefault(hook, []).append(position)
        return found

    def end_redelivery(self, hook: str, positions: Sequence[int]) -> None:
        self._change_each(_END, hook, positions)

    def put_secrets(self, secrets: Mapping[str, str]) -> None:
        with self._database.writing() as connection:
            connection.executemany(_PUT_SECRET, secrets.items())

    def secret(self, hook: str) -> str | None:
        with self._database.reading() as connection:
            (secret,) = connection.execute(_SECRET, (hook,)).fetchone() or (None,)
        return secret

    def forget(self, hook: str) -> None:
        with self._database.writing() as connection:
            for statement in _FORGET:
                connection.execute(statement, (hook,))
        # Where a reader is in the way, what was overwritten is scrubbed with the next webhook that is forgotten.
        with suppress(Unavailable):
            self._database.scrub()

    def acquire(self) -> bool:
        try:
            self._lock.enter_context(file_lock(self._lock_path, "another process delivers webhooks"))
        except Conflict:
            return False
        return True

    def release(self) -> None:
        self._lock.close()

    def close(self) -> None:
        self.release()
        self._database.close()

    def _change_each(self, statement: str, hook: str, positions: Sequence[int]) -> int:
        with self._database.writing() as connection:
            return connection.executemany(statement, [(hook, each) for each in positions]).rowcount


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
