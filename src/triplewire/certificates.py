"""Certificates: TLS from two files, which may be replaced at any time.

A connection gets the certificate that holds when it is made; those that are open stay as they are. New files are
tried
apart before anything changes, so that half a renewal, or a key that does not fit, costs nobody a connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from pathlib import Path

from triplewire.model.errors import BadRequest

Signature = tuple[tuple[int, int, int], ...]
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

    def _signature(self) -> Signature:
        return tuple(map(_mark, self._files))


def _mark(path: Path) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
