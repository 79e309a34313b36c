"""Bulks: many subscriptions, or queries, in one body, a line of JSON for each, and a line of the answer for each of
these.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import TypeVar

import orjson
from aiohttp import web

from triplewire.config import limits
from triplewire.control.wishes import Wish
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField, TriplewireError
from triplewire.problems import described
from triplewire.rdf.checks import check_nesting

MEDIA_TYPE = "application/x-ndjson"

_MOST = limits.SUBSCRIPTION_BODY_BYTES

Wanted = TypeVar("Wanted")
"""What a line asks for."""


@dataclass(frozen=True)
class Line:
    """A line and its number, from 1 on. `text` is None for one that is too long to be held."""

    number: int
    text: bytes | None


@dataclass
class Lines:
    """Puts lines together from pieces of a body. Empty ones are counted and left out."""

    _number: int = 0
    _rest: bytes = b""
    _skipping: bool = field(default=False)

    def feed(self, piece: bytes) -> Iterator[Line]:
        """The lines that are complete now."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        for text in whole:
            yield from self._line(text)
        if len(self._rest) > _MOST:
            # What comes of it until it ends is not held.
            self._skipping, self._rest = True, b""

    def end(self) -> Iterator[Line]:
        """The last line, if nothing ended it."""
        if self._rest or self._skipping:
            yield from self._line(self._rest)

    def _line(self, text: bytes) -> Iterator[Line]:
        self._number += 1
        long, self._skipping = self._skipping or len(text) > _MOST, False
        if long or text.strip():
            yield Line(self._number, None if long else text)


async def portions(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Sequence[Line], None]:
    """The lines of a body, so many at a time as are made in one transaction. It stops at the limit on all lines, with
    one line too many."""
    lines, held = Lines(), _Portion()
    async for piece in pieces:
        for line in lines.feed(piece):
            held.add(line)
            if held.full or line.number > limits.BULK_SUBSCRIPTIONS:
                yield held.take()
            if line.number > limits.BULK_SUBSCRIPTIONS:
                return
    for line in lines.end():
        held.add(line)
    if held.lines:
        yield held.take()


@dataclass
class _Portion:
    lines: list[Line] = field(default_factory=list)
    size: int = 0

    @property
    def full(self) -> bool:
        return len(self.lines) >= limits.BULK_LINES or self.size >= limits.BULK_BYTES

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.size += len(line.text or b"")

    def take(self) -> Sequence[Line]:
        taken, self.lines, self.size = self.lines, [], 0
        return taken


Outcome = tuple[str, int] | TriplewireError
"""The id of what was made, and its position; or what is wrong with it."""


def answered(
    read: Callable[[object], Wanted],
    make: Callable[[Sequence[Wanted | TriplewireError]], Sequence[Outcome]],
    lines: Sequence[Line],
) -> bytes:
    """Makes what can be made of the lines, each read as JSON; a line of the answer for each. It blocks."""
    outcomes = make([_wanted(read, line) for line in lines])
    return _told(zip((line.number for line in lines), outcomes, strict=True))


def wish(value: object) -> Wish:
    """What a line asks for, for a subscription. Raises what `Wish.from_json` raises, and Unfit."""
    found = Wish.from_json(value)
    if found.webhook is not None and found.webhook.fresh:
        raise InvalidField("webhook", "the answer to lines tells no secrets: give each webhook one")
    return found


async def reply(request: web.Request, answer: Callable[[Sequence[Line]], bytes]) -> web.StreamResponse:
    """Who sends all before reading anything must not be waited for: the answer begins when all is read."""
    with SpooledTemporaryFile(max_size=limits.BULK_BYTES) as told:
        async with aclosing(portions(request.content.iter_any())) as portioned:
            async for lines in portioned:
                told.write(await asyncio.to_thread(answer, lines))
        told.seek(0)
        response = web.StreamResponse(headers={"Content-Type": MEDIA_TYPE})
        await response.prepare(request)
        while piece := told.read(limits.CHUNK_BYTES):
            await response.write(piece)
        return response


def _wanted(read: Callable[[object], Wanted], line: Line) -> Wanted | TriplewireError:
    if line.number > limits.BULK_SUBSCRIPTIONS:
        return BadRequest(f"a bulk has at most {limits.BULK_SUBSCRIPTIONS} lines; nothing was read from here on")
    if line.text is None:
        return BodyTooLarge("the line", _MOST)
    try:
        check_nesting(line.text)
        return read(orjson.loads(line.text))
    except orjson.JSONDecodeError as error:
        return BadRequest(f"the line is not JSON: {error}")
    except TriplewireError as error:
        return error


def _told(outcomes: Iterable[tuple[int, Outcome]]) -> bytes:
    return b"".join(
        orjson.dumps(
            {"line": number, "error": described(each)}
            if isinstance(each, TriplewireError)
            else {"line": number, "id": each[0], "position": format_position(each[1])},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for number, each in outcomes
    )
