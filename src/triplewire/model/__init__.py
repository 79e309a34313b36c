"""The words of the system as types: terms, events, positions, subscriptions."""

from triplewire.model.erasure import Erasure, ErasureScope
from triplewire.model.events import (
    END,
    ENTRIES,
    MATCHED_COLUMNS,
    MATCHES,
    START,
    Event,
    EventHeaders,
    LimitReached,
    LogEntry,
    Position,
    Quad,
    StreamEvent,
    format_position,
    no_matches,
    parse_position,
)
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
