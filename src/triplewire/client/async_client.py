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
from triplewire.client.administration import ContinuousQueryClient
from triplewire.client.feeds import Feed, FeedMessage
from triplewire.client.problems import parse_problem
from triplewire.client.publishing import Items, StreamingPublisher
from triplewire.client.requests import Json
from triplewire.client.results import QueryOptions, QueryResponse, ResultParser
from triplewire.model import END, START, Event, Kind, StreamEvent, format_position
from triplewire.model.errors import Unavailable
from triplewire.rdf import N_QUADS, encode, encode_addressed

# Bulks: many subscriptions as lines of JSON on their way to an edge, and its answers on their way back.

BULK_MEDIA_TYPE = "application/x-ndjson"

_PIECE = 64 * 1024


class SubscriptionOptions(TypedDict, total=False):
    """What a subscription may say beside its query, kind and stream."""

    source: str | list[str]
    application: str | list[str]
    vocabulary: str | list[str]
    template: str
    values: Mapping[str, Any]
    version: str
    ttl: float
    entailment: str
    begins: str
    """`from`, which is a word of Python."""


async def encode_lines(wishes: Iterable[Mapping[str, Any] | bytes]) -> AsyncIterator[bytes]:
    """A line for each, in pieces that are worth sending. Bytes are lines already."""
    lines, size = list[bytes](), 0
    for wish in wishes:
        lines.append(wish.rstrip(b"\n") if isinstance(wish, bytes) else orjson.dumps(dict(wish)))
        size += len(lines[-1])
        if size > _PIECE:
            yield b"\n".join((*lines, b""))
            lines, size = [], 0
    yield b"\n".join((*lines, b""))


async def decode_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The lines of an answer."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield orjson.loads(line)


# Sieves: what of a stream is to be told, as parameters of its address.


class StreamFilterOptions(TypedDict, total=False):
    """All that is given must hold for an event to be told; of several values any will do."""

    source: str | Sequence[str]
    application: str | Sequence[str]
    vocabulary: str | Sequence[str]
    """How the IRI of some predicate or class of the event begins."""
    ask: str | Sequence[str]
    """ASK queries."""
    filter: str
    """The name of a filter of the deployment."""
    parameters: Mapping[str, str]
    """What that filter is made with."""


def filter_parameters(through: StreamFilterOptions) -> Iterator[tuple[str, str]]:
    """Of the address."""
    for name in ("source", "application", "vocabulary", "ask", "filter"):
        given = through.get(name, ())
        assert isinstance(given, str | Sequence), "others are no parameters of their own"
        yield from ((name, each) for each in ([given] if isinstance(given, str) else given))
    yield from ((f"filter.{name}", each) for name, each in through.get("parameters", {}).items())


_FOREVER = aiohttp.ClientTimeout(total=None)
_ANSWER_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300)
"""A query may wait its turn, and Spark may have to start; then pieces come as they are found."""
_LASTING_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10)
"""Who publishes may have nothing to say for long, and hears nothing then."""
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
    """What is done about a gap unless a program knows better."""
    logger.warning("events after %s are gone; going on from %s", gap["asked"], gap["earliest"])


