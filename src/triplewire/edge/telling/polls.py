"""Polls: answers that come as soon as there is something to tell, or when the client has waited long enough."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass

import zstandard
from aiohttp import web

from triplewire.config import limits
from triplewire.edge.door.credentials import PARAMETER
from triplewire.edge.intake.doors import number_of
from triplewire.edge.telling.manners import Manner
from triplewire.edge.telling.readers import Batch, Reader
from triplewire.edge.telling.tellers import Recipient
from triplewire.model.errors import BadRequest

_PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress, "": bytes}


@dataclass(frozen=True)
class Poll:
    """How long a client waits at most, and how many messages it takes."""

    wait: float
    limit: int


def poll_of(request: web.Request) -> Poll | None:
    """What a request asks for; None where it asks for an answer without an end. Raises BadRequest."""
    mode = request.query.get("mode", "stream")
    if mode not in ("stream", "poll"):
        raise BadRequest(f"there is no mode {mode!r}; there are stream and poll")
    if mode == "stream":
        return None
    wait = number_of(request, "wait", limits.POLL_SECONDS, limits.POLL_SECONDS_MOST)
    return Poll(wait, int(number_of(request, "limit", limits.HISTORY_EVENTS, limits.HISTORY_EVENTS, least=1)))


async def answered(
    request: web.Request, reader: Reader, poll: Poll, manner: Manner, *, first: bytes = b"", least: int
) -> web.Response:
    """What there is, or what comes first. `first` is said before it; everything up to `least` is waited for, however
    short the client waits."""
    batch = await reader.next(0 if first else poll.wait, least)
    while _goes_on(batch, poll.limit, least) and reader.sent_away is None:
        # A page of history, or a pass of the feed, may end before what was there when the client came.
        more = await reader.next(0, least)
        batch = Batch([*batch.messages, *more.messages], more.mark, more.ends)
    return _response(request, reader, _limited(batch, poll.limit), manner, first)


def _goes_on(batch: Batch, limit: int, least: int) -> bool:
    """Whether more of what there was is to come, and has room in one answer."""
    if batch.ends or batch.mark.position >= least or not 0 < len(batch.messages) < limit:
        return False
    return sum(len(part) for _, part in batch.messages) < limits.PAGE_BYTES


def _limited(batch: Batch, limit: int) -> Batch:
    if len(batch.messages) <= limit:
        return batch
    return Batch(batch.messages[:limit], batch.messages[limit - 1][0])


def _response(request: web.Request, reader: Reader, batch: Batch, manner: Manner, first: bytes) -> web.Response:
    told = [part for _, part in batch.messages]
    lasts = [*batch.ends, *([] if reader.sent_away is None else [reader.sent_away])]
    ends = [last(Recipient(batch.mark.cursor, manner)) for last in lasts]
    messages = [part for part in (first, *told, *ends) if part]
    position = reader.id(batch.mark)
    headers = {"Cache-Control": "no-store", "Position": position}
    if len(reader) or not batch.ends:
        # Without a token that was in the address: answers end up in more places than requests.
        following = request.rel_url.without_query_params(PARAMETER).update_query(after=position)
        headers["Link"] = f'<{following}>; rel="next"'
    if not messages:
        return web.Response(status=204, headers=headers)
    encoding = manner.encoding.name
    headers |= {"Content-Type": manner.format.media_type, "Vary": "Accept, Accept-Encoding"}
    headers |= {"Content-Encoding": encoding} if encoding else {}
    return web.Response(body=_PACK[encoding](manner.format.document(messages)), headers=headers)
