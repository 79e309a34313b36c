"""The log: events in one order, and the outbox of what matched."""

from triplewire.log.ports import Chunk, Log, Outbox, Publication, Retention
from triplewire.log.sqlite import SqliteLog

__all__ = ["Chunk", "Log", "Outbox", "Publication", "Retention", "SqliteLog"]
