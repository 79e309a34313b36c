"""Registry resources as JSON documents, and bulk requests of newline-delimited JSON, with a line of the response for
each line of the body.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import Any, Final, TypeVar

import orjson
from aiohttp import web

from triplewire.config.workers import CHUNK_BYTES
from triplewire.http.problems import describe_error
from triplewire.http.resources.bodies import SUBSCRIPTION_BODY_BYTES
from triplewire.http.resources.subscription_requests import SubscriptionRequest, format_start
from triplewire.model import Subscription, format_position
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField, TriplewireError
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.rdf.checks import check_nesting
from triplewire.storage.registry.ontologies import LoadedOntology
from triplewire.storage.registry.subscriptions import Lane, QueryTemplate, narrowing_fields
from triplewire.storage.webhooks import Webhook

BULK_LINES: Final = 2_000
"""Subscriptions of a bulk that are made in one transaction: some 100 ms, for which publishers wait."""

BULK_BYTES: Final = 4 * 1024 * 1024
"""Lines of a bulk that are held at once, and answers that wait in memory for its end; more of these go to the disk."""

BULK_SUBSCRIPTIONS: Final = 1_000_000
"""Lines of one bulk. Its answers wait on the disk until all is read: at worst some 500 MB of errors."""


def subscription_document(made: Subscription) -> dict[str, Any]:
    """With the fields that it was made of, those that say anything; `stream` is always there."""
    return {
        "id": made.id,
        **_without_nulls(sparql=made.sparql),
        **orjson.loads(made.filter or "{}"),
        "kind": made.kind.value,
        "stream": None,
        **narrowing_fields(made),
        **_template_fields(made),
        **_without_nulls(ttl=made.ttl, entailment=made.entailment),
        "created": format_timestamp(made.created),
        "since": format_position(made.made),
        **({} if made.begins is None else {"from": format_start(made.begins)}),
        "notifications": f"/subscriptions/{made.id}/notifications",
    }


def query_document(found: ContinuousQuery) -> dict[str, Any]:
    """A continuous query as its owner sees it."""
    semantics = {"semantics": "set" if found.distinct else "bag"}
    clock = {"time": found.time.value, "lateness": found.lateness, "late": found.late.value}
    published = {} if found.into is None else {"into": found.into, "stream": f"/streams/{found.into}"}
    return {
        "id": found.id,
        "query": found.text,
        **_without_nulls(name=found.name),
        "state": found.state.value,
        **(clock if found.windowed else semantics),
        **_without_nulls(streams=found.streams, within=found.within, span=found.span),
        **published,
        "created": format_timestamp(found.created),
        "since": format_position(found.since),
        **({} if found.begins is None else {"from": format_start(found.begins)}),
        "answers": f"/queries/{found.id}/answers",
    }


def new_subscription_document(found: Subscription, wish: SubscriptionRequest) -> dict[str, Any]:
    """The same to whoever has just made it: with the secret of its webhook, where that was made here."""
    told = subscription_document(found)
    return told if wish.webhook is None else {**told, "webhook": wish.webhook.told()}


def webhook_document(hook: Webhook) -> dict[str, Any]:
    return {"url": hook.url, "state": hook.state.value, **_without_nulls(attempts=hook.attempts)}


def lane_document(slow: Lane) -> dict[str, Any]:
    """Why a subscription is told later than others: since when, and the CPU time that an event took it then."""
    return {"name": "slow", "since": format_position(slow.since), "milliseconds_per_event": round(slow.cost * 1_000, 3)}


def template_document(found: QueryTemplate) -> dict[str, Any]:
    return {
        "name": found.name,
        "version": format_position(found.version),
        "sparql": found.sparql,
        "parameters": {name: {"type": type} for name, type in found.parameters.items()},
    }


def ontology_document(loaded: LoadedOntology) -> dict[str, Any]:
    """What is told of an ontology beside its triples."""
    return {
        "name": loaded.name,
        "version": format_position(loaded.version),
        "triples": loaded.triples,
        "classes": loaded.classes,
        "properties": loaded.properties,
    }


def _template_fields(made: Subscription) -> dict[str, Any]:
    if made.template is None:
        return {}
    name, version = made.template
    return {"template": name, "version": format_position(version), "values": dict(made.values)}


def _without_nulls(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# Bulks: many subscriptions, or queries, in one body, a line of JSON for each, and a line of the answer for each of
# these.

MEDIA_TYPE = "application/x-ndjson"

_LINE_BYTES = SUBSCRIPTION_BODY_BYTES

Requested = TypeVar("Requested")
"""What a line asks for."""


@dataclass(frozen=True)
class BulkLine:
    """A line and its number, from 1 on. `text` is None for one that is too long to be held."""

    number: int
    text: bytes | None


@dataclass
class BulkLines:
    """Puts lines together from pieces of a body. Empty ones are counted and left out."""

    _number: int = 0
    _rest: bytes = b""
    _skipping: bool = field(default=False)

    def feed(self, piece: bytes) -> Iterator[BulkLine]:
        """The lines that are complete now."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        for text in whole:
            yield from self._line(text)
        if len(self._rest) > _LINE_BYTES:
            # What comes of it until it ends is not held.
            self._skipping, self._rest = True, b""

    def end(self) -> Iterator[BulkLine]:
        """The last line, if nothing ended it."""
        if self._rest or self._skipping:
            yield from self._line(self._rest)

    def _line(self, text: bytes) -> Iterator[BulkLine]:
        self._number += 1
        long, self._skipping = self._skipping or len(text) > _LINE_BYTES, False
        if long or text.strip():
            yield BulkLine(self._number, None if long else text)


