"""Prometheus metrics of an edge. No label holds a value that clients choose, so that the number of series stays
bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from triplewire.config.traffic import StreamTraffic

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_LAKE = {
    "version": ("version", "The newest version of the lake"),
    "files": ("files", "Files of data in the lake"),
    "fresh": ("fresh_files", "Those of them that wait to be compacted"),
    "bytes": ("bytes", "Bytes of these files"),
    "quads": ("quads", "Quads in the lake"),
}
"""Figures of the lake in the pipeline's heartbeat: the metric and its help."""

_QUERIES = {
    "queries": ("queries", "Continuous queries that are answered"),
    "state_rows": ("query_state_rows", "Rows that are kept for them: triples, partial results, events of windows"),
    "state_bytes": ("query_state_bytes", "Bytes of these rows"),
    "skew": ("query_skew", "Relative standard deviation of the work for them over buckets"),
    "busy": ("query_busy_share", "The share of buckets that had any"),
    "late": ("query_late_events", "Events that came too late for a window, since the pipeline began"),
}
"""Figures of continuous queries in the pipeline's heartbeat: the metric and its help."""

_OF_BROKER = frozenset(
    f"triplewire_{name}"
    for name in (
        "log_head",
        "matched",
        "lag_positions",
        "lag_seconds",
        "match_restarts",
        "lane_lag_positions",
        "lane_lag_seconds",
        "limits_reached",
        *(f"lake_{name}" for name, _ in _LAKE.values()),
        *(name for name, _ in _QUERIES.values()),
    )
)
"""Families that every edge would tell alike."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class CpuTimes:
    """CPU time by what it was spent on: added to, or read from where it is counted."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._read: dict[str, Callable[[], float]] = {}

    def add(self, part: str, seconds: float) -> None:
        self._spent[part] = self._spent.get(part, 0.0) + seconds

    def watch(self, part: str, read: Callable[[], float]) -> None:
        """`read` tells how much it was so far."""
        self._read[part] = read

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily("triplewire_cpu_seconds", "CPU time of this process", labels=["part"])
        for part, seconds in {**self._spent, **{part: read() for part, read in self._read.items()}}.items():
            family.add_metric([part], seconds)
        yield family


