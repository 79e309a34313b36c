"""Bulk requests: newline-delimited JSON, with a line of the response for each line of the body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import Final, TypeVar

import orjson
from aiohttp import web

from triplewire.config.workers import CHUNK_BYTES
from triplewire.http.resources.bodies import SUBSCRIPTION_BODY_BYTES
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, BodyTooLarge, TriplewireError
from triplewire.model.problems import describe_error
from triplewire.rdf.checks import check_nesting

BULK_LINES: Final = 2_000
"""Lines of a bulk request in one transaction: some 100 ms, for which publishers wait."""

BULK_BYTES: Final = 4 * 1024 * 1024
"""Lines of a bulk request held at once, and results held in memory; further results go to disk."""

BULK_LINES_MOST: Final = 1_000_000
"""Lines of one bulk request. Its results wait on disk until all is read: at worst some 500 MB of errors."""


NDJSON = "application/x-ndjson"
_LINE_BYTES = SUBSCRIPTION_BODY_BYTES

Requested = TypeVar("Requested")
"""A parsed line."""


@dataclass(frozen=True)
class BulkLine:
    """A line and its number, from 1. `text` is None if it is over the limit."""

    number: int
    text: bytes | None


@dataclass
class BulkLines:
    """Assembles lines from pieces of a body. Empty lines are counted and left out."""

    _number: int = 0
    _rest: bytes = b""
    _skipping: bool = field(default=False)

    def feed(self, piece: bytes) -> Iterator[BulkLine]:
        """Yield the lines that are complete now."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        for text in whole:
            yield from self._line(text)
        if len(self._rest) > _LINE_BYTES:
            # The rest of the line is not batch.
            self._skipping, self._rest = True, b""

    def end(self) -> Iterator[BulkLine]:
        """Yield the last line, if no newline ended it."""
        if self._rest or self._skipping:
            yield from self._line(self._rest)

    def _line(self, text: bytes) -> Iterator[BulkLine]:
        self._number += 1
        too_long, self._skipping = self._skipping or len(text) > _LINE_BYTES, False
        if too_long or text.strip():
            yield BulkLine(self._number, None if too_long else text)


async def read_batches(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Sequence[BulkLine], None]:
    """Yield the lines of a body, as many at a time as one transaction takes. It stops one line above the limit."""
    lines, batch = BulkLines(), _BulkBatch()
    async for piece in pieces:
        for line in lines.feed(piece):
            batch.add(line)
            if batch.full or line.number > BULK_LINES_MOST:
                yield batch.take()
            if line.number > BULK_LINES_MOST:
                return
    for line in lines.end():
        batch.add(line)
    if batch.lines:
        yield batch.take()


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
"""The id and position of a registered resource, or its error."""


def answer_lines(
    parse: Callable[[object], Requested],
    register: Callable[[Sequence[Requested | TriplewireError]], Sequence[BulkResult]],
    lines: Sequence[BulkLine],
) -> bytes:
    """Register what can be registered; a line of the response for each line. It blocks."""
    results = register([_parse_line(parse, line) for line in lines])
    return _format_results(zip((line.number for line in lines), results, strict=True))


async def bulk_response(
    request: web.Request,
    parse: Callable[[object], Requested],
    register: Callable[[Sequence[Requested | TriplewireError]], Sequence[BulkResult]],
) -> web.StreamResponse:
    """Register the lines of a body, a batch at a time. The response begins when all is read: a client that sends
    everything before it reads would wait for ever otherwise."""
    with SpooledTemporaryFile(max_size=BULK_BYTES) as answers:
        async with aclosing(read_batches(request.content.iter_any())) as batches:
            async for lines in batches:
                answers.write(await asyncio.to_thread(answer_lines, parse, register, lines))
        answers.seek(0)
        response = web.StreamResponse(headers={"Content-Type": NDJSON})
        await response.prepare(request)
        while piece := answers.read(CHUNK_BYTES):
            await response.write(piece)
        return response


def _parse_line(parse: Callable[[object], Requested], line: BulkLine) -> Requested | TriplewireError:
    if line.number > BULK_LINES_MOST:
        return BadRequest(f"a bulk request has at most {BULK_LINES_MOST} lines; nothing was read from this line on")
    if line.text is None:
        return BodyTooLarge("the line", _LINE_BYTES)
    try:
        check_nesting(line.text)
        return parse(orjson.loads(line.text))
    except orjson.JSONDecodeError as error:
        return BadRequest(f"the line is not JSON: {error}")
    except TriplewireError as error:
        return error


def _format_results(results: Iterable[tuple[int, BulkResult]]) -> bytes:
    return b"".join(
        orjson.dumps(
            {"line": number, "error": describe_error(each)}
            if isinstance(each, TriplewireError)
            else {"line": number, "id": each[0], "position": format_position(each[1])},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for number, each in results
    )
