"""Freshness: documents that may be cached, by everyone or by who asked, and how their caches ask again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from aiohttp import hdrs, web

from triplewire.access import EVERYONE, Principal


@dataclass(frozen=True)
class Fresh:
    """A document that is good for some seconds; one that is `fixed` does not change meanwhile."""

    body: bytes
    media_type: str
    seconds: int
    fixed: bool = False

    @property
    def tag(self) -> str:
        """The same for the same bytes, and else another."""
        return blake2b(self.body, digest_size=16).hexdigest()


def fresh(request: web.Request, kept: Fresh, principal: Principal, links: Iterable[str] = ()) -> web.Response:
    """The document, or 304 for who has it already. What somebody was let in for stays out of caches of others."""
    shared = "public" if principal == EVERYONE else "private"
    control = f"{shared}, max-age={kept.seconds}{', immutable' if kept.fixed else ''}"
    headers = {hdrs.ETAG: f'"{kept.tag}"', hdrs.CACHE_CONTROL: control, hdrs.VARY: "Accept, Authorization"}
    known = {each.value for each in request.if_none_match or ()}
    if known & {kept.tag, "*"}:
        response = web.Response(status=304, headers=headers)
    else:
        response = web.Response(body=kept.body, headers={**headers, hdrs.CONTENT_TYPE: kept.media_type})
    for link in links:
        response.headers.add(hdrs.LINK, link)
    return response
