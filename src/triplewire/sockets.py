"""Sockets that are listened on: several for one address, over which the system spreads connections."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any

BACKLOG = 1024
"""Connections that the system accepts before a process does; more are asked to come again."""

_ATTACH_REUSEPORT_CBPF = 51
_DETACH_REUSEPORT_BPF = 68
_LOAD_RANDOM = (0x20, 0, 0, 0xFFFFF000 + 56)
_RETURN = (0x16, 0, 0, 0)
_MODULO = 0x94


def listening(host: str, port: int) -> list[socket.socket]:
    """One for each address that the host has. Others may listen there as well, if they were opened like this.

    Raises OSError where one cannot be opened; the others are closed then.
    """
    opened: list[socket.socket] = []
    try:
        for family, address in _addresses(host, port):
            opened.append(_listen(family, address))
    except OSError:
        close(opened)
        raise
    return opened


def adopted(descriptors: Sequence[int]) -> list[socket.socket]:
    """Those that another process opened and left to this one. Processes that this one starts do not get them."""
    for each in descriptors:
        os.set_inheritable(each, False)
    return [socket.socket(fileno=each) for each in descriptors]


def close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()


def queued(sockets: Sequence[socket.socket]) -> bool:
    """Whether connections wait to be accepted. Where the last process closes such a socket, they are reset."""
    poll = select.poll()
    for each in sockets:
        poll.register(each, select.POLLIN)
    return bool(poll.poll(0))


def steer(sockets: Iterable[socket.socket], among: int) -> bool:
    """Lead new connections to the first `among` sockets of each address, in the order in which they were opened; with 0
    to all of them again. False where the system cannot do that."""
    try:
        for each in sockets:
            _attach(each, among) if among else each.setsockopt(socket.SOL_SOCKET, _DETACH_REUSEPORT_BPF, 0)
    except OSError:
        return False
    return True


def _addresses(host: str, port: int) -> list[tuple[int, Any]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))


def _listen(family: int, address: Any) -> socket.socket:  # noqa: ANN401 - as the family has them
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _attach(listener: socket.socket, among: int) -> None:
    """A program of three steps that the system runs for each new connection: a random number, modulo, return."""
    steps = (_LOAD_RANDOM, (_MODULO, 0, 0, among), _RETURN)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    listener.setsockopt(socket.SOL_SOCKET, _ATTACH_REUSEPORT_CBPF, program)
