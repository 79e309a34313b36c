"""Sockets: several on one address, where connections are led, and what becomes of those that wait."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress

import pytest

from triplewire.http.listeners import adopt_sockets, close_sockets, has_queued, open_listeners, steer_connections

COUNT = 60


def opened(count: int) -> list[socket.socket]:
    (first,) = open_listeners("127.0.0.1", 0)
    return [first, *(each for _ in range(count - 1) for each in open_listeners("127.0.0.1", first.getsockname()[1]))]


def waiting(sockets: list[socket.socket], clients: int = COUNT) -> list[int]:
    """How many connections come to each."""
    found = []
    with ExitStack() as closing:
        for _ in range(clients):
            closing.enter_context(socket.create_connection(sockets[0].getsockname()))
        for each in sockets:
            found.append(0)
            with suppress(BlockingIOError):
                while True:
                    each.accept()[0].close()
                    found[-1] += 1
    return found


def test_connections_are_led_to_the_first_sockets_until_they_are_not() -> None:
    sockets = opened(3)
    try:
        assert all(waiting(sockets))
        for among in (2, 1):
            assert steer_connections(sockets[:1], among)
            found = waiting(sockets)
            assert sum(found) == COUNT
            assert [bool(each) for each in found] == [number < among for number in range(3)]
        assert steer_connections(sockets[:1], 0)
        assert all(waiting(sockets))
    finally:
        close_sockets(sockets)


def test_what_cannot_be_steered_is_told() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert not steer_connections([one], 2)


def test_connections_wait_for_whoever_takes_the_socket_over() -> None:
    (held,) = open_listeners("127.0.0.1", 0)
    (left,) = adopt_sockets([os.dup(held.fileno())])
    with socket.create_connection(held.getsockname()):
        left.close()
        assert has_queued([held])
        held.accept()[0].close()
        assert not has_queued([held])
    close_sockets([held])


def test_an_address_that_cannot_be_opened_leaves_nothing_open() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            open_listeners("127.0.0.1", taken.getsockname()[1])
