"""The words of the system as types: terms, events, positions, subscriptions.

Names are loaded on first use: those that are tables need PyArrow, which the supervisor and most commands do without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triplewire.model.erasure import Erasure, ErasureScope
    from triplewire.model.events import (
        ENTRIES,
        MATCHED_COLUMNS,
        MATCHES,
        Event,
        EventColumns,
        EventHeaders,
        LimitReached,
        LogEntry,
        Quad,
        StreamEvent,
        no_matches,
    )
    from triplewire.model.positions import END, START, Position, format_position, parse_position
    from triplewire.model.subscriptions import Kind, Subscription

__all__ = [
    "END",
    "ENTRIES",
    "MATCHED_COLUMNS",
    "MATCHES",
    "START",
    "Erasure",
    "ErasureScope",
    "Event",
    "EventColumns",
    "EventHeaders",
    "Kind",
    "LimitReached",
    "LogEntry",
    "Position",
    "Quad",
    "StreamEvent",
    "Subscription",
    "format_position",
    "no_matches",
    "parse_position",
]

_HOMES = {
    "END": "positions",
    "ENTRIES": "events",
    "MATCHED_COLUMNS": "events",
    "MATCHES": "events",
    "START": "positions",
    "Erasure": "erasure",
    "ErasureScope": "erasure",
    "Event": "events",
    "EventColumns": "events",
    "EventHeaders": "events",
    "Kind": "subscriptions",
    "LimitReached": "events",
    "LogEntry": "events",
    "Position": "positions",
    "Quad": "events",
    "StreamEvent": "events",
    "Subscription": "subscriptions",
    "format_position": "positions",
    "no_matches": "events",
    "parse_position": "positions",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
