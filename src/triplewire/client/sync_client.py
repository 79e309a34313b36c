"""`Client`: the same calls for programs without an event loop, over an `AsyncClient` that runs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from triplewire.client.administration import ContinuousQueryOptions
from triplewire.client.async_client import AsyncClient, OnGap, StreamFilterOptions, SubscriptionOptions, warn_of_gap
from triplewire.client.feeds import Transport
from triplewire.client.publishing import MEDIA_TYPE, Item
from triplewire.client.requests import Json
from triplewire.client.results import LogPage, QueryOptions
from triplewire.model import END, START, ErasureScope, Event, Kind, StreamEvent
from triplewire.rdf import N_QUADS, TURTLE

Result = TypeVar("Result")


@dataclass(frozen=True)
class BlockingResponse:
    """An answer that has begun: its media type, and its bytes as they come."""

    content_type: str
    _pieces: Callable[[], Iterator[bytes]]

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces()


@dataclass(frozen=True)
class BlockingPublisher:
    """One WebSocket that publishes; `publish` sends an item and waits until it is durable."""

    publish: Callable[[Item], Json]


class Client:
    """`AsyncClient` with calls that block. May be used from several threads; to be used as `with`."""

    def __init__(
        self,
        url: str = "http://localhost:8080",
        *,
        attempts: int | None = None,
        transport: Transport = "sse",
        token: str | None = None,
        cacert: str | None = None,
    ) -> None:
        self._client = AsyncClient(url, attempts=attempts, transport=transport, token=token, cacert=cacert)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="triplewire-client", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def publish(
        self,
        stream: str,
        body: bytes | str | Iterable[Event],
        content_type: str = N_QUADS.media_type,
        **headers: str,
    ) -> Json:
        return self._run(self._client.publish(stream, body, content_type, **headers))

    def publish_each(
        self,
        stream: str,
        items: Iterable[Item],
        content_type: str = MEDIA_TYPE,
        *,
        packed: bool = False,
        **headers: str,
    ) -> Iterator[Json]:
        return self._each(self._client.publish_each(stream, items, content_type, packed=packed, **headers))

    @contextmanager
    def publishing(self, stream: str, content_type: str = MEDIA_TYPE) -> Iterator[BlockingPublisher]:
        opened = self._client.publishing(stream, content_type)
        made = self._run(opened.__aenter__())
        try:
            yield BlockingPublisher(lambda item: self._run(made.publish(item)))
        finally:
            self._run(opened.__aexit__(None, None, None))

    def publish_addressed(self, events: Iterable[StreamEvent], key: str | None = None) -> Json:
        return self._run(self._client.publish_addressed(events, key))

    def consume(
        self,
        stream: str,
        after: str | None = None,
        *,
        on_gap: OnGap = warn_of_gap,
        **through: Unpack[StreamFilterOptions],
    ) -> Iterator[Json]:
        return self._each(self._client.consume(stream, after, on_gap=on_gap, **through))

    def written(
        self, stream: str, format: str, after: str | None = None, **through: Unpack[StreamFilterOptions]
    ) -> Iterator[bytes]:
        return self._each(self._client.written(stream, format, after, **through))

    def page(self, after: int = START, upto: int = END, stream: str | None = None) -> LogPage:
        return self._run(self._client.page(after, upto, stream))

    def subscribe(
        self,
        sparql: str | None = None,
        kind: Kind | str = Kind.SIGNAL,
        stream: str | list[str] | None = None,
        **wanted: Unpack[SubscriptionOptions],
    ) -> Json:
        return self._run(self._client.subscribe(sparql, kind, stream, **wanted))

    def subscribe_all(self, wishes: Sequence[Mapping[str, Any]]) -> list[Json]:
        return self._run(self._client.subscribe_all(wishes))

    def subscribe_bulk(self, wishes: Iterable[Mapping[str, Any] | bytes]) -> Iterator[Json]:
        return self._each(self._client.subscribe_bulk(wishes))

    def subscriptions(self) -> list[Json]:
        return self._run(self._client.subscriptions())

    def unsubscribe(self, id: str) -> None:
        self._run(self._client.unsubscribe(id))

    def notifications(
        self, id: str | Sequence[str], after: str | None = None, *, on_gap: OnGap = warn_of_gap
    ) -> Iterator[Json]:
        return self._each(self._client.notifications(id, after, on_gap=on_gap))

    def register(self, text: str, **inquired: Unpack[ContinuousQueryOptions]) -> Json:
        return self._run(self._client.register(text, **inquired))

    def register_all(self, inquiries: Sequence[Mapping[str, Any]]) -> list[Json]:
        return self._run(self._client.register_all(inquiries))

    def register_bulk(self, inquiries: Iterable[Mapping[str, Any] | bytes]) -> Iterator[Json]:
        return self._each(self._client.register_bulk(inquiries))

    def queries(self) -> list[Json]:
        return self._run(self._client.queries())

    def registered(self, id: str) -> Json:
        return self._run(self._client.registered(id))

    def end_query(self, id: str) -> None:
        self._run(self._client.end_query(id))

    def answers(
        self, id: str | Sequence[str], after: str | None = None, *, on_gap: OnGap = warn_of_gap
    ) -> Iterator[Json]:
        return self._each(self._client.answers(id, after, on_gap=on_gap))

    def query(self, sparql: str, **how: Unpack[QueryOptions]) -> Json:
        return self._run(self._client.query(sparql, **how))

    def rows(self, sparql: str, **how: Unpack[QueryOptions]) -> Iterator[Json]:
        return self._each(self._client.rows(sparql, **how))

    @contextmanager
    def answer(self, sparql: str, **how: Unpack[QueryOptions]) -> Iterator[BlockingResponse]:
        asked = self._client.answer(sparql, **how)
        answer = self._run(asked.__aenter__())
        try:
            yield BlockingResponse(answer.content_type, lambda: self._each(aiter(answer)))
        finally:
            self._run(asked.__aexit__(None, None, None))

    def put_template(self, name: str, sparql: str, parameters: Mapping[str, Any] | None = None) -> Json:
        return self._run(self._client.put_template(name, sparql, parameters))

    def templates(self) -> list[Json]:
        return self._run(self._client.templates())

    def template(self, name: str) -> Json:
        return self._run(self._client.template(name))

    def remove_template(self, name: str) -> None:
        self._run(self._client.remove_template(name))

    def load_ontology(self, name: str, body: bytes | str, content_type: str = TURTLE.media_type) -> Json:
        return self._run(self._client.load_ontology(name, body, content_type))

    def ontologies(self) -> list[Json]:
        return self._run(self._client.ontologies())

    def ontology(self, name: str, content_type: str = TURTLE.media_type) -> bytes:
        return self._run(self._client.ontology(name, content_type))

    def remove_ontology(self, name: str) -> None:
        self._run(self._client.remove_ontology(name))

    def put_shapes(
        self, stream: str, body: bytes | str, content_type: str = TURTLE.media_type, mode: str = "refuse"
    ) -> Json:
        return self._run(self._client.put_shapes(stream, body, content_type, mode))

    def shapes(self, stream: str, content_type: str = TURTLE.media_type) -> bytes:
        return self._run(self._client.shapes(stream, content_type))

    def remove_shapes(self, stream: str) -> None:
        self._run(self._client.remove_shapes(stream))

    def load_policy(self, text: str) -> Json:
        return self._run(self._client.load_policy(text))

    def policy(self, version: str | None = None) -> str:
        return self._run(self._client.policy(version))

    def policy_versions(self) -> list[Json]:
        return self._run(self._client.policy_versions())

    def remove_policy(self) -> None:
        self._run(self._client.remove_policy())

    def erase(self, scope: ErasureScope | str, name: str, by: str | None = None) -> Json:
        return self._run(self._client.erase(scope, name, by))

    def erasure(self, id: str) -> Json:
        return self._run(self._client.erasure(id))

    def erasures(self) -> list[Json]:
        return self._run(self._client.erasures())

    def hooks(self) -> list[Json]:
        return self._run(self._client.hooks())

    def dead_letters(self, id: str) -> list[Json]:
        return self._run(self._client.dead_letters(id))

    def replay(self, id: str, positions: Sequence[str] | None = None) -> Json:
        return self._run(self._client.replay(id, positions))

    def drop_dead_letters(self, id: str, positions: Sequence[str] | None = None) -> None:
        self._run(self._client.drop_dead_letters(id, positions))

    def create_token(
        self, name: str, allow: Sequence[str], *, roles: Sequence[str] = (), expires: str | None = None
    ) -> Json:
        return self._run(self._client.create_token(name, allow, roles=roles, expires=expires))

    def tokens(self) -> list[Json]:
        return self._run(self._client.tokens())

    def revoke_token(self, id: str) -> None:
        self._run(self._client.revoke_token(id))

    def health(self) -> Json:
        return self._run(self._client.health())

    def edges(self) -> list[Json]:
        return self._run(self._client.edges())

    def streams(self) -> list[Json]:
        return self._run(self._client.streams())

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _each(self, feed: AsyncGenerator[Result, None]) -> Iterator[Result]:
        try:
            while True:
                yield self._run(_next(feed))
        except StopAsyncIteration:
            return
        finally:
            self._run(feed.aclose())


async def _next(feed: AsyncGenerator[Result, None]) -> Result:
    return await anext(feed)