class AsyncClient(ContinuousQueryClient):
    """Talks to one edge. Errors are those of `triplewire.model.errors`, made from the edge's problem documents.

    To be used as `async with`; it keeps connections open between calls.
    """

    async def publish(
        self,
        stream: str,
        body: bytes | str | Iterable[Event],
        content_type: str = N_QUADS.media_type,
        **headers: str,
    ) -> Json:
        """The receipt, once the events are durable: `events`, `first`, `last`, `position`.

        `body` is RDF text in the syntax of `content_type`, or events. `headers` are `id`, `source`, `application`
        and `time`, each that of a single event, `key`: what was published with it is not published again, and
        `encoding` where the bytes of `body` are compressed already: `gzip`, `deflate`, `zstd`.
        """
        data = body.encode() if isinstance(body, str) else body
        if not isinstance(data, bytes):
            data, content_type = encode(data, N_QUADS), N_QUADS.media_type
        given = {_HEADERS[name]: value for name, value in headers.items()}
        sent = {"Content-Type": content_type, **given}
        receipt: Json = await self._call("POST", f"/streams/{stream}", data=BytesIO(data), headers=sent)
        return receipt

    async def publish_each(
        self,
        stream: str,
        items: Items,
        content_type: str = publishing.MEDIA_TYPE,
        *,
        packed: bool = False,
        **headers: str,
    ) -> AsyncGenerator[Json, None]:
        """Publish for as long as there are items, over one request; of each, as soon as it is durable, its number, from
        1 on, as `item`, and either `position` or `problem`. In the end `end` says how many there were.

        Items are events, objects of JSON, or bytes of `content_type`: lines of JSON, Ztreamy items or N-Quads. They are
        asked for in another thread. `packed` sends them with gzip; `headers` are `source`, `application`, `time`.
        """
        given = {_HEADERS[name]: value for name, value in headers.items()}
        sent = {"Content-Type": content_type, **given, **({"Content-Encoding": "gzip"} if packed else {})}
        body = publishing.stream_body(items, packed=packed)
        options: Any = {"params": {"ack": "each"}, "headers": sent, "timeout": _LASTING_TIMEOUT}
        try:
            async with self._open().post(f"{self._url}/streams/{stream}", data=body, **options) as response:
                if response.status >= 400:
                    raise parse_problem(response.status, await response.read())
                async for told in decode_lines(response.content.iter_any()):
                    if "begin" not in told:
                        yield told
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error

    @asynccontextmanager
    async def publishing(
        self, stream: str, content_type: str = publishing.MEDIA_TYPE
    ) -> AsyncIterator[StreamingPublisher]:
        """A WebSocket that publishes item by item, open while the block lasts; what was sent is waited for."""
        url = f"{self._url}/streams/{stream}/publish"
        try:
            socket = await self._open().ws_connect(url, params={"type": content_type}, max_msg_size=0)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error
        made = StreamingPublisher(socket)
        try:
            yield made
        finally:
            await made.close()

    async def publish_addressed(self, events: Iterable[StreamEvent], key: str | None = None) -> Json:
        """The receipt, without `stream`, of events that each have a stream and headers of their own. What was published
        with the key is not published again, for as long as the log keeps it: the receipt is the first one's."""
        sent = {"Content-Type": N_QUADS.media_type, **({} if key is None else {_KEY: key})}
        receipt: Json = await self._call("POST", "/events", data=BytesIO(encode_addressed(events)), headers=sent)
        return receipt

    def consume(
        self,
        stream: str,
        after: str | None = None,
        *,
        on_gap: OnGap = warn_of_gap,
        **through: Unpack[StreamFilterOptions],
    ) -> AsyncGenerator[Json, None]:
        """Events of a stream, after a position, from `earliest`, or from now on; goes on when a connection breaks.

        Only those are told that are let `through`; the rest is not even sent. `on_gap` is told when what was asked for
        had been trimmed away already. Raises Unavailable where a query or filter of them fails at the edge.
        """
        return self._feed(f"/streams/{stream}", after, on_gap, tuple(filter_parameters(through)))

    async def written(
        self, stream: str, format: str, after: str | None = None, **through: Unpack[StreamFilterOptions]
    ) -> AsyncGenerator[bytes, None]:
        """A stream in a format of the edge's, such as `messages-trig` or `jelly`, byte for byte as it comes, until the
        connection ends: nothing is read of it, so that it does not go on by itself."""
        asked = [*filter_parameters(through), ("format", format), *([] if after is None else [("after", after)])]
        try:
            async with self._open().get(f"{self._url}/streams/{stream}", params=asked, timeout=_FOREVER) as response:
                if response.status >= 400:
                    raise parse_problem(response.status, await response.read())
                async for piece in response.content.iter_any():
                    yield piece
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error

    def listen(
        self,
        stream: str,
        after: str | None = None,
        *,
        parameters: Iterable[tuple[str, str]] = (),
        relay: str | None = None,
    ) -> AsyncGenerator[FeedMessage, None]:
        """Every message of a stream, those about the connection too. `parameters` are filters and others that an edge
        takes in the address; a `relay` tells its id, and is served without waiting, before others."""
        told = {} if relay is None else {"Relay-Id": relay}
        given = [*parameters, *([] if relay is None else [("buffer", "0")])]
        url = f"{self._url}/streams/{stream}"
        return Feed(self._open(), url, after, self._attempts, tuple(given), told, positions=True).messages()

    async def page(self, after: int = START, upto: int = END, stream: str | None = None) -> results.LogPage:
        """The first events at positions p with `after < p <= upto` that the log keeps, of one stream or of all."""
        asked = {"after": format_position(after), "upto": format_position(upto)} | (
            {} if stream is None else {"stream": stream}
        )
        return results.parse_log_page(await self._send("GET", "/events", params=asked))

    async def subscribe(
        self,
        sparql: str | None = None,
        kind: Kind | str = Kind.SIGNAL,
        stream: str | list[str] | None = None,
        **wanted: Unpack[SubscriptionOptions],
    ) -> Json:
        """The subscription that was made; every event published from now on is matched against it, and those from
        `begins` on that came before: `earliest`, a position, or a time."""
        given = {("from" if name == "begins" else name): each for name, each in wanted.items()}
        (made,) = await self.subscribe_all([{"sparql": sparql, "kind": str(kind), "stream": stream, **given}])
        return made

    async def subscribe_all(self, wishes: Sequence[Mapping[str, Any]]) -> list[Json]:
        """Many subscriptions at once, all or none: objects with `sparql`, `kind` and `stream`."""
        made: list[Json] = await self._call("POST", "/subscriptions", json=list(wishes))
        return made

    def subscribe_bulk(self, wishes: Iterable[Mapping[str, Any] | bytes]) -> AsyncGenerator[Json, None]:
        """Any number of subscriptions, each for itself: for each its `line` and either `id` and `position` or `error`.
        A wish is an object, or a line of JSON in bytes."""
        return self._bulk("/subscriptions", wishes)

    def register_bulk(self, inquiries: Iterable[Mapping[str, Any] | bytes]) -> AsyncGenerator[Json, None]:
        """The same for continuous queries."""
        return self._bulk("/queries", inquiries)

    async def _bulk(self, path: str, wishes: Iterable[Mapping[str, Any] | bytes]) -> AsyncGenerator[Json, None]:
        headers = {"Content-Type": BULK_MEDIA_TYPE}
        sent = self._open().post(self._url + path, data=encode_lines(wishes), headers=headers, timeout=_ANSWER_TIMEOUT)
        try:
            async with sent as response:
                if response.status >= 400:
                    raise parse_problem(response.status, await response.read())
                async for told in decode_lines(response.content.iter_any()):
                    yield told
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error

    async def subscriptions(self) -> list[Json]:
        """All of them, in the order in which they were made."""
        found: list[Json] = []
        cursor: str | None = "earliest"
        while cursor is not None:
            page = await self._call("GET", "/subscriptions", params={"cursor": cursor})
            found += page["subscriptions"]
            cursor = page["next"]
        return found

    async def unsubscribe(self, id: str) -> None:
        """End a subscription."""
        await self._call("DELETE", f"/subscriptions/{id}")

    def notifications(
        self, id: str | Sequence[str], after: str | None = None, *, on_gap: OnGap = warn_of_gap
    ) -> AsyncGenerator[Json, None]:
        """What matched, by default from the subscription's beginning on; ends when the subscription does. Of several
        all is told over one connection, in the order of events; it ends when all of them have."""
        if isinstance(id, str):
            return self._feed(f"/subscriptions/{id}/notifications", after, on_gap)
        return self._feed("/notifications", after, on_gap, [("subscription", each) for each in id])

    def answers(
        self, id: str | Sequence[str], after: str | None = None, *, on_gap: OnGap = warn_of_gap
    ) -> AsyncGenerator[Json, None]:
        """What a continuous query finds, by default since it was registered; ends when the query does, or is suspended.
        Of several all is told over one connection."""
        if isinstance(id, str):
            return self._feed(f"/queries/{id}/answers", after, on_gap)
        return self._feed("/notifications", after, on_gap, [("query", each) for each in id])

    async def query(self, sparql: str, **how: Unpack[QueryOptions]) -> Json:
        """A SPARQL 1.1 JSON results document over everything that was ever published."""
        how["format"] = "json"
        async with self.answer(sparql, **how) as answer:
            document: Json = orjson.loads(b"".join([piece async for piece in answer]))
        return document

    async def rows(self, sparql: str, **how: Unpack[QueryOptions]) -> AsyncGenerator[Json, None]:
        """The solutions of a SELECT as they are found: terms by variable, as in the JSON results format."""
        how["format"] = "json"
        rows = ResultParser()
        async with self.answer(sparql, **how) as answer:
            async for piece in answer:
                for row in rows.feed(piece):
                    yield row

    @asynccontextmanager
    async def answer(self, sparql: str, **how: Unpack[QueryOptions]) -> AsyncIterator[QueryResponse]:
        """The answer in any format, byte for byte; who leaves before its end ends the query."""
        headers = {"Content-Type": "application/sparql-query", "Accept": "*/*"}
        options: Any = {"params": {name: str(value) for name, value in how.items()}, "headers": headers}
        try:
            response = await self._open().post(
                f"{self._url}/sparql", data=sparql.encode(), timeout=_ANSWER_TIMEOUT, **options
            )
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error
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
            async for heard in messages:
                if heard.event == "gap":
                    on_gap(heard.data)
                elif heard.event == "failed":
                    raise Unavailable(heard.data["detail"])
                elif heard.event == "undecided":
                    logger.warning("position %s: %s", heard.data["position"], heard.data["detail"])
                elif heard.event != "end":
                    yield heard.data
