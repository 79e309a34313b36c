"""Clients that we did not write: a browser's `EventSource`, `WebSocket` and `fetch`, and curl."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import web

from tests.http.delivery.browsers import CHROMIUM, Browser, browser
from tests.http.harness import House, house, run
from triplewire.http.delivery.connections import HttpConnection
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model import format_position

CURL = shutil.which("curl")

EVENT_SOURCE = """
    const heard = [];
    const source = new EventSource("%s");
    await new Promise((done, failed) => {
        source.addEventListener("event", message => {
            heard.push(message.lastEventId);
            if (heard.length == 4) done();
        });
    });
    source.close();
    return heard;
"""

WEB_SOCKET = """
    const heard = [];
    const socket = new WebSocket("%s");
    await new Promise((done, failed) => {
        socket.onmessage = message => {
            const told = JSON.parse(message.data);
            if (told.type == "event") {
                heard.push(told.position);
                socket.send(JSON.stringify({ack: told.position}));
            }
            if (heard.length == 4) done();
        };
        socket.onclose = () => done();
    });
    socket.close();
    return heard;
"""

POLL = """
    const heard = [];
    let address = "%s";
    while (heard.length < 4) {
        const answer = await fetch(address);
        const lines = (await answer.text()).split("\\n").filter(line => line);
        heard.push(...lines.map(line => JSON.parse(line).position));
        const next = answer.headers.get("Link").match(/<(.*)>; rel="next"/)[1];
        address = new URL(next, address).href;
    }
    return heard;
"""

PUBLISH = """
    const answer = await fetch("%s", {
        method: "POST", headers: {"Content-Type": "text/turtle", "Source-Id": "page"}, body: "<urn:s> <urn:p> 1 ."
    });
    return [answer.status, (await answer.json()).events];
"""


@asynccontextmanager
async def page() -> AsyncIterator[str]:
    """A page of another origin than the edge's."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="<!doctype html><title>page</title>", content_type="text/html")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def heard(at: House, opened: Browser, url: str, script: str, address: str) -> None:
    """A page hears two events that were there and two that come when it listens."""
    before = list(at.append(1, 2))
    task = asyncio.create_task(opened.run(url, script % address.replace("AFTER", format_position(before[0] - 1))))
    while not len(at.edge.events.topic):
        await asyncio.sleep(0)
    after = list(at.append(3, 4))
    told = await task
    assert told == [format_position(each) for each in (*before, *after)], address


async def all_ways(opened: Browser) -> None:
    """A page of an origin that is allowed."""
    async with page() as url, house(change=lambda parts: replace(parts, origins=(url.rstrip("/"),))) as at:
        stream = f"{at.url}/streams/test"
        socket = stream.replace("http", "ws", 1)
        await heard(at, opened, url, EVENT_SOURCE, f"{stream}?after=AFTER")
        await heard(at, opened, url, WEB_SOCKET, f"{socket}?after=AFTER&ack=1&window=1")
        await heard(at, opened, url, WEB_SOCKET, f"{socket}?after=AFTER")
        await heard(at, opened, url, POLL, f"{stream}?after=AFTER&mode=poll&format=ndjson&limit=1")
        assert await opened.run(url, PUBLISH % stream) == [201, 1]


async def no_way(opened: Browser) -> None:
    """A page of an origin that is not."""
    async with page() as url, house() as at:
        at.append(1, 2, 3, 4)
        socket = at.url.replace("http", "ws", 1) + "/streams/test?after=earliest"
        assert await opened.run(url, WEB_SOCKET % socket) == []


async def cut_off(opened: Browser) -> None:
    """A browser comes back by itself, to where it was."""
    async with house() as at:
        at.append(1, 2)
        task = asyncio.create_task(opened.run(at.url, EVENT_SOURCE % f"{at.url}/streams/test?after=earliest"))
        while not (channels := at.edge.events.topic.channels(StreamView("test"))):
            await asyncio.sleep(0)
        (channel,) = channels
        for listener in channel:
            assert isinstance(listener.connection, HttpConnection)
            listener.connection.transport.abort()
        at.append(3, 4)
        assert await task == [format_position(each) for each in (1, 2, 3, 4)]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no browser here")
def test_a_browser_listens_polls_and_publishes_and_comes_back() -> None:
    async def scene() -> None:
        async with browser() as opened, asyncio.TaskGroup() as scenes:
            for each in (all_ways, no_way, cut_off):
                scenes.create_task(each(opened))

    run(scene())


@pytest.mark.skipif(CURL is None, reason="there is no curl here")
@pytest.mark.parametrize("how", ["", "--compressed", "--http1.0"])
def test_curl_reads_what_comes_when_it_comes(how: str) -> None:
    async def scene() -> None:
        async with house() as at:
            at.append(1)
            url = f"{at.url}/streams/test?after=earliest&format=ndjson"
            assert CURL is not None
            process = await asyncio.create_subprocess_exec(
                CURL, "--silent", "--no-buffer", *how.split(), url, stdout=asyncio.subprocess.PIPE
            )
            assert process.stdout is not None
            for number in (0, 1, 2, 3):
                assert f'"position":"{format_position(number)}"'.encode() in await process.stdout.readline()
                if number:
                    at.append(number + 1)
            process.kill()
            await process.wait()

    run(scene())
