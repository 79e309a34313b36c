"""The words of the system as types: terms, events, positions, subscriptions."""

from triplewire.model.erasures import Erasure, Scope
from triplewire.model.events import ENTRIES, MATTER, Addressed, Entry, Event, Headers, Quad
from triplewire.model.matches import MATCHES, Reached
from triplewire.model.positions import END, START, Position, parse_token, token
from triplewire.model.subscriptions import Kind, Subscription

__all__ = [
    "END",
    "ENTRIES",
    "MATCHES",
    "MATTER",
    "START",
    "Addressed",
    "Entry",
    "Erasure",
    "Event",
    "Headers",
    "Kind",
    "Position",
    "Quad",
    "Reached",
    "Scope",
    "Subscription",
    "parse_token",
    "token",
]
