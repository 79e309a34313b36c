"""The `ongoing` query: events and the registry in, answers of continuous queries out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.config import limits
from triplewire.model import Event
from triplewire.ongoing.places import Turn
from triplewire.pipeline.books import Books, Course
from triplewire.pipeline.checkpoints import Checkpoint
from triplewire.pipeline.moments import moments_source
from triplewire.pipeline.queries import Streaming, Work, start
from triplewire.pipeline.source import Batching
from triplewire.storage.log.ports import Log, Publication
from triplewire.storage.registry.subscriptions import QUERY

ONGOING = "ongoing"
"""The name of the query."""


def start_ongoing(work: Work, course: Course) -> StreamingQuery | None:
    """Every event against every continuous query; None as long as there are none."""
    queries = work.registry.list(QUERY, limit=1)
    if not queries:
        return None
    checkpoint = Checkpoint(work.checkpoints / ONGOING)
    outbox = cache(work.ports.open_ongoing)
    after = outbox("").head() or queries[0].position - 1
    batching = Batching(after, work.cores, limits.ONGOING_EVENTS, limits.ONGOING_TEXT_BYTES)
    streaming = Streaming(ONGOING, checkpoint, batching, course.interval)
    books = Books(work, course)

    def deliver(entries: DataFrame, number: int) -> None:
        turn = Turn(number, checkpoint.upto(number), checkpoint.time(number))
        before = checkpoint.upto(number - 1) if number else after
        outcome = books.joins(checkpoint.id, entries, turn, before)
        publish(work.log, [*outcome.events, *books.windows(checkpoint.id, entries, turn, before)])
        outbox(checkpoint.id).write(number, turn.upto, outcome.matches)
        books.forget(checkpoint.id)
        work.ongoing.update(books.told(turn))

    return start(work, streaming, deliver, moments_source(work.ports.open_log, course.path / "due"))


def publish(log: Log, events: Sequence[tuple[str, Event]]) -> None:
    """Append answers to the streams that they are for. Those of a batch that is done again are there already, and are
    not stored twice: they have ids of their own."""
    ordered = sorted(events, key=itemgetter(0))
    publications = [
        Publication(stream, [event for _, event in found], given=frozenset(event.id for _, event in found))
        for stream, found in ((stream, list(group)) for stream, group in groupby(ordered, key=itemgetter(0)))
    ]
    if publications:
        log.append(publications)