async def read_batches(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Sequence[BulkLine], None]:
    """The lines of a body, so many at a time as are made in one transaction. It stops at the limit on all lines, with
    one line too many."""
    lines, held = BulkLines(), _BulkBatch()
    async for piece in pieces:
        for line in lines.feed(piece):
            held.add(line)
            if held.full or line.number > BULK_SUBSCRIPTIONS:
                yield held.take()
            if line.number > BULK_SUBSCRIPTIONS:
                return
    for line in lines.end():
        held.add(line)
    if held.lines:
        yield held.take()


@dataclass
class _BulkBatch:
    lines: list[BulkLine] = field(default_factory=list)
    size: int = 0

    @property
    def full(self) -> bool:
        return len(self.lines) >= BULK_LINES or self.size >= BULK_BYTES

    def add(self, line: BulkLine) -> None:
        self.lines.append(line)
        self.size += len(line.text or b"")

    def take(self) -> Sequence[BulkLine]:
        taken, self.lines, self.size = self.lines, [], 0
        return taken


BulkResult = tuple[str, int] | TriplewireError
"""The id of what was made, and its position; or what is wrong with it."""


def answer_lines(
    read: Callable[[object], Requested],
    make: Callable[[Sequence[Requested | TriplewireError]], Sequence[BulkResult]],
    lines: Sequence[BulkLine],
) -> bytes:
    """Makes what can be made of the lines, each read as JSON; a line of the answer for each. It blocks."""
    outcomes = make([_parse_line(read, line) for line in lines])
    return _format_results(zip((line.number for line in lines), outcomes, strict=True))


def parse_bulk_subscription(value: object) -> SubscriptionRequest:
    """What a line asks for, for a subscription. Raises what `Wish.from_json` raises, and InvalidField."""
    found = SubscriptionRequest.from_json(value)
    if found.webhook is not None and found.webhook.fresh:
        raise InvalidField("webhook", "the answer to lines tells no secrets: give each webhook one")
    return found


async def bulk_response(request: web.Request, answer: Callable[[Sequence[BulkLine]], bytes]) -> web.StreamResponse:
    """Who sends all before reading anything must not be waited for: the answer begins when all is read."""
    with SpooledTemporaryFile(max_size=BULK_BYTES) as told:
        async with aclosing(read_batches(request.content.iter_any())) as portioned:
            async for lines in portioned:
                told.write(await asyncio.to_thread(answer, lines))
        told.seek(0)
        response = web.StreamResponse(headers={"Content-Type": MEDIA_TYPE})
        await response.prepare(request)
        while piece := told.read(CHUNK_BYTES):
            await response.write(piece)
        return response


def _parse_line(read: Callable[[object], Requested], line: BulkLine) -> Requested | TriplewireError:
    if line.number > BULK_SUBSCRIPTIONS:
        return BadRequest(f"a bulk has at most {BULK_SUBSCRIPTIONS} lines; nothing was read from here on")
    if line.text is None:
        return BodyTooLarge("the line", _LINE_BYTES)
    try:
        check_nesting(line.text)
        return read(orjson.loads(line.text))
    except orjson.JSONDecodeError as error:
        return BadRequest(f"the line is not JSON: {error}")
    except TriplewireError as error:
        return error


def _format_results(outcomes: Iterable[tuple[int, BulkResult]]) -> bytes:
    return b"".join(
        orjson.dumps(
            {"line": number, "error": describe_error(each)}
            if isinstance(each, TriplewireError)
            else {"line": number, "id": each[0], "position": format_position(each[1])},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for number, each in outcomes
    )
