"""`AsyncClient`: publish, consume, subscribe and query over HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from io import BytesIO
from typing import Any, TypedDict, Unpack

import aiohttp
import orjson

from triplewire.client import publishing, results
from triplewire.client.administration import ContinuousQueryClient, rename_start
from triplewire.client.feeds import Feed, FeedMessage
from triplewire.client.publishing import Items, StreamingPublisher
from triplewire.client.requests import Json
from triplewire.client.results import QueryOptions, QueryResponse, ResultParser
from triplewire.model import END, START, Event, Kind, StreamEvent, format_position
from triplewire.model.errors import Unavailable
from triplewire.model.problems import parse_problem
from triplewire.rdf import N_QUADS, encode, encode_addressed

_PIECE = 64 * 1024


class SubscriptionOptions(TypedDict, total=False):
    """Options of a subscription beside its query, kind and stream."""

    source: str | list[str]
    application: str | list[str]
    vocabulary: str | list[str]
    template: str
    values: Mapping[str, Any]
    version: str
    ttl: float
    entailment: str
    start: str
    """The field `from`, which is a keyword of Python: `earliest`, a position, or a time."""


class StreamFilterOptions(TypedDict, total=False):
    """A filter of a stream. An event passes if it meets all options; any of several values will do."""

    source: str | Sequence[str]
    application: str | Sequence[str]
    vocabulary: str | Sequence[str]
    """A prefix of the IRI of some predicate or class of the event."""
    ask: str | Sequence[str]
    """ASK queries."""
    filter: str
    """The name of a filter of the deployment."""
    parameters: Mapping[str, str]
    """The parameters of that filter."""


def filter_parameters(filters: StreamFilterOptions) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a filter in an address."""
    for name in ("source", "application", "vocabulary", "ask", "filter"):
        given = filters.get(name, ())
        assert isinstance(given, str | Sequence), "others are no parameters of their own"
        yield from ((name, each) for each in ([given] if isinstance(given, str) else given))
    yield from ((f"filter.{name}", each) for name, each in filters.get("parameters", {}).items())


async def encode_lines(requests: Iterable[Mapping[str, Any] | bytes]) -> AsyncIterator[bytes]:
    """Yield a line of JSON for each request, in pieces that are worth sending. Bytes are lines already."""
    lines, size = list[bytes](), 0
    for request in requests:
        lines.append(request.rstrip(b"\n") if isinstance(request, bytes) else orjson.dumps(dict(request)))
        size += len(lines[-1])
        if size > _PIECE:
            yield b"\n".join((*lines, b""))
            lines, size = [], 0
    yield b"\n".join((*lines, b""))


_FOREVER = aiohttp.ClientTimeout(total=None)
_ANSWER_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300)
"""A query may wait in the queue, and Spark may have to start; then pieces arrive as they are found."""
_LASTING_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10)
"""A publisher may be silent for long, and gets no acknowledgements then."""
_KEY = "Idempotency-Key"
_HEADERS = {
    "id": "Event-Id",
    "source": "Source-Id",
    "application": "Application-Id",
    "time": "Timestamp",
    "key": _KEY,
    "encoding": "Content-Encoding",
}

OnGap = Callable[[Json], None]

logger = logging.getLogger(__name__)


def warn_of_gap(gap: Json) -> None:
    """Log a gap: the default of `on_gap`."""
    logger.warning("events after %s are gone; going on from %s", gap["asked"], gap["earliest"])


