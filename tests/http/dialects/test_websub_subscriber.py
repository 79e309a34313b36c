"""A subscriber of WebSub that we did not write (Flask-WebSub): it discovers, subscribes, is told, renews and leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.http.harness import run
from tests.http.webhooks.scenes import scene
from triplewire.storage.webhooks import WEBHOOK

flask = pytest.importorskip("flask", reason="Flask-WebSub is not installed")
websub = pytest.importorskip("flask_websub.subscriber", reason="Flask-WebSub is not installed")
serving = pytest.importorskip("werkzeug.serving", reason="Flask-WebSub is not installed")

Do = Callable[[Callable[[], Any]], Any]


@asynccontextmanager
async def subscriber(folder: Path) -> AsyncIterator[tuple[Any, asyncio.Queue[bytes], Do]]:
    """It, what it was told, and a way to have it do something."""
    heard, loop = asyncio.Queue[bytes](), asyncio.get_running_loop()
    made = websub.Subscriber(
        websub.SQLite3SubscriberStorage(str(folder / "kept.db")),
        websub.SQLite3TempSubscriberStorage(str(folder / "wanted.db")),
    )
    made.add_listener(lambda topic, callback, body: loop.call_soon_threadsafe(heard.put_nowait, body))
    app = flask.Flask("subscriber")
    app.register_blueprint(made.build_blueprint(url_prefix="/callbacks"))
    server = serving.make_server("127.0.0.1", 0, app, threaded=True)
    app.config["SERVER_NAME"] = f"127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()

    def done(work: Callable[[], Any]) -> Any:  # noqa: ANN401
        with app.app_context():
            return work()

    try:
        yield made, heard, lambda work: asyncio.to_thread(done, work)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_it_goes_the_whole_way(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene() as at, subscriber(tmp_path) as (made, heard, do):
            found = await do(lambda: websub.discover(f"{at.at.url}/streams/test?mode=poll&wait=0"))
            assert found["hub_url"] == f"{at.at.url}/websub"
            topic = {**found, "topic_url": f"{at.at.url}/streams/test"}
            id = await do(lambda: made.subscribe(**topic, lease_seconds=600))
            registry = at.at.twin.registry
            await at.until(lambda: registry.list(WEBHOOK))
            at.at.append(1)
            assert b"event/1" in await heard.get()
            (before,) = registry.list(WEBHOOK)
            at.clock.advance(300)
            await do(lambda: made.renew(id))
            await at.until(lambda: registry.list(WEBHOOK)[0].position > before.position)
            at.at.append(2)
            assert b"event/2" in await heard.get()
            await do(lambda: made.unsubscribe(id))
            await at.until(lambda: not registry.list(WEBHOOK))

    run(story())
