"""Delivery of webhooks: the scheduler of one edge, of all that share a store, holds the lease and runs a deliverer for
each webhook that is on.

Messages of a webhook are sent one after the other: each once the one before was accepted or became a dead letter. A
message is a request body with an id by which a repeat is recognized, and is signed anew for each attempt (Standard
Webhooks, or `X-Hub-Signature` for WebSub).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final
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
from triplewire.model import END, START, format_position
from triplewire.model.errors import NotFound, TriplewireError
from triplewire.security.webhooks import hub_signature, signature_headers
from triplewire.storage.registry.ports import Registry
from triplewire.storage.webhooks import (
    WEBHOOK,
    DeadLetter,
    Webhook,
    WebhookDialect,
    WebhookProgress,
    WebhookState,
    webhook_from_change,
    webhook_to_value,
)

WEBHOOK_PROGRESS_SECONDS: Final = 30.0
"""Seconds between two writes of the positions of idle webhooks, so that events that they did not need are not reported
as lost when the log drops them."""

logger = logging.getLogger(__name__)


class WebhookFormat(JsonLinesFormat):
    """A JSON object with `type`, `timestamp` and `data` (Standard Webhooks); `data` is as in lines of JSON. Messages
    with only a position are not sent."""

    name = "json"
    media_type = "application/json"
    comment = b""

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        return self._message(b"event", pieces.time(position), pieces.members(position))

    def notification(self, pieces: EntryPieces, notification: Notification) -> bytes:
        return self._message(b"notification", pieces.time(notification.position), notification.members(pieces))

    def position(self, position: int) -> bytes:
        return b""

    def line(self, type: bytes, rest: bytes) -> bytes:
        return b'{"type":"%b","data":{%b}}\n' % (type, rest)

    def _message(self, type: bytes, time: str, members: bytes) -> bytes:
        return b'{"type":"%b","timestamp":"%b","data":{%b}}\n' % (type, time.encode(), members)


WEBHOOK_JSON = WebhookFormat()

TOPIC_FORMATS: dict[str, MessageFormat] = {each.name: each for each in (NQUADS_FORMAT, TRIG_FORMAT, NDJSON)}
"""Formats of streams in which each message is a document."""

WEBHOOK_FORMATS: dict[str, MessageFormat] = {WEBHOOK_JSON.name: WEBHOOK_JSON} | {
    name: each.with_tokens for name, each in TOPIC_FORMATS.items()
}
"""Formats by the names that webhooks store; those of streams have no messages with only a position."""


_MESSAGE_PREFIXES = (b'{"type":"event"', b'{"type":"notification"')
"""The beginning of messages about events; there is one at a position, at most."""


@dataclass(frozen=True)
class WebhookMessage:
    """A request body, with the id by which a repeat is recognized."""

    id: str
    body: bytes


def split_messages(hook: Webhook, position: int, part: bytes) -> Sequence[WebhookMessage]:
    """The messages at a position: as a rule one; none if it has only a position, and two if a gap comes before it."""
    id = f"{hook.id}_{format_position(position)}"
    if WEBHOOK_FORMATS[hook.format] is not WEBHOOK_JSON:
        return [WebhookMessage(id, part)] if part.strip() else []
    lines = enumerate(part.splitlines())
    return [
        WebhookMessage(id if each.startswith(_MESSAGE_PREFIXES) else f"{id}_{number}", each) for number, each in lines
    ]


def sign_headers(hook: Webhook, secret: str | None, envelope: WebhookMessage, now: int) -> dict[str, str]:
    """The headers of one call; `now` is in microseconds."""
    headers = {"Content-Type": WEBHOOK_FORMATS[hook.format].media_type}
    if hook.dialect is WebhookDialect.WEBSUB:
        headers["Link"] = f'<{hook.hub}>; rel="hub", <{hook.topic}>; rel="self"'
        return headers if secret is None else {**headers, "X-Hub-Signature": hub_signature(secret, envelope.body)}
    return {**headers, **signature_headers(secret or "", envelope.id, now // 1_000_000, envelope.body)}


class DeliveryEnded(Exception):
    """Delivery has ended; `state` is the final state of the webhook."""

    def __init__(self, state: WebhookState) -> None:
        super().__init__(state)
        self.state = state


class Deliverer:
    """Delivers the messages of one webhook. Everything up to its position was accepted or became a dead letter. While a
    message is retried, no others are held in memory."""

    def __init__(self, hook: Webhook, context: DeliveryContext, progress: WebhookProgress | None) -> None:
        self.hook = hook
        self._context = context
        self._position = None if progress is None else progress.position
        self._parked = 0 if progress is None else progress.parked
        self._secret: str | None = None
        self._idle: Merger | None = None
        """Set while it waits for the next message."""
        self._lock = asyncio.Lock()
        """Held during a call, of a delivery or a replay."""
        self._hurry = asyncio.Event()

    async def run(self) -> WebhookState:
        """Deliver until the webhook ends; its final state."""
        self._secret = await self._context.workers.run(self._context.store.secret, self.hook.id)
        while True:
            before = self._position
            try:
                await self._read()
            except DeliveryEnded as over:
                return over.state
            except NotFound:
                return WebhookState.ENDED
            except TriplewireError as error:
                logger.warning("webhook %s: %s; trying again", self.hook.id, error)
            if self._position == before:
                await self._context.outbound.sleep(WEBHOOK_PAUSE_FIRST)

    @property
    def leased(self) -> bool:
        """Whether it has a lease that has not expired."""
        return self._context.clock.now() < self.hook.until < END

    def renew(self, hook: Webhook, secret: str | None) -> None:
        """Apply a registration that was repeated, perhaps with another expiry and secret."""
        self.hook, self._secret = hook, secret

    def note_idle(self) -> None:
        """Store the position that it read up to while there was nothing to deliver."""
        if self._idle is not None:
            self._advance(self._idle.position)

    async def replay(self, positions: Sequence[int]) -> None:
        """Deliver dead letters again, each once, until one is not accepted. A pending retry is made at once."""
        self._hurry.set()
        store, run = self._context.store, self._context.workers.run
        for number, position in enumerate(positions):
            accepted = False
            with suppress(TriplewireError, DeliveryEnded):
                accepted = await self._redeliver(position)
            if not accepted:
                return await run(store.end_redelivery, self.hook.id, positions[number:])
            await run(store.remove, self.hook.id, [position])
            self._parked -= 1

    async def _read(self) -> None:
        """Read from its position on, until the source ends or a message was not accepted at once."""
        subject = await self._context.find(self.hook, self._position)
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
            for token, part in batch.messages:
                if not await self._deliver(token.position, part, reader):
                    return
            self._advance(batch.token.position)
            if batch.ends:
                raise DeliveryEnded(WebhookState.ENDED)

    async def _deliver(self, position: int, part: bytes, reader: Merger) -> bool:
        """Send the messages at a position; whether all were accepted at once."""
        accepted = [
            await self._send(position, each, reader.close) for each in split_messages(self.hook, position, part)
        ]
        self._advance(position)
        return all(accepted)

    async def _send(self, position: int, envelope: WebhookMessage, release: Callable[[], None]) -> bool:
        """Send a message until it is accepted or becomes a dead letter; whether it was accepted at once."""
        failures, schedule = 0, self._schedule()
        trace = await self._context.traces.find(position)
        while not (answer := await self._attempt(envelope, trace)).accepted:
            release()
            failures += 1
            if schedule.is_over(failures) and self._parked < DEAD_LETTERS:
                await self._park(position, failures, answer)
                return False
            self._context.progress.note(self.hook.id, WebhookProgress(self._position or 0, failures, answer.reason))
            await self._pause(schedule.pause(failures, answer.retry_after))
        return not failures

    async def _attempt(self, envelope: WebhookMessage, trace: TraceParent | None) -> CallResult:
        """Raises DeliveryEnded if the lease expired, or the target responds that it is gone."""
        context = self._context
        async with self._lock, context.limit.enter(urlsplit(self.hook.url).netloc) as target:
            if not self.leased and self.hook.until < END:
                raise DeliveryEnded(WebhookState.ENDED)
            headers = sign_headers(self.hook, self._secret, envelope, context.clock.now())
            with context.traces.call(trace) as traced:
                answer = await context.caller.post(self.hook.url, envelope.body, {**headers, **traced})
            target.failing = answer.unanswered
        context.metrics.webhook_calls.labels(
            "taken" if answer.accepted else "refused" if answer.status else "failed"
        ).inc()
        if answer.gone:
            raise DeliveryEnded(WebhookState.GONE)
        return answer

    async def _park(self, position: int, attempts: int, answer: CallResult) -> None:
        now = self._context.clock.now()
        await self._context.progress.park(
            DeadLetter(self.hook.id, position, attempts, answer.reason, answer.status, now)
        )
        self._parked += 1
        self._context.metrics.dead_letters.inc()

    async def _redeliver(self, position: int) -> bool:
        """Whether the messages at a position are accepted now. Raises what `find` and histories raise."""
        part, trace = await self._read_again(position), await self._context.traces.find(position)
        sent = [await self._attempt(each, trace) for each in split_messages(self.hook, position, part)]
        return bool(part) and all(each.accepted for each in sent)

    async def _read_again(self, position: int) -> bytes:
        """The messages at a position; none if they are no longer retained, or erased."""
        cursor = position - 1
        subject = await self._context.find(self.hook, cursor)
        while cursor < position:
            frames, end = await subject.history.step(cursor, WEBHOOK_FORMATS[self.hook.format])
            for at, part in zip(frames.positions, frames.parts, strict=True):
                if at == position:
                    return part
            if end <= cursor:
                break
            cursor = end
        return b""

    async def _pause(self, seconds: float) -> None:
        """Sleep; a replay ends the pause."""
        self._hurry.clear()
        waits = [asyncio.ensure_future(each) for each in (self._context.outbound.sleep(seconds), self._hurry.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _advance(self, position: int) -> None:
        if position > (self._position or -1):
            self._position = position
            self._context.progress.note(self.hook.id, WebhookProgress(position))

    def _schedule(self) -> RetrySchedule:
        usual = self._context.outbound.schedule
        return usual if self.hook.attempts is None else replace(usual, attempts=self.hook.attempts)


class Scheduler:
    """Delivers the webhooks of all edges over the same stores, while it holds the lease."""

    def __init__(self, context: DeliveryContext, registry: Registry) -> None:
        self._context = context
        self._registry = registry
        self._seen: int = START
        self._progress: Mapping[str, WebhookProgress] = {}
        self._deliverers: dict[str, tuple[Deliverer, asyncio.Task[None]]] = {}
        self._replays: dict[str, asyncio.Task[None]] = {}
        self._noted = context.clock.ticks()

    def __len__(self) -> int:
        """The number of webhooks that are delivered here."""
        return len(self._deliverers)

    async def run(self) -> None:
        """Wait for the lease, then deliver until cancelled. A step that fails is repeated a little later."""
        while not await self._context.workers.run(self._context.store.acquire):
            await asyncio.sleep(self._context.outbound.poll)
        progress = asyncio.create_task(self._context.progress.run())
        try:
            while True:
                await self._try()
                await asyncio.sleep(self._context.outbound.poll)
        finally:
            await self._stop(progress)

    async def step(self) -> None:
        """Start, renew and stop deliverers as the registry changed, and start requested replays."""
        changes = await self._context.workers.run(self._registry.list, WEBHOOK, after=self._seen)
        if self._seen == START and changes:
            self._progress = await self._context.workers.run(self._context.store.progress)
        for change in changes:
            await self._take(webhook_from_change(change))
            self._seen = change.position
        self._context.metrics.webhooks.set(len(self._deliverers))
        if self._deliverers:
            await self._replay()
            self._note_idle()

    async def _try(self) -> None:
        try:
            await self.step()
        except TriplewireError as error:
            logger.warning("webhooks could not be checked; trying again: %s", error)
            self._context.metrics.poll_failures.inc()

    async def _take(self, hook: Webhook) -> None:
        known = self._deliverers.get(hook.id)
        if hook.state is WebhookState.ON and known is not None:
            await self._renew(known[0], hook)
        elif hook.state is WebhookState.ON:
            deliverer = Deliverer(hook, self._context, self._progress.get(hook.id))
            self._deliverers[hook.id] = deliverer, asyncio.create_task(self._deliver(deliverer))
        elif known is not None:
            known[1].cancel()
            await asyncio.wait([known[1]])
        if hook.state is WebhookState.ENDED:
            await self._settle(hook, WebhookState.ENDED)

    async def _deliver(self, deliverer: Deliverer) -> None:
        try:
            while (state := await deliverer.run()) is WebhookState.ENDED and await self._is_renewed(deliverer):
                pass
            await self._settle(deliverer.hook, state)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("webhook %s is not delivered any more until this edge restarts", deliverer.hook.id)
        finally:
            self._deliverers.pop(deliverer.hook.id, None)

    async def _is_renewed(self, deliverer: Deliverer) -> bool:
        """Whether its lease was renewed just when it ended, which this edge may not have read yet."""
        change = await self._context.workers.run(self._registry.get, WEBHOOK, deliverer.hook.id)
        if change is not None and (hook := webhook_from_change(change)).state is WebhookState.ON:
            await self._renew(deliverer, hook)
        return deliverer.leased

    async def _renew(self, deliverer: Deliverer, hook: Webhook) -> None:
        deliverer.renew(hook, await self._context.workers.run(self._context.store.secret, hook.id))

    async def _settle(self, hook: Webhook, state: WebhookState) -> None:
        """Store the final state of a webhook."""
        self._context.progress.drop(hook.id)
        await self._context.workers.run(self._write, hook, state)

    def _write(self, hook: Webhook, state: WebhookState) -> None:
        if state is WebhookState.GONE:
            self._registry.put([(WEBHOOK, hook.id, webhook_to_value(replace(hook, state=state)))])
        else:
            self._registry.put([(WEBHOOK, hook.id, None)])
            self._context.store.forget(hook.id)

    async def _replay(self) -> None:
        for hook, positions in (await self._context.workers.run(self._context.store.redeliveries)).items():
            known = self._deliverers.get(hook)
            if known is not None and hook not in self._replays:
                task = self._replays[hook] = asyncio.create_task(known[0].replay(positions))
                task.add_done_callback(lambda _, hook=hook: self._replays.pop(hook, None))  # type: ignore[misc]

    def _note_idle(self) -> None:
        now = self._context.clock.ticks()
        if now - self._noted >= WEBHOOK_PROGRESS_SECONDS:
            self._noted = now
            for deliverer, _ in tuple(self._deliverers.values()):
                deliverer.note_idle()

    async def _stop(self, progress: asyncio.Task[None]) -> None:
        tasks = [*(task for _, task in self._deliverers.values()), *self._replays.values(), progress]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TriplewireError):
            await self._context.progress.flush()
        await self._context.workers.run(self._context.store.release)
