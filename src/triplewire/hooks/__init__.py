"""Hooks: what deliveries by POST go by, and what is remembered of them. Nothing here calls anybody."""

from triplewire.hooks.memory import MemoryLedger
from triplewire.hooks.networks import Networks
from triplewire.hooks.ports import Ledger, Letter, Place
from triplewire.hooks.sqlite import SqliteLedger

__all__ = ["Ledger", "Letter", "MemoryLedger", "Networks", "Place", "SqliteLedger"]
