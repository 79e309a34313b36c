"""Drains: whoever is connected when an edge is told to leave is answered, once, and led away."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiohttp import web

from tests.http.harness import run
from triplewire.http.listeners import close_sockets, has_queued, open_listeners
from triplewire.http.server import DRAIN, Drain, serve_on, wait_until_accepted

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class Client:
    """A connection on which requests are written by hand."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def to(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self) -> tuple[bytes, bool]:
        """The first line of the answer, and whether it is the last of the connection."""
        self.writer.write(REQUEST)
        head = await self.reader.readuntil(b"\r\n\r\n")
        await self.reader.readexactly(2)
        return head.split(b"\r\n")[0], b"connection: close" in head.lower()

    async def ended(self) -> bool:
        found = await self.reader.read()
        self.writer.close()
        return found == b""


def application(told: list[str]) -> web.Application:
    drain = Drain()

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"ok")

    async def leave(app: web.Application) -> None:
        told.append("listeners")

    app = web.Application(middlewares=[drain.middleware()])
    app[DRAIN] = drain
    app.add_routes([web.get("/", answer)])
    app.on_shutdown.append(leave)
    return app


def test_connections_that_are_open_are_answered_once_more_and_then_closed() -> None:
    async def scene() -> None:
        told, stop, port = list[str](), asyncio.Event(), asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            serve_on(
                application(told),
                open_listeners("127.0.0.1", 0),
                stop=stop,
                ready=port.set_result,
                leaving=lambda: told.append("others"),
            )
        )
        kept, new, idle = [await Client.to(await port) for _ in range(3)]
        assert await kept.ask() == (b"HTTP/1.1 200 OK", False)
        assert await idle.ask() == (b"HTTP/1.1 200 OK", False)
        stop.set()
        while "listeners" not in told:
            await asyncio.sleep(0)
        assert told[0] == "others"
        for client in (kept, new):
            assert await client.ask() == (b"HTTP/1.1 200 OK", True)
            assert await client.ended()
        assert await idle.ended()
        await serving

    run(scene())


def test_connections_that_wait_are_accepted_before_a_socket_is_closed() -> None:
    async def scene() -> None:
        sockets = open_listeners("127.0.0.1", 0)
        client = await Client.to(sockets[0].getsockname()[1])
        assert has_queued(sockets)
        served = await asyncio.start_server(lambda reader, writer: writer.close(), sock=sockets[0])
        await wait_until_accepted(sockets)
        served.close()
        close_sockets(sockets)
        assert await client.ended()

    run(scene())
