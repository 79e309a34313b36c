"""Sieves: what of a stream is to be told, as parameters of its address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict


class Through(TypedDict, total=False):
    """All that is given must hold for an event to be told; of several values any will do."""

    source: str | Sequence[str]
    application: str | Sequence[str]
    vocabulary: str | Sequence[str]
    """How the IRI of some predicate or class of the event begins."""
    ask: str | Sequence[str]
    """ASK queries."""
    filter: str
    """The name of a filter of the deployment."""
    parameters: Mapping[str, str]
    """What that filter is made with."""


def parameters(through: Through) -> Iterator[tuple[str, str]]:
    """Of the address."""
    for name in ("source", "application", "vocabulary", "ask", "filter"):
        given = through.get(name, ())
        assert isinstance(given, str | Sequence), "others are no parameters of their own"
        yield from ((name, each) for each in ([given] if isinstance(given, str) else given))
    yield from ((f"filter.{name}", each) for name, each in through.get("parameters", {}).items())
