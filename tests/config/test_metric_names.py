"""Names of metrics: the page tells those that are there, and all follow the conventions of Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.core import Metric

from triplewire.config.metrics import _OF_BROKER, Metrics, TrafficCollector
from triplewire.config.traffic import StreamTraffic

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(triplewire_\w+)` \| (\w+) \| (.*?) ?\| (.+) \|$", re.M)


def families() -> list[Metric]:
    """All that an edge registers, each with some sample."""
    metrics = Metrics()
    metrics.registry.register(TrafficCollector(lambda: [StreamTraffic("s")]))
    metrics.cpu.add("publish", 1.0)
    for collector in set(metrics.registry._collector_to_names):
        if names := getattr(collector, "_labelnames", ()):
            collector.labels(*("x" for _ in names))  # type: ignore[attr-defined]
    return list(metrics.registry.collect())


def told() -> dict[str, tuple[str, frozenset[str]]]:
    return {
        name: (type, frozenset(re.findall(r"`(\w+)`", labels)))
        for name, type, labels, _ in ROW.findall(PAGE.read_text())
    }


def registered() -> Iterator[tuple[str, tuple[str, frozenset[str]]]]:
    for family in families():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        yield name, (family.type, frozenset(labels))


def test_the_page_tells_every_metric_with_its_type_and_labels() -> None:
    assert told() == dict(registered())


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_names_follow_the_conventions(family: Metric) -> None:
    assert re.fullmatch(r"triplewire(_[a-z]+)+", family.name)
    assert family.documentation
    assert not family.documentation.endswith(".")
    for unit, base in (("milliseconds", "seconds"), ("kilobytes", "bytes"), ("percent", "ratio")):
        assert unit not in family.name, f"{base} is the base unit"
    if family.type != "histogram":
        assert not family.name.endswith(("_total", "_count", "_sum", "_bucket"))
    assert "seconds" not in family.name or family.name.endswith("_seconds")
    assert "bytes" not in family.name or family.name.endswith("_bytes")


def test_those_of_the_broker_are_there() -> None:
    assert {family.name for family in families()} >= _OF_BROKER