class Metrics:
    """The counters of one edge process. Each instance has its own registry, so that two apps do not mix."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self.events = counter("triplewire_events_published", "Events acknowledged")
        self.bytes = counter("triplewire_published_bytes", "Bytes of bodies acknowledged")
        histogram = partial(Histogram, buckets=_SECONDS, registry=registry)
        self.publish_seconds = histogram(
            "triplewire_publish_seconds", "From the body's last byte to the durable answer"
        )
        self.match_seconds = histogram(
            "triplewire_match_seconds", "From the commit of an event to that of its matches, of a sample of events"
        )
        self.delivery_seconds = histogram(
            "triplewire_delivery_seconds", "From the commit of matches to their delivery, of a sample of events"
        )
        self.problems = counter("triplewire_problems", "Requests refused", ["status"])
        self.delivered = counter(
            "triplewire_delivered", "Messages handed to listeners, repeats for several included", ["of"]
        )
        self.listeners = gauge("triplewire_listeners", "Open listening connections", ["of"])
        self.referred = counter("triplewire_listeners_referred", "Clients that were redirected to a repeater", ["how"])
        self.cut_off = counter("triplewire_listeners_cut_off", "Clients that were disconnected for being slow")
        self.stream_filters_failed = counter(
            "triplewire_stream_filters_failed",
            "Times that all clients of a stream filter were disconnected, by the part that failed",
            ["of"],
        )
        self.stream_filter_queries = counter(
            "triplewire_stream_filter_queries", "Evaluations of stream filter queries, each on one pass of events"
        )
        self.stream_filter_undecided = counter(
            "triplewire_stream_filter_undecided", "Pairs of query and event that took too long to decide"
        )
        self.webhooks = gauge("triplewire_webhooks", "Webhooks that this edge delivers")
        self.webhook_calls = counter("triplewire_webhook_calls", "Webhook calls by outcome", ["outcome"])
        self.dead_letters = counter("triplewire_dead_letters", "Messages that became dead letters")
        self.poll_failures = counter("triplewire_poll_failures", "Polls of log or outbox that failed")
        self.cpu = CpuTimes()
        registry.register(self.cpu)
        self.head = gauge("triplewire_log_head", "Newest position")
        self.matched = gauge("triplewire_matched", "Position up to which everything was matched")
        self.lag = gauge("triplewire_lag_positions", "Positions that wait to be matched")
        self.lag_seconds = gauge("triplewire_lag_seconds", "Age of the oldest event not yet matched")
        self.restarts = gauge(
            "triplewire_match_restarts", "Match jobs that were started again since the pipeline began"
        )
        self.lane_lag = gauge("triplewire_lane_lag_positions", "Positions that wait in a lane of their own", ["lane"])
        self.lane_lag_seconds = gauge(
            "triplewire_lane_lag_seconds", "Age of the oldest event that waits there", ["lane"]
        )
        self.lake = {of: gauge(f"triplewire_lake_{name}", help) for of, (name, help) in _LAKE.items()}
        self.queries = {of: gauge(f"triplewire_{name}", help) for of, (name, help) in _QUERIES.items()}
        self.limits = gauge(
            "triplewire_limits_reached",
            "Pairs of subscription and event that reached a limit, since the pipeline began",
            ["of"],
        )

    def published(self) -> float:
        """How many events were acknowledged."""
        return self.registry.get_sample_value("triplewire_events_published_total") or 0.0

    def exposition(self) -> bytes:
        """The response to a scrape, in the text format of `CONTENT_TYPE`."""
        return generate_latest(self.registry)


def merge_expositions(edge: str, own: str, others: Mapping[str, str]) -> bytes:
    """Merge the metrics of several edges into one exposition. Each sample has the edge as a label, except those of the
    broker, which are the same for all and come from the edge that is scraped. There are no sums over edges: they would
    fall when an edge ends, which a scraper takes for a restart."""
    families: dict[str, list[str]] = {}
    for name, text in ((edge, own), *others.items()):
        for header, samples in _families(text):
            of_broker = header.split(" ", 3)[2] in _OF_BROKER
            if not of_broker or name == edge:
                labelled = samples if of_broker else [_label_sample(name, sample) for sample in samples]
                families.setdefault(header, []).extend(labelled)
    return "".join(header + "".join(samples) for header, samples in families.items()).encode()


def _families(text: str) -> Iterator[tuple[str, list[str]]]:
    """The two lines that describe each family, and those of its samples."""
    for block in text.split("# HELP ")[1:]:
        lines = block.splitlines(keepends=True)
        yield "# HELP " + "".join(lines[:2]), lines[2:]


def _label_sample(edge: str, sample: str) -> str:
    name, _, rest = sample.partition(" ")
    if "{" in name:
        name, _, rest = sample.partition("{")
        return f'{name}{{edge="{edge}",{rest}'
    return f'{name}{{edge="{edge}"}} {rest}'


_GAUGES = {
    "clients": ("clients", "Clients that listen to a stream"),
    "waiting": ("waiting_bytes", "Bytes that wait for the slowest client"),
    "linger": ("linger_seconds", "How long messages wait for others"),
}
_COUNTERS = {
    "messages": ("messages", "Messages to clients, repeats for several included"),
    "plain_bytes": ("plain_bytes", "Bytes to clients before compression"),
    "sent_bytes": ("sent_bytes", "Bytes to clients as they were sent"),
    "dropped": ("dropped", "Clients that were cut off because they were too slow"),
}


@dataclass(frozen=True)
class TrafficCollector:
    """Gives flows to Prometheus, of those streams that `flows` tells. It may be called in any thread."""

    flows: Callable[[], Sequence[StreamTraffic]]

    def collect(self) -> Iterator[Metric]:
        flows = self.flows()
        for kind, families in ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS)):
            for field, (name, help) in families.items():
                family = kind(f"triplewire_stream_{name}", help, labels=["stream"])
                for flow in flows:
                    family.add_metric([flow.stream], getattr(flow, field))
                yield family
