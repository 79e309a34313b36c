"""WebSockets as a client reads them: each message is acknowledged when the one after it is wanted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

import aiohttp
import orjson
from yarl import URL

from triplewire.client.problems import error_of
from triplewire.client.sse import Message

_MOVING = ("position", "event", "notification")
"""What moves a client: it resumes from there."""
_HEARTBEAT = 20.0
"""Seconds after which a server that says nothing is asked whether it is there."""


async def messages(
    session: aiohttp.ClientSession, url: URL, headers: Mapping[str, str]
) -> AsyncGenerator[Message, None]:
    """The messages of one connection, those about the connection too. `id` stands on those from which to resume. Raises
    what the server refuses with."""
    try:
        socket = await session.ws_connect(
            url.update_query(ack="1"), headers=headers, heartbeat=_HEARTBEAT, max_msg_size=0
        )
    except aiohttp.WSServerHandshakeError as error:
        raise error_of(error.status, b"") from error
    async with socket:
        async for frame in socket:
            told = orjson.loads(frame.data)
            name = told.pop("type")
            id = told.get("id", told.get("position")) if name in _MOVING else None
            yield Message(name, orjson.dumps(told), id)
            if id is not None and "missed" not in told:
                await socket.send_str(orjson.dumps({"ack": id}).decode())
