"""The registry: named things that change, in the log's own order."""

from triplewire.registry.memory import MemoryRegistry
from triplewire.registry.ports import Change, Registry
from triplewire.registry.sqlite import SqliteRegistry

__all__ = ["Change", "MemoryRegistry", "Registry", "SqliteRegistry"]
