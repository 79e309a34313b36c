"""Traffic out of streams: clients, messages and bytes, before and after compression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

OTHERS = "(others)"
"""Stands for the streams that are not told one by one. No stream is called like that."""

NOTIFICATIONS = "(notifications)"
"""Stands for all that subscriptions are told."""


@dataclass(frozen=True)
class StreamTraffic:
    """Traffic out of one stream: clients, messages and bytes since the edge started (before and after compression),
    clients that were disconnected for being slow, bytes that wait for the slowest client, and seconds for which
    messages linger."""

    stream: str
    clients: int = 0
    messages: int = 0
    plain_bytes: int = 0
    sent_bytes: int = 0
    dropped: int = 0
    waiting: int = 0
    linger: float = 0.0

    def __add__(self, other: StreamTraffic) -> StreamTraffic:
        """Both together: the slowest client and the longest linger time are those of either."""
        sums = ("clients", "messages", "plain_bytes", "sent_bytes", "dropped")
        added = {name: getattr(self, name) + getattr(other, name) for name in sums}
        return replace(self, **added, waiting=max(self.waiting, other.waiting), linger=max(self.linger, other.linger))


def sum_by_stream(flows: Iterable[StreamTraffic]) -> list[StreamTraffic]:
    """One for each stream, by name."""
    found: dict[str, list[StreamTraffic]] = {}
    for each in flows:
        found.setdefault(each.stream, []).append(each)
    return [reduce(add, found[stream]) for stream in sorted(found)]


def select_busiest(flows: Sequence[StreamTraffic], count: int) -> list[StreamTraffic]:
    """The streams with the most clients, then messages; all others are summed up in the last one."""
    ranked = sorted(flows, key=lambda each: (-each.clients, -each.messages, each.stream))
    others = [replace(each, stream=OTHERS) for each in ranked[count:]]
    return ranked[:count] + ([reduce(add, others)] if others else [])
