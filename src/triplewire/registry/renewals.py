"""Renewals: that continuous queries are to make what they keep anew, from log and lake as they are then."""

from __future__ import annotations

from triplewire.registry.ports import Change, Registry

RENEWAL = "renewal"
"""The kind of the entry. From its position on they go by what was made anew."""
_KEY = "ongoing"


def ask(registry: Registry) -> None:
    registry.put([(RENEWAL, _KEY, {})])


def newest(registry: Registry) -> Change | None:
    """The last that was asked for."""
    return registry.get(RENEWAL, _KEY)
