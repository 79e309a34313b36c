"""Verbs: what somebody can be allowed to do."""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    """One kind of thing that is done here. None of them includes another."""

    PUBLISH = "publish"
    """Send events to streams."""
    CONSUME = "consume"
    """Listen to streams, and read them."""
    SUBSCRIBE = "subscribe"
    """Make subscriptions, and be told of what they match."""
    QUERY = "query"
    """Ask SPARQL of history."""
    ADMIN = "admin"
    """Change what holds for all: ontologies, templates, tokens, policies; erase; see how the service is doing."""
