"""Gauges: what flows out of the rooms of an edge, read off their channels now and then."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from triplewire.config import limits
from triplewire.config.metrics import StreamTraffic, select_busiest, sum_by_stream
from triplewire.edge.telling.rooms import Room
from triplewire.edge.telling.wires import Wire

Key = TypeVar("Key", bound=Hashable)

_PATIENCE = 100.0
"""How much longer than a reading took the next one is not before: it then takes a hundredth of the time at most."""


class Listening(Protocol):
    """What is read off a listener."""

    @property
    def wire(self) -> Wire: ...


class Counted(Protocol):
    """What is read off a channel. Its numbers grow for as long as it is there."""

    messages: int
    plain_bytes: int
    sent_bytes: int
    dropped: int
    wait: float

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class Gauges:
    """Adds up what the channels of each stream have counted, those that are gone included."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._worked = worked
        self._rooms: list[tuple[Room[Any], Callable[[Any], str]]] = []
        self._gone: OrderedDict[str, StreamTraffic] = OrderedDict()
        self._flows: list[StreamTraffic] = []
        self._not_before = 0.0

    def watch(self, room: Room[Key], name: Callable[[Key], str]) -> None:
        """Count what flows out of a room from now on. `name` tells of which stream a key is."""
        self._rooms.append((room, name))
        room.closed = lambda key, channel: self._retire(flow_of(name(key), channel))

    def flows(self) -> list[StreamTraffic]:
        """By stream, of those that are listened to or were of late. To be asked on the loop."""
        if self._clock() >= self._not_before:
            began = self._worked()
            self._flows = sum_by_stream((*self._live(), *self._gone.values()))
            self._not_before = self._clock() + _PATIENCE * (self._worked() - began)
        return self._flows

    def told(self) -> list[StreamTraffic]:
        """The busiest of them, as they were read last. To be asked in any thread."""
        return select_busiest(self._flows, limits.METRICS_STREAMS)

    def _live(self) -> Iterator[StreamTraffic]:
        for room, name in self._rooms:
            for key in room:
                for channel in room.channels(key):
                    yield flow_of(name(key), channel, channel)

    def _retire(self, flow: StreamTraffic) -> None:
        """Keep what a channel that is closed has counted, for as many streams as are remembered."""
        before = self._gone.pop(flow.stream, StreamTraffic(flow.stream))
        self._gone[flow.stream] = replace(before + flow, clients=0, waiting=0, window=0.0)
        while len(self._gone) > limits.REMEMBERED_STREAMS:
            self._gone.popitem(last=False)


def flow_of(stream: str, channel: Counted, listeners: Iterable[Listening] = ()) -> StreamTraffic:
    """What a channel has counted, and what waits for the slowest of the listeners."""
    waiting = max((listener.wire.waiting() for listener in listeners), default=0)
    return StreamTraffic(
        stream,
        len(channel),
        channel.messages,
        channel.plain_bytes,
        channel.sent_bytes,
        channel.dropped,
        waiting,
        channel.wait,
    )
