"""Listening sockets and their TLS certificates.

Several sockets may listen on one address (SO_REUSEPORT); the kernel spreads connections over them, and
`steer_connections` limits that to the first few. Certificate files may be replaced at any time: a connection gets the
current certificate, open ones stay as they are. New files are loaded apart before anything changes, so that half a
renewal, or a key that does not match, costs no connection.
"""

from __future__ import annotations

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
"""Connections that the system queues before a process accepts them; more are refused."""

_ATTACH_REUSEPORT_CBPF = 51
_DETACH_REUSEPORT_BPF = 68
_LOAD_RANDOM = (0x20, 0, 0, 0xFFFFF000 + 56)
_RETURN = (0x16, 0, 0, 0)
_MODULO = 0x94


def open_listeners(host: str, port: int) -> list[socket.socket]:
    """Open a listening socket for each address of the host. Other processes may open the same ones (SO_REUSEPORT).

    Raises OSError if one cannot be opened; the others are closed then.
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
    """Take sockets over that another process opened for this one. They are not inherited by child processes."""
    for each in descriptors:
        os.set_inheritable(each, False)
    return [socket.socket(fileno=each) for each in descriptors]


def close_sockets(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()


def has_queued(sockets: Sequence[socket.socket]) -> bool:
    """Return whether connections wait to be accepted. They are reset when the last process closes the socket."""
    poll = select.poll()
    for each in sockets:
        poll.register(each, select.POLLIN)
    return bool(poll.poll(0))


def steer_connections(sockets: Iterable[socket.socket], among: int) -> bool:
    """Let the kernel give new connections to the first `among` sockets of each address, in the order in which they were
    opened; with 0 to all of them. Return False where the system cannot do that."""
    try:
        for each in sockets:
            _attach(each, among) if among else each.setsockopt(socket.SOL_SOCKET, _DETACH_REUSEPORT_BPF, 0)
    except OSError:
        return False
    return True


def _addresses(host: str, port: int) -> list[tuple[int, Any]]:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in addresses))


def _listen(family: int, address: Any) -> socket.socket:  # noqa: ANN401 - its type depends on the family
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _attach(listener: socket.socket, among: int) -> None:
    """Attach a BPF program that picks the socket of each new connection: a random number modulo `among`."""
    steps = (_LOAD_RANDOM, (_MODULO, 0, 0, among), _RETURN)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    listener.setsockopt(socket.SOL_SOCKET, _ATTACH_REUSEPORT_CBPF, program)


FileSignature = tuple[tuple[int, int, int], ...]
"""Modification time, size and inode of each file, by which a change is noticed."""

logger = logging.getLogger(__name__)


class Certificates:
    """A certificate with its chain, and its key, both as PEM files. `context` is for a server, and stays the same."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises BadRequest if the files are missing or do not match."""
        self._files = (certificate, key)
        self._seen = self._signature()
        try:
            self._current = self._load()
        except (OSError, ssl.SSLError) as error:
            raise BadRequest(f"TLS cannot be offered with {certificate} and {key}: {_reason(error)}") from None
        self.context = self._load()
        self.context.sni_callback = self._choose

    def reload(self) -> bool:
        """Load the files if they were replaced; return whether it did. Files that cannot be used are logged once."""
        seen = self._signature()
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            self._current = self._load()
        except (OSError, ssl.SSLError) as error:
            logger.error("the certificate is not renewed: %s: %s", self._files[0], _reason(error))
            return False
        logger.info("the certificate was renewed from %s", self._files[0])
        return True

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Choose the certificate of a connection; called in each handshake, with or without a server name."""
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        certificate, key = self._files
        # Otherwise a key with a passphrase would make the process ask for it on a terminal.
        context.load_cert_chain(certificate, key, password=lambda: b"")
        return context

    def _signature(self) -> FileSignature:
        return tuple(map(_file_signature, self._files))


def _file_signature(path: Path) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
