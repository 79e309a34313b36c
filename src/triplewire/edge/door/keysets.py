"""Key sets at the door: who shows a token that somebody else has signed."""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from triplewire.access import Principal
from triplewire.access.keys import Keys, UnknownKey
from triplewire.config import limits
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, Unavailable

_HERE = ("localhost", "127.0.0.1", "::1")

logger = logging.getLogger(__name__)


class KeySetAuthenticator:
    """Knows those who show a JWT. The keys are read when the first one comes, again where a key is not known, and now
    and then; never on the event loop, and never more often than once in a while, whatever is shown."""

    def __init__(self, keys: Keys, read: Callable[[], bytes], clock: Clock) -> None:
        self._keys = keys
        self._read = read
        self._clock = clock
        self._not_before = float("-inf")
        self._old = float("-inf")
        self._turn = asyncio.Lock()

    async def known(self, credential: str) -> Principal | None:
        """Raises Unavailable where the keys could never be read."""
        if credential.count(".") != 2:
            return None
        await self._refresh(self._old)
        try:
            return self._keys.known(credential)
        except UnknownKey:
            await self._refresh(self._not_before)
            return self._keys.known(credential)

    async def _refresh(self, due: float) -> None:
        """Read the keys, if it is time to. What fails is told, and tried again; the keys that are known stay."""
        if self._clock.ticks() >= max(due, self._not_before):
            async with self._turn:
                if self._clock.ticks() >= max(due, self._not_before):
                    await self._fetch()
        if not len(self._keys):
            raise Unavailable("the keys by which tokens are checked could not be read; try again later")

    async def _fetch(self) -> None:
        pause = limits.KEYS_RETRY_SECONDS
        try:
            self._keys.replace(await asyncio.to_thread(self._read))
            pause = limits.KEYS_PAUSE_SECONDS
            self._old = self._clock.ticks() + limits.KEYS_SECONDS
        except (OSError, ValueError, BadRequest) as error:
            logger.error("the keys by which tokens are checked stay as they were: %s", error)
        self._not_before = self._clock.ticks() + pause


def source_of(place: str) -> Callable[[], bytes]:
    """Reads the document at a file's path or an https address. Raises BadRequest for an address that anybody on the way
    could answer for; on this machine http will do."""
    parts = urlsplit(place)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE):
        return partial(_download, place)
    if "://" in place:
        raise BadRequest(f"jwt_keys must be a file or an https address, not {place}")
    return partial(_of_file, Path(place))


def _of_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return _bounded(file.read(limits.KEYS_BYTES + 1))


def _download(url: str) -> bytes:
    asked = urllib.request.Request(url, headers={"Accept": "application/jwk-set+json, application/json"})
    with urllib.request.urlopen(asked, timeout=limits.KEYS_TIMEOUT_SECONDS) as response:
        return _bounded(response.read(limits.KEYS_BYTES + 1))


def _bounded(document: bytes) -> bytes:
    if len(document) > limits.KEYS_BYTES:
        raise BadRequest(f"the set of keys is larger than {limits.KEYS_BYTES} bytes")
    return document
