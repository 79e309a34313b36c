"""Delivery of one webhook, message after message: each is sent once the one before was accepted or became a dead
letter.

A message is a request body with an id by which a repeat is recognized, and is signed anew for each attempt (Standard
Webhooks, or `X-Hub-Signature` for WebSub).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from triplewire.config.tracing import TraceParent
from triplewire.http.delivery.merger import Merger
from triplewire.http.delivery.topics import Subscribable
from triplewire.http.formats.messages import EntryPieces, MessageFormat, Notification, ResumeToken, gap_notice
from triplewire.http.formats.rdf import NQUADS_FORMAT, TRIG_FORMAT
from triplewire.http.formats.sse import NDJSON, JsonLinesFormat
from triplewire.http.webhooks.calls import WEBHOOK_PAUSE_FIRST, CallResult, RetrySchedule
from triplewire.http.webhooks.context import DeliveryContext
from triplewire.http.webhooks.dead_letters import DEAD_LETTERS
from triplewire.model import END, format_position
from triplewire.model.errors import NotFound, TriplewireError
from triplewire.security.webhooks import hub_signature, signature_headers
from triplewire.storage.webhooks import DeadLetter, Webhook, WebhookDialect, WebhookProgress, WebhookState

# Posts: messages as bodies of requests, each by itself.


class WebhookFormat(JsonLinesFormat):
    """A JSON object with `type`, `timestamp` and `data`, as Standard Webhooks has it; `data` is what lines of JSON say.
    What only says how far it is, is not sent."""

    name = "json"
    media_type = "application/json"
    comment = b""

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        return self._told(b"event", pieces.time(position), pieces.members(position))

    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        time = pieces.time(notification.position)
        return self._told(b"notification", time, notification.members(pieces))

    def position(self, position: int) -> bytes:
        return b""

    def line(self, type: bytes, rest: bytes) -> bytes:
        return b'{"type":"%b","data":{%b}}\n' % (type, rest)

    def _told(self, type: bytes, time: str, members: bytes) -> bytes:
        return b'{"type":"%b","timestamp":"%b","data":{%b}}\n' % (type, time.encode(), members)


WEBHOOK_JSON = WebhookFormat()

TOPIC_FORMATS: dict[str, MessageFormat] = {each.name: each for each in (NQUADS_FORMAT, TRIG_FORMAT, NDJSON)}
"""Formats of streams that are sent piece by piece, each of which is a document."""

WEBHOOK_FORMATS: dict[str, MessageFormat] = {WEBHOOK_JSON.name: WEBHOOK_JSON} | {
    name: each.with_tokens for name, each in TOPIC_FORMATS.items()
}
"""By the names under which hooks have them; those of streams in the form in which nothing says only how far it is."""


# Envelopes: a message as it is sent to a target, with an id by which a repeat is known, and signed each time anew.

_MESSAGE_PREFIXES = (b'{"type":"event"', b'{"type":"notification"')
"""How those begin that are not about the delivery itself; there is one at a position, at most."""


@dataclass(frozen=True)
class WebhookMessage:
    """One message of one hook."""

    id: str
    body: bytes


def split_messages(hook: Webhook, position: int, part: bytes) -> Sequence[WebhookMessage]:
    """What is sent of what is told at a position: as a rule one message, none where it only says how far it is, and two
    where it is told before that something is kept no more."""
    id = f"{hook.id}_{format_position(position)}"
    if WEBHOOK_FORMATS[hook.format] is not WEBHOOK_JSON:
        return [WebhookMessage(id, part)] if part.strip() else []
    lines = enumerate(part.splitlines())
    return [
        WebhookMessage(id if each.startswith(_MESSAGE_PREFIXES) else f"{id}_{number}", each) for number, each in lines
    ]


def sign_headers(hook: Webhook, secret: str | None, envelope: WebhookMessage, now: int) -> dict[str, str]:
    """Of one call, at a time in microseconds."""
    said = {"Content-Type": WEBHOOK_FORMATS[hook.format].media_type}
    if hook.dialect is WebhookDialect.WEBSUB:
        said["Link"] = f'<{hook.hub}>; rel="hub", <{hook.topic}>; rel="self"'
        return said if secret is None else {**said, "X-Hub-Signature": hub_signature(secret, envelope.body)}
    return {**said, **signature_headers(secret or "", envelope.id, now // 1_000_000, envelope.body)}


logger = logging.getLogger(__name__)


class DeliveryEnded(Exception):
    """Nothing more is delivered, and what becomes of the hook."""

    def __init__(self, state: WebhookState) -> None:
        super().__init__(state)
        self.state = state


class Deliverer:
    """Everything up to its place was taken or parked. While a message is tried again, nothing else is held for it."""

    def __init__(self, hook: Webhook, office: DeliveryContext, place: WebhookProgress | None) -> None:
        self.hook = hook
        self._office = office
        self._position = None if place is None else place.position
        self._parked = 0 if place is None else place.parked
        self._secret: str | None = None
        self._idle: Merger | None = None
        """Where it waits for what comes next."""
        self._turn = asyncio.Lock()
        """One call at a time, whether for the first time or again."""
        self._nudged = asyncio.Event()

    async def run(self) -> WebhookState:
        """Until there is nothing more to do; what becomes of the hook then."""
        self._secret = await self._office.workers.run(self._office.books.secret, self.hook.id)
        while True:
            before = self._position
            try:
                await self._read()
            except DeliveryEnded as over:
                return over.state
            except NotFound:
                return WebhookState.ENDED
            except TriplewireError as error:
                logger.warning("hook %s: %s; trying again", self.hook.id, error)
            if self._position == before:
                await self._office.outbound.sleep(WEBHOOK_PAUSE_FIRST)

    @property
    def leased(self) -> bool:
        """Whether it has a lease that is not over."""
        return self._office.clock.now() < self.hook.until < END

    def renew(self, hook: Webhook, secret: str | None) -> None:
        """It was said again, perhaps with another end and another secret."""
        self.hook, self._secret = hook, secret

    def rest(self) -> None:
        """Note how far it is where nothing came that was to be delivered."""
        if self._idle is not None:
            self._arrive(self._idle.reached)

    async def replay(self, positions: Sequence[int]) -> None:
        """Deliver letters again, each once, until one is not taken. What is being tried is tried now."""
        self._nudged.set()
        books, run = self._office.books, self._office.workers.run
        for number, position in enumerate(positions):
            taken = False
            with suppress(TriplewireError, DeliveryEnded):
                taken = await self._again(position)
            if not taken:
                return await run(books.done, self.hook.id, positions[number:])
            await run(books.remove, self.hook.id, [position])
            self._parked -= 1

    async def _read(self) -> None:
        """From its place on, until it is sent away or something was not taken at once."""
        subject = await self._office.find(self.hook, self._position)
        reader = Merger(ResumeToken(subject.after), WEBHOOK_FORMATS[self.hook.format])
        async with subject.hold():
            reader.add(subject)
            try:
                await self._follow(subject, reader)
            finally:
                self._idle = None
                reader.close()

    async def _follow(self, subject: Subscribable[Any], reader: Merger) -> None:
        if subject.earliest is not None:
            lost = gap_notice(WEBHOOK_FORMATS[self.hook.format], subject.after, subject.earliest)
            await self._deliver(subject.after, lost, reader)
        while reader.sent_away is None and len(reader):
            self._idle = reader
            batch = await reader.next()
            self._idle = None
            for mark, part in batch.messages:
                if not await self._deliver(mark.position, part, reader):
                    return
            self._arrive(batch.token.position)
            if batch.ends:
                raise DeliveryEnded(WebhookState.ENDED)

    async def _deliver(self, position: int, part: bytes, reader: Merger) -> bool:
        """What is told at a position; whether it was all taken at once."""
        smooth = [await self._sent(position, each, reader.close) for each in split_messages(self.hook, position, part)]
        self._arrive(position)
        return all(smooth)

    async def _sent(self, position: int, envelope: WebhookMessage, release: Callable[[], None]) -> bool:
        """Until it is taken or parked; whether it was taken at once."""
        failures, schedule = 0, self._schedule()
        trail = await self._office.trails.of(position)
        while not (answer := await self._attempt(envelope, trail)).taken:
            release()
            failures += 1
            if schedule.over(failures) and self._parked < DEAD_LETTERS:
                await self._park(position, failures, answer)
                return False
            self._office.notes.note(self.hook.id, WebhookProgress(self._position or 0, failures, answer.reason))
            await self._pause(schedule.pause(failures, answer.retry_after))
        return not failures

    async def _attempt(self, envelope: WebhookMessage, trail: TraceParent | None) -> CallResult:
        """Raises Over where the lease is over, or the target says that it is gone."""
        office = self._office
        async with self._turn, office.gates.through(urlsplit(self.hook.url).netloc) as gate:
            if not self.leased and self.hook.until < END:
                raise DeliveryEnded(WebhookState.ENDED)
            said = sign_headers(self.hook, self._secret, envelope, office.clock.now())
            with office.trails.call(trail) as traced:
                answer = await office.caller.post(self.hook.url, envelope.body, {**said, **traced})
            gate.ill = answer.hung
        office.metrics.hook_calls.labels("taken" if answer.taken else "refused" if answer.status else "failed").inc()
        if answer.gone:
            raise DeliveryEnded(WebhookState.GONE)
        return answer

    async def _park(self, position: int, attempts: int, answer: CallResult) -> None:
        now = self._office.clock.now()
        await self._office.notes.park(DeadLetter(self.hook.id, position, attempts, answer.reason, answer.status, now))
        self._parked += 1
        self._office.metrics.hooks_parked.inc()

    async def _again(self, position: int) -> bool:
        """Whether what was told at a position is taken now. Raises what `find` and histories raise."""
        part, trail = await self._told(position), await self._office.trails.of(position)
        sent = [await self._attempt(each, trail) for each in split_messages(self.hook, position, part)]
        return bool(part) and all(each.taken for each in sent)

    async def _told(self, position: int) -> bytes:
        """What was told at a position; nothing where that is kept no more, or was erased."""
        cursor = position - 1
        subject = await self._office.find(self.hook, cursor)
        while cursor < position:
            frames, reached = await subject.history.step(cursor, WEBHOOK_FORMATS[self.hook.format])
            for at, part in zip(frames.positions, frames.parts, strict=True):
                if at == position:
                    return part
            if reached <= cursor:
                break
            cursor = reached
        return b""

    async def _pause(self, seconds: float) -> None:
        """Shorter where somebody asks for it."""
        self._nudged.clear()
        waits = [asyncio.ensure_future(each) for each in (self._office.outbound.sleep(seconds), self._nudged.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _arrive(self, position: int) -> None:
        if position > (self._position or -1):
            self._position = position
            self._office.notes.note(self.hook.id, WebhookProgress(position))

    def _schedule(self) -> RetrySchedule:
        usual = self._office.outbound.schedule
        attempts = usual.attempts if self.hook.attempts is None else self.hook.attempts
        return RetrySchedule(attempts, usual.first, usual.longest, usual.chance)
