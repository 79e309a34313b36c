"""Listening sockets and their TLS certificates.

Several sockets may listen on one address (SO_REUSEPORT); the kernel spreads connections over them, and
`steer_connections` limits that to the first few. Certificate files may be replaced at any time: a connection gets the
certificate that holds when it is made, open ones stay as they are. New files are loaded apart before anything changes,
so that half a renewal, or a key that does not fit, costs no connection.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import select
import socket
import ssl
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from triplewire.model.errors import BadRequest

BACKLOG = 1024
"""Connections that the system accepts before a process does; more are asked to come again."""

_ATTACH_REUSEPORT_CBPF = 51
_DETACH_REUSEPORT_BPF = 68
_LOAD_RANDOM = (0x20, 0, 0, 0xFFFFF000 + 56)
_RETURN = (0x16, 0, 0, 0)
_MODULO = 0x94


def open_listeners(host: str, port: int) -> list[socket.socket]:
    """One for each address that the host has. Others may listen there as well, if they were opened like this.

    Raises OSError where one cannot be opened; the others are closed then.
    """
    opened: list[socket.socket] = []
    try:
        for family, address in _addresses(host, port):
            opened.append(_listen(family, address))
    except OSError:
        close_sockets(opened)
        raise
    return opened


def adopt_sockets(descriptors: Sequence[int]) -> list[socket.socket]:
    """Those that another process opened and left to this one. Processes that this one starts do not get them."""
    for each in descriptors:
        os.set_inheritable(each, False)
    return [socket.socket(fileno=each) for each in descriptors]


def close_sockets(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()


def has_queued(sockets: Sequence[socket.socket]) -> bool:
    """Whether connections wait to be accepted. Where the last process closes such a socket, they are reset."""
    poll = select.poll()
    for each in sockets:
        poll.register(each, select.POLLIN)
    return bool(poll.poll(0))


def steer_connections(sockets: Iterable[socket.socket], among: int) -> bool:
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


# Certificates: TLS from two files, which may be replaced at any time.
#
# A connection gets the certificate that holds when it is made; those that are open stay as they are. New files are
# tried apart before anything changes, so that half a renewal, or a key that does not fit, costs nobody a connection.

FileSignature = tuple[tuple[int, int, int], ...]
"""By which a change of the files is noticed: when each was written, how long it is, and which file it is."""

logger = logging.getLogger(__name__)


class Certificates:
    """One certificate with its chain, and its key, both as PEM. `context` is for a server, and stays the same."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises BadRequest where the files are not there or do not fit."""
        self._files = (certificate, key)
        self._seen = self._signature()
        try:
            self._current = self._loaded()
        except (OSError, ssl.SSLError) as error:
            raise BadRequest(f"TLS cannot be offered with {certificate} and {key}: {_reason(error)}") from None
        self.context = self._loaded()
        self.context.sni_callback = self._choose

    def look(self) -> bool:
        """Take other files if there are any; whether it did. What cannot be used is told once, and passed over."""
        seen = self._signature()
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            self._current = self._loaded()
        except (OSError, ssl.SSLError) as error:
            logger.error("the certificate stays as it was: %s: %s", self._files[0], _reason(error))
            return False
        logger.info("new connections get the certificate that %s now has", self._files[0])
        return True

    async def keep(self, seconds: float) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.look)

    def _choose(self, made: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Called in each handshake, whether or not the client says a name."""
        made.context = self._current

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        certificate, key = self._files
        # A key with a passphrase would have the process wait for somebody at a terminal.
        context.load_cert_chain(certificate, key, password=lambda: b"")
        return context

    def _signature(self) -> FileSignature:
        return tuple(map(_file_signature, self._files))


def _file_signature(path: Path) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
