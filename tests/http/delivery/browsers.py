"""A headless Chromium, driven over its debugging protocol, for what pages do."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from websockets.asyncio.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
_LISTENING = b"DevTools listening on "

Json = dict[str, Any]


@dataclass
class Browser:
    """One that runs; each page is a tab of its own."""

    wire: ClientConnection
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _waiting: dict[int, asyncio.Future[Json]] = field(default_factory=dict)

    async def run(self, url: str, script: str) -> Any:  # noqa: ANN401 - whatever the script gives
        """Open a page and run the body of an async function in it; what it returns, as JSON gives it."""
        target = (await self.call("Target.createTarget", url="about:blank"))["targetId"]
        session = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        await self.call("Page.navigate", session, url=url)
        expression = f"(async () => {{ {script} }})()"
        told = await self.call(
            "Runtime.evaluate", session, expression=expression, awaitPromise=True, returnByValue=True
        )
        await self.call("Target.closeTarget", targetId=target)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def call(self, method: str, session: str | None = None, **params: object) -> Json:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        asked = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        await self.wire.send(orjson.dumps(asked).decode())
        told = await self._waiting[number]
        assert "error" not in told, (method, told)
        result: Json = told["result"]
        return result

    async def read(self) -> None:
        """Hand answers to those who wait; until the browser is closed."""
        async for text in self.wire:
            told = orjson.loads(text)
            if told.get("id") in self._waiting:
                self._waiting.pop(told["id"]).set_result(told)


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A browser with a profile of its own, which goes with it."""
    assert CHROMIUM is not None, "there is no browser"
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank",
            stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stderr is not None
        line = b""
        while not line.startswith(_LISTENING):
            line = await process.stderr.readline()
            assert line, "the browser did not start"
        draining = asyncio.create_task(_drain(process.stderr))
        async with connect(line.removeprefix(_LISTENING).strip().decode(), max_size=None, compression=None) as wire:
            found = Browser(wire)
            reading = asyncio.create_task(found.read())
            try:
                yield found
            finally:
                with suppress(Exception):
                    await found.call("Browser.close")
                await process.wait()
                await asyncio.gather(reading, draining, return_exceptions=True)


async def _drain(pipe: asyncio.StreamReader) -> None:
    while await pipe.readline():
        pass
