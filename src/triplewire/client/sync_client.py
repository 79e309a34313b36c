"""`Client`: the methods of `AsyncClient` for programs without an event loop, over one that runs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from threading import Thread
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from triplewire.client.async_client import AsyncClient
from triplewire.client.feeds import Transport
from triplewire.client.publishing import MEDIA_TYPE, Item
from triplewire.client.requests import Json
from triplewire.client.results import QueryOptions

P = ParamSpec("P")
Result = TypeVar("Result")


@dataclass(frozen=True)
class BlockingResponse:
    """An answer that has begun: its media type, and its bytes as they arrive."""

    content_type: str
    _pieces: Callable[[], Iterator[bytes]]

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces()


@dataclass(frozen=True)
class BlockingPublisher:
    """A WebSocket for publishing; `publish` sends an item and waits until it is durable."""

    publish: Callable[[Item], Json]


class _Loop:
    """An event loop in a thread, with a client that runs in it."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="triplewire-client", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _iterate(self, generator: AsyncGenerator[Result, None]) -> Iterator[Result]:
        try:
            while True:
                yield self._run(_next(generator))
        except StopAsyncIteration:
            return
        finally:
            self._run(generator.aclose())


async def _next(generator: AsyncGenerator[Result, None]) -> Result:
    return await anext(generator)


def _blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[_Loop, P], Result]:
    """Return the method with the same parameters and docstring, which waits for the result."""

    @wraps(method)
    def call(self: _Loop, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return self._run(method(self._client, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[AsyncClient, P], AsyncGenerator[Result, None]],
) -> Callable[Concatenate[_Loop, P], Iterator[Result]]:
    """Return the method with the same parameters and docstring, which gives a plain iterator."""

    @wraps(method)
    def call(self: _Loop, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Result]:
        return self._iterate(method(self._client, *args, **kwargs))

    return call


class Client(_Loop):
    """`AsyncClient` with methods that block. May be used from several threads; to be used as `with`."""

    def __init__(
        self,
        url: str = "http://localhost:8080",
        *,
        attempts: int | None = None,
        transport: Transport = "sse",
        token: str | None = None,
        cacert: str | None = None,
    ) -> None:
        super().__init__(AsyncClient(url, attempts=attempts, transport=transport, token=token, cacert=cacert))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    publish = _blocking(AsyncClient.publish)
    publish_each = _iterating(AsyncClient.publish_each)
    publish_addressed = _blocking(AsyncClient.publish_addressed)
    consume = _iterating(AsyncClient.consume)
    consume_raw = _iterating(AsyncClient.consume_raw)
    page = _blocking(AsyncClient.page)

    subscribe = _blocking(AsyncClient.subscribe)
    subscribe_all = _blocking(AsyncClient.subscribe_all)
    subscribe_bulk = _iterating(AsyncClient.subscribe_bulk)
    subscriptions = _blocking(AsyncClient.subscriptions)
    unsubscribe = _blocking(AsyncClient.unsubscribe)
    notifications = _iterating(AsyncClient.notifications)

    register = _blocking(AsyncClient.register)
    register_all = _blocking(AsyncClient.register_all)
    register_bulk = _iterating(AsyncClient.register_bulk)
    queries = _blocking(AsyncClient.queries)
    find_query = _blocking(AsyncClient.find_query)
    end_query = _blocking(AsyncClient.end_query)
    answers = _iterating(AsyncClient.answers)

    query = _blocking(AsyncClient.query)
    rows = _iterating(AsyncClient.rows)

    put_template = _blocking(AsyncClient.put_template)
    templates = _blocking(AsyncClient.templates)
    template = _blocking(AsyncClient.template)
    remove_template = _blocking(AsyncClient.remove_template)
    load_ontology = _blocking(AsyncClient.load_ontology)
    ontologies = _blocking(AsyncClient.ontologies)
    ontology = _blocking(AsyncClient.ontology)
    remove_ontology = _blocking(AsyncClient.remove_ontology)
    put_shapes = _blocking(AsyncClient.put_shapes)
    shapes = _blocking(AsyncClient.shapes)
    remove_shapes = _blocking(AsyncClient.remove_shapes)
    load_policy = _blocking(AsyncClient.load_policy)
    policy = _blocking(AsyncClient.policy)
    policy_versions = _blocking(AsyncClient.policy_versions)
    remove_policy = _blocking(AsyncClient.remove_policy)
    erase = _blocking(AsyncClient.erase)
    erasure = _blocking(AsyncClient.erasure)
    erasures = _blocking(AsyncClient.erasures)
    webhooks = _blocking(AsyncClient.webhooks)
    dead_letters = _blocking(AsyncClient.dead_letters)
    replay = _blocking(AsyncClient.replay)
    drop_dead_letters = _blocking(AsyncClient.drop_dead_letters)
    create_token = _blocking(AsyncClient.create_token)
    tokens = _blocking(AsyncClient.tokens)
    revoke_token = _blocking(AsyncClient.revoke_token)
    health = _blocking(AsyncClient.health)
    edges = _blocking(AsyncClient.edges)
    streams = _blocking(AsyncClient.streams)

    @contextmanager
    def open_publisher(self, stream: str, content_type: str = MEDIA_TYPE) -> Iterator[BlockingPublisher]:
        """A WebSocket that publishes item by item, open while the block lasts."""
        opened = self._client.open_publisher(stream, content_type)
        publisher = self._run(opened.__aenter__())
        try:
            yield BlockingPublisher(lambda item: self._run(publisher.publish(item)))
        finally:
            self._run(opened.__aexit__(None, None, None))

    @contextmanager
    def answer(self, sparql: str, **options: Unpack[QueryOptions]) -> Iterator[BlockingResponse]:
        """The answer in any format, byte for byte; leaving the block before the end cancels the query."""
        opened = self._client.answer(sparql, **options)
        answer = self._run(opened.__aenter__())
        try:
            yield BlockingResponse(answer.content_type, lambda: self._iterate(aiter(answer)))
        finally:
            self._run(opened.__aexit__(None, None, None))
