"""Metrics of an edge, for Prometheus. Nothing here is labelled by what clients choose, so that it stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_OF_BROKER = frozenset(
    f"triplewire_{name}"
    for name in (
        "log_head",
        "matched",
        "lag_positions",
        "lag_seconds",
        "lane_lag_positions",
        "lane_lag_seconds",
        "lake",
        "limits_reached",
    )
)
"""Families that every edge would tell alike."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The counters of one edge process. Each instance has its own registry, so that two apps do not mix."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.events = Counter("triplewire_events_published", "Events acknowledged", registry=registry)
        self.bytes = Counter("triplewire_published_bytes", "Bytes of bodies acknowledged", registry=registry)
        self.publish_seconds = Histogram(
            "triplewire_publish_seconds",
            "From the body's last byte to the durable answer",
            buckets=_SECONDS,
            registry=registry,
        )
        self.problems = Counter("triplewire_problems", "Requests refused", ["status"], registry=registry)
        self.delivered = Counter(
            "triplewire_delivered",
            "Messages handed to listeners, repeats for several included",
            ["of"],
            registry=registry,
        )
        self.listeners = Gauge("triplewire_listeners", "Open listening connections", ["of"], registry=registry)
        self.referred = Counter(
            "triplewire_listeners_referred", "Listeners that were sent to a repeater", ["how"], registry=registry
        )
        self.cut_off = Counter("triplewire_listeners_cut_off", "Listeners that were too slow", registry=registry)
        self.sieves_failed = Counter(
            "triplewire_sieves_failed",
            "Times that all who listened through a sieve were cut off, by what failed",
            ["of"],
            registry=registry,
        )
        self.sieve_queries = Counter(
            "triplewire_sieve_queries", "Queries of sieves that were asked of a pass of events", registry=registry
        )
        self.sieve_undecided = Counter(
            "triplewire_sieve_undecided", "Pairs of query and event that took too long to decide", registry=registry
        )
        self.stumbles = Counter("triplewire_tail_failures", "Looks at log or outbox that failed", registry=registry)
        self.cpu = Gauge("triplewire_cpu_seconds", "CPU time of this process", ["part"], registry=registry)
        self.head = Gauge("triplewire_log_head", "Newest position", registry=registry)
        self.matched = Gauge("triplewire_matched", "Position up to which everything was matched", registry=registry)
        self.lag = Gauge("triplewire_lag_positions", "Positions that wait to be matched", registry=registry)
        self.lag_seconds = Gauge("triplewire_lag_seconds", "Age of the oldest event not yet matched", registry=registry)
        self.lane_lag = Gauge(
            "triplewire_lane_lag_positions", "Positions that wait in a lane of their own", ["lane"], registry=registry
        )
        self.lane_lag_seconds = Gauge(
            "triplewire_lane_lag_seconds", "Age of the oldest event that waits there", ["lane"], registry=registry
        )
        self.lake = Gauge("triplewire_lake", "What the lake holds, by kind", ["of"], registry=registry)
        self.limits = Gauge(
            "triplewire_limits_reached",
            "Pairs of subscription and event that reached a limit, since the pipeline began",
            ["of"],
            registry=registry,
        )

    def published(self) -> float:
        """How many events were acknowledged."""
        return self.registry.get_sample_value("triplewire_events_published_total") or 0.0

    def exposition(self) -> bytes:
        """What a scrape gets, in the text format of `CONTENT_TYPE`."""
        return generate_latest(self.registry)


def side_by_side(edge: str, own: str, others: Mapping[str, str]) -> bytes:
    """What an edge and others have to tell, by their names, as one exposition: each sample says whose it is, but those
    of the broker, which come from the edge that is asked. Sums over edges would fall when one of them ends, which a
    scraper takes for a new beginning."""
    families: dict[str, list[str]] = {}
    for name, text in ((edge, own), *others.items()):
        for header, samples in _families(text):
            of_broker = header.split(" ", 3)[2] in _OF_BROKER
            if not of_broker or name == edge:
                told = samples if of_broker else [_of(name, sample) for sample in samples]
                families.setdefault(header, []).extend(told)
    return "".join(header + "".join(samples) for header, samples in families.items()).encode()


def _families(text: str) -> Iterator[tuple[str, list[str]]]:
    """The two lines that describe each family, and those of its samples."""
    for block in text.split("# HELP ")[1:]:
        lines = block.splitlines(keepends=True)
        yield "# HELP " + "".join(lines[:2]), lines[2:]


def _of(edge: str, sample: str) -> str:
    name, _, rest = sample.partition(" ")
    if "{" in name:
        name, _, rest = sample.partition("{")
        return f'{name}{{edge="{edge}",{rest}'
    return f'{name}{{edge="{edge}"}} {rest}'
