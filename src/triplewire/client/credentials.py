"""Credentials: what a client shows to be let in, and whom it believes. Neither is ever in an error, a log or a repr."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import ClientHandlerType, hdrs
from yarl import URL

from triplewire.config.settings import CACERT, TOKEN, TOKEN_FILE
from triplewire.model.errors import BadRequest


@dataclass(frozen=True)
class Credentials:
    """A token for one edge, and a file with the certificates of those whom it may be signed by (PEM)."""

    token: str | None = field(default=None, repr=False)
    cacert: str | None = None

    @classmethod
    def given(
        cls, token: str | None = None, cacert: str | None = None, environment: Mapping[str, str] = os.environ
    ) -> Credentials:
        """What is given, or else what the environment says: a token, or the name of a file with one. An empty token is
        none. Raises BadRequest for a file that cannot be read, or for a text that is no token."""
        said = token if token is not None else environment.get(TOKEN) or of_file(environment.get(TOKEN_FILE))
        if said and not (said.isascii() and said.isprintable() and " " not in said):
            raise BadRequest("the token is none: it has characters that no token has")
        return cls(said or None, cacert or environment.get(CACERT))

    def connector(self) -> aiohttp.TCPConnector:
        """Feeds stay open, and must not use up the connections that calls need. Raises BadRequest."""
        if self.cacert is None:
            return aiohttp.TCPConnector(limit=0)
        try:
            return aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=self.cacert))
        except OSError as error:
            raise BadRequest(f"{self.cacert} has no certificates to go by: {error.strerror or error}") from None

    def shown_to(self, url: str) -> tuple[aiohttp.ClientMiddlewareType, ...]:
        """Shows the token to one edge alone: listeners are sent elsewhere, and may be by somebody else."""
        if self.token is None:
            return ()
        home, header = URL(url).origin(), f"Bearer {self.token}"

        async def show(request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
            if request.url.origin() == home:
                request.headers[hdrs.AUTHORIZATION] = header
            return await handler(request)

        return (show,)


def of_file(path: str | Path | None) -> str | None:
    """The token that a file holds, if it holds one. Raises BadRequest."""
    if path is None:
        return None
    try:
        return Path(path).read_text().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the file {path} with the token cannot be read: {error}") from None
