"""The log: events in one order, and the outbox of what matched."""

from triplewire.log.commits import GroupCommit
from triplewire.log.guards import GuardedLog
from triplewire.log.memory import MemoryLog
from triplewire.log.outbox import MemoryOutbox, SqliteOutbox
from triplewire.log.ports import Chunk, Log, Outbox, Places, Publication, Retention
from triplewire.log.sqlite import SqliteLog
from triplewire.log.watch import Watch

__all__ = [
    "Chunk",
    "GroupCommit",
    "GuardedLog",
    "Log",
    "MemoryLog",
    "MemoryOutbox",
    "Outbox",
    "Places",
    "Publication",
    "Retention",
    "SqliteLog",
    "SqliteOutbox",
    "Watch",
]
