"""Parents: under which span of a trace something happens, as the header `traceparent` says it (W3C Trace Context)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import orjson

HEADER = "traceparent"

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01


@dataclass(frozen=True)
class Parent:
    """A span. Nothing is told of what happens under one that is not sampled."""

    trace: int
    span: int
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace:032x}-{self.span:016x}-{int(self.sampled):02x}"

    @classmethod
    def parsed(cls, text: str | None) -> Parent | None:
        """None for a header that is none: who sends it is not refused for that (W3C Trace Context 4.3)."""
        found = _FORM.fullmatch(text or "")
        if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
            return None
        trace, span = int(found[2], 16), int(found[3], 16)
        return cls(trace, span, bool(int(found[4], 16) & _SAMPLED)) if trace and span else None


_CURRENT: ContextVar[Parent | None] = ContextVar("parent", default=None)


def current() -> Parent | None:
    """Under which span the running task works; for logs."""
    return _CURRENT.get()


@contextmanager
def under(parent: Parent) -> Iterator[None]:
    """For as long as it lasts, the running task works under a span."""
    token = _CURRENT.set(parent)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def parents(extensions: Iterable[str | None], most: int) -> list[Parent]:
    """Those of events, by their headers as the log keeps them: each once, sampled ones alone, and not too many."""
    found: dict[Parent, None] = {}
    for text in extensions:
        if text is not None and HEADER in text and len(found) < most:
            parent = Parent.parsed(orjson.loads(text).get(HEADER))
            if parent is not None and parent.sampled:
                found[parent] = None
    return list(found)
