"""Flows: what goes out of each stream to those who listen, as figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

OTHERS = "(others)"
"""Stands for the streams that are not told one by one. No stream is called like that."""

NOTIFICATIONS = "(notifications)"
"""Stands for all that subscriptions are told."""


@dataclass(frozen=True)
class Flow:
    """What flows out of one stream: to how many clients, how many messages and bytes since the edge began, before and
    after compression, how many clients were cut off, how many bytes wait for the slowest of them, and for how many
    seconds messages are gathered."""

    stream: str
    clients: int = 0
    messages: int = 0
    plain_bytes: int = 0
    sent_bytes: int = 0
    dropped: int = 0
    waiting: int = 0
    window: float = 0.0

    def __add__(self, other: Flow) -> Flow:
        """Both together: the slowest client and the widest window are those of either."""
        sums = ("clients", "messages", "plain_bytes", "sent_bytes", "dropped")
        added = {name: getattr(self, name) + getattr(other, name) for name in sums}
        return replace(self, **added, waiting=max(self.waiting, other.waiting), window=max(self.window, other.window))


def together(flows: Iterable[Flow]) -> list[Flow]:
    """One for each stream, by name."""
    found: dict[str, list[Flow]] = {}
    for each in flows:
        found.setdefault(each.stream, []).append(each)
    return [reduce(add, found[stream]) for stream in sorted(found)]


def busiest(flows: Sequence[Flow], count: int) -> list[Flow]:
    """Those with the most clients, then messages; all others together are the last."""
    ranked = sorted(flows, key=lambda each: (-each.clients, -each.messages, each.stream))
    others = [replace(each, stream=OTHERS) for each in ranked[count:]]
    return ranked[:count] + ([reduce(add, others)] if others else [])


_GAUGES = {
    "clients": ("clients", "Clients that listen to a stream"),
    "waiting": ("waiting_bytes", "Bytes that wait for the slowest client"),
    "window": ("window_seconds", "How long messages are gathered"),
}
_COUNTERS = {
    "messages": ("messages", "Messages to clients, repeats for several included"),
    "plain_bytes": ("plain_bytes", "Bytes to clients before compression"),
    "sent_bytes": ("sent_bytes", "Bytes to clients as they were sent"),
    "dropped": ("dropped", "Clients that were cut off because they were too slow"),
}


@dataclass(frozen=True)
class FlowCollector:
    """Gives flows to Prometheus, of those streams that `flows` tells. It may be called in any thread."""

    flows: Callable[[], Sequence[Flow]]

    def collect(self) -> Iterator[Metric]:
        flows = self.flows()
        for kind, families in ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS)):
            for field, (name, help) in families.items():
                family = kind(f"triplewire_stream_{name}", help, labels=["stream"])
                for flow in flows:
                    family.add_metric([flow.stream], getattr(flow, field))
                yield family
