"""Flows add up, and no more of them are told apart than there may be."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest

from triplewire.config.metrics import TrafficCollector
from triplewire.config.traffic import OTHERS, StreamTraffic, select_busiest, sum_by_stream

ONE = StreamTraffic("home", clients=1, messages=2, plain_bytes=30, sent_bytes=4, dropped=5, waiting=6, linger=0.5)


def test_flows_of_a_stream_add_up_and_its_slowest_client_counts() -> None:
    other = replace(ONE, waiting=60, linger=0.1)
    (found,) = sum_by_stream([ONE, other])
    assert found == StreamTraffic("home", 2, 4, 60, 8, 10, waiting=60, linger=0.5)
    assert [each.stream for each in sum_by_stream([replace(ONE, stream="a"), ONE])] == ["a", "home"]


def test_the_busiest_are_told_apart_and_the_others_together() -> None:
    flows = [StreamTraffic(str(number), clients=number, messages=10) for number in range(5)]
    assert select_busiest(flows, 5) == flows[::-1]
    assert select_busiest(flows, 2) == [flows[4], flows[3], StreamTraffic(OTHERS, clients=3, messages=30)]
    assert select_busiest([], 2) == []


def test_prometheus_gets_every_figure_by_stream() -> None:
    registry = CollectorRegistry()
    registry.register(TrafficCollector(lambda: [ONE]))
    lines = {line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")}
    assert lines == {
        'triplewire_stream_clients{stream="home"} 1.0',
        'triplewire_stream_waiting_bytes{stream="home"} 6.0',
        'triplewire_stream_linger_seconds{stream="home"} 0.5',
        'triplewire_stream_messages_total{stream="home"} 2.0',
        'triplewire_stream_plain_bytes_total{stream="home"} 30.0',
        'triplewire_stream_sent_bytes_total{stream="home"} 4.0',
        'triplewire_stream_dropped_total{stream="home"} 5.0',
    }
