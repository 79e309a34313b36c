"""An edge that serves from a thread, with stores in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from tests.http.harness import House, house


@contextmanager
def served() -> Iterator[House]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opening = house()
    try:
        yield asyncio.run_coroutine_threadsafe(opening.__aenter__(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(opening.__aexit__(None, None, None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