class AsyncClient(ContinuousQueryClient):
    """A client of one edge. Errors are those of `triplewire.model.errors`, made from the edge's problem documents.

    To be used as `async with`; connections stay open between calls.
    """

    async def publish(
        self,
        /,
        stream: str,
        body: bytes | str | Iterable[Event],
        content_type: str = N_QUADS.media_type,
        **headers: str,
    ) -> Json:
        """Return the receipt, once the events are durable: `events`, `first`, `last`, `position`.

        `body` is RDF text in the syntax of `content_type`, or events. `headers` are `id`, `source`, `application`
        and `time`, each of a single event; `key`, under which a body is published once; and `encoding`, if the bytes
        of `body` are compressed: `gzip`, `deflate`, `zstd`.
        """
        data = body.encode() if isinstance(body, str) else body
        if not isinstance(data, bytes):
            data, content_type = encode(data, N_QUADS), N_QUADS.media_type
        fields = {"Content-Type": content_type, **_header_fields(headers)}
        return await self._call("POST", f"/streams/{stream}", data=BytesIO(data), headers=fields)

    async def publish_each(
        self,
        /,
        stream: str,
        items: Items,
        content_type: str = publishing.MEDIA_TYPE,
        *,
        compress: bool = False,
        **headers: str,
    ) -> AsyncGenerator[Json, None]:
        """Publish items over one request for as long as there are any.

        Yields for each item, as soon as it is durable, its number, from 1 on, as `item`, and either `position` or
        `problem`; at last `end` with the number of items. Items are events, JSON objects, or bytes of `content_type`:
        lines of JSON, Ztreamy items or N-Quads; the iterable runs in another thread. `compress` sends them with gzip;
        `headers` are `source`, `application`, `time`.
        """
        encoding = {"Content-Encoding": "gzip"} if compress else {}
        options: Any = {
            "params": {"ack": "each"},
            "headers": {"Content-Type": content_type, **_header_fields(headers), **encoding},
            "timeout": _LASTING_TIMEOUT,
        }
        body = publishing.stream_body(items, compress=compress)
        async with aclosing(self._stream_json_lines(f"/streams/{stream}", body, **options)) as lines:
            async for line in lines:
                if "begin" not in line:
                    yield line

    @asynccontextmanager
    async def open_publisher(
        self, stream: str, content_type: str = publishing.MEDIA_TYPE
    ) -> AsyncIterator[StreamingPublisher]:
        """A WebSocket that publishes item by item, open while the block lasts, which waits for acknowledgements."""
        url = f"{self._url}/streams/{stream}/publish"
        try:
            socket = await self._open().ws_connect(url, params={"type": content_type}, max_msg_size=0)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unavailable(error) from error
        publisher = StreamingPublisher(socket)
        try:
            yield publisher
        finally:
            await publisher.close()

    async def publish_addressed(self, events: Iterable[StreamEvent], key: str | None = None) -> Json:
        """Publish events that each have a stream and headers of their own; return the receipt, without `stream`.

        Under one key events are published once, for as long as the log keeps it: the receipt is that of the first time.
        """
        headers = {"Content-Type": N_QUADS.media_type, **({} if key is None else {_KEY: key})}
        return await self._call("POST", "/events", data=BytesIO(encode_addressed(events)), headers=headers)

    def consume(
        self,
        stream: str,
        after: str | None = None,
        *,
        on_gap: OnGap = warn_of_gap,
        **filters: Unpack[StreamFilterOptions],
    ) -> AsyncGenerator[Json, None]:
        """Yield events of a stream, after a position, from `earliest`, or from now on; reconnects and resumes.

        `filters` are applied at the edge. `on_gap` is called when events after the position have been trimmed already.
        Raises Unavailable if a query or filter fails at the edge.
        """
        return self._feed(f"/streams/{stream}", after, on_gap, tuple(filter_parameters(filters)))

    def consume_raw(
        self, stream: str, format: str, after: str | None = None, **filters: Unpack[StreamFilterOptions]
    ) -> AsyncGenerator[bytes, None]:
        """Yield a stream in a format of the edge, such as `messages-trig` or `jelly`, byte for byte.

        Ends with the connection: the bytes are not parsed, so that it cannot resume.
        """
        position = [] if after is None else [("after", after)]
        parameters = [*filter_parameters(filters), ("format", format), *position]
        return self._stream("GET", f"/streams/{stream}", params=parameters, timeout=_FOREVER)

    def listen(
        self,
        stream: str,
        after: str | None = None,
        *,
        parameters: Iterable[tuple[str, str]] = (),
        relay: str | None = None,
    ) -> AsyncGenerator[FeedMessage, None]:
        """Yield every message of a stream, those about the connection too.

        `parameters` are those of the address, filters among them; a `relay` sends its id and is served without linger.
        """
        headers = {} if relay is None else {"Relay-Id": relay}
        given = [*parameters, *([] if relay is None else [("linger", "0")])]
        url = f"{self._url}/streams/{stream}"
        return Feed(self._open(), url, after, self._attempts, tuple(given), headers, positions=True).messages()

    async def page(self, after: int = START, until: int = END, stream: str | None = None) -> results.LogPage:
        """Return the first events at positions p with `after < p <= until` that the log keeps, of one stream or all."""
        parameters = {"after": format_position(after), "through": format_position(until)}
        if stream is not None:
            parameters["stream"] = stream
        return results.parse_log_page(await self._send("GET", "/events", params=parameters))

    async def subscribe(
        self,
        sparql: str | None = None,
        kind: Kind | str = Kind.SIGNAL,
        stream: str | list[str] | None = None,
        **options: Unpack[SubscriptionOptions],
    ) -> Json:
        """Create a subscription to all events that are published from now on, and to earlier ones since `start`."""
        request = {"sparql": sparql, "kind": str(kind), "stream": stream, **rename_start(options)}
        (subscription,) = await self.subscribe_all([request])
        return subscription

    async def subscribe_all(self, requests: Sequence[Mapping[str, Any]]) -> list[Json]:
        """Create many subscriptions, all or none: objects with `sparql`, `kind` and `stream`."""
        return await self._post_all("/subscriptions", requests)

    def subscribe_bulk(self, requests: Iterable[Mapping[str, Any] | bytes]) -> AsyncGenerator[Json, None]:
        """Create any number of subscriptions, each on its own: objects, or lines of JSON in bytes.

        Yields for each its `line` and either `id` and `position` or `error`.
        """
        return self._bulk("/subscriptions", requests)

    def register_bulk(self, requests: Iterable[Mapping[str, Any] | bytes]) -> AsyncGenerator[Json, None]:
        """Register any number of continuous queries, each on its own, as `subscribe_bulk` does."""
        return self._bulk("/queries", requests)

    def _bulk(self, path: str, requests: Iterable[Mapping[str, Any] | bytes]) -> AsyncGenerator[Json, None]:
        headers = {"Content-Type": publishing.MEDIA_TYPE}
        return self._stream_json_lines(path, encode_lines(requests), headers=headers, timeout=_ANSWER_TIMEOUT)

    async def subscriptions(self) -> list[Json]:
        """Return all subscriptions, in the order of their creation."""
        return await self._list_pages("/subscriptions", "subscriptions")

    async def unsubscribe(self, id: str) -> None:
        await self._send("DELETE", f"/subscriptions/{id}")

    def notifications(
        self, id: str | Sequence[str], after: str | None = None, *, on_gap: OnGap = warn_of_gap
    ) -> AsyncGenerator[Json, None]:
        """Yield the matches of a subscription, by default from its first on; ends when the subscription does.

        Several subscriptions share one connection, in the order of events, until all of them have ended.
        """
        if isinstance(id, str):
            return self._feed(f"/subscriptions/{id}/notifications", after, on_gap)
        return self._feed("/notifications", after, on_gap, [("subscription", each) for each in id])

    def answers(
        self, id: str | Sequence[str], after: str | None = None, *, on_gap: OnGap = warn_of_gap
    ) -> AsyncGenerator[Json, None]:
        """Yield the answers of a continuous query, by default since its registration, until it ends or is suspended.

        Several queries share one connection.
        """
        if isinstance(id, str):
            return self._feed(f"/queries/{id}/answers", after, on_gap)
        return self._feed("/notifications", after, on_gap, [("query", each) for each in id])

    async def query(self, sparql: str, **options: Unpack[QueryOptions]) -> Json:
        """Return a SPARQL 1.1 JSON results document over the history of all streams."""
        options["format"] = "json"
        async with self.answer(sparql, **options) as answer:
            document: Json = orjson.loads(b"".join([piece async for piece in answer]))
        return document

    async def rows(self, sparql: str, **options: Unpack[QueryOptions]) -> AsyncGenerator[Json, None]:
        """Yield the solutions of a SELECT as they arrive: terms by variable, as in the JSON results format."""
        options["format"] = "json"
        rows = ResultParser()
        async with self.answer(sparql, **options) as answer:
            async for piece in answer:
                for row in rows.feed(piece):
                    yield row

    @asynccontextmanager
    async def answer(self, sparql: str, **options: Unpack[QueryOptions]) -> AsyncIterator[QueryResponse]:
        """The answer in any format, byte for byte; leaving the block before the end cancels the query."""
        headers = {"Content-Type": "application/sparql-query", "Accept": "*/*"}
        sent: Any = {"params": {name: str(value) for name, value in options.items()}, "headers": headers}
        try:
            response = await self._open().post(
                f"{self._url}/sparql", data=sparql.encode(), timeout=_ANSWER_TIMEOUT, **sent
            )
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unavailable(error) from error
        async with response:
            if response.status >= 400:
                raise parse_problem(response.status, await response.read())
            yield QueryResponse(response.content_type, response.content)

    async def _feed(
        self, path: str, after: str | None, on_gap: OnGap, parameters: Sequence[tuple[str, str]] = ()
    ) -> AsyncGenerator[Json, None]:
        url, given = self._url + path, tuple(parameters)
        feed = Feed(self._open(), url, after, self._attempts, given, transport=self._transport)
        async with aclosing(feed.messages()) as messages:
            async for message in messages:
                if message.event == "gap":
                    on_gap(message.data)
                elif message.event == "failed":
                    raise Unavailable(message.data["detail"])
                elif message.event == "undecided":
                    logger.warning("position %s: %s", message.data["position"], message.data["detail"])
                elif message.event != "end":
                    yield message.data


def _header_fields(headers: Mapping[str, str]) -> dict[str, str]:
    return {_HEADERS[name]: value for name, value in headers.items()}
