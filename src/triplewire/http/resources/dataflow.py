"""The dataflow graph of continuous queries, and who may register a query in it.

A query must not read its own output, neither directly nor through other queries: it would never come to rest. It reads
everything that is published to its streams, so its owner must be allowed to see all of that: otherwise its answers
would show what is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from triplewire.continuous.windows.plans import plan_windows
from triplewire.model.errors import Forbidden, InvalidField
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.security import Policy, Principal, Verb, Visibility, publish_permit_of, visibility_of
from triplewire.security.principals import principal_of
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import queries_publishing_to

QUERY_STREAMS: Final = 10_000
"""Streams that a continuous query reads by way of others that publish into them: each is looked at when it is
registered, in some 50 µs, because it must not come to read what it publishes."""


# A query must not read what it publishes itself, neither directly nor by way of others: it would never come to rest.

StreamsRead = tuple[str, ...] | None
"""Names of streams; None is all of them."""


@dataclass(frozen=True)
class QueryFlow:
    """Of one query: what it reads, and into what it publishes, if it does."""

    id: str
    reads: StreamsRead
    into: str | None = None


@dataclass(frozen=True)
class DataflowGraph:
    """Those of all queries that the registry has, and of some that are about to be there. It blocks."""

    registry: Registry
    published: Callable[[str], bool]
    """Whether anything was ever published to a stream."""
    fresh: list[QueryFlow] = field(default_factory=list)

    def beside(self) -> DataflowGraph:
        """The same, with a list of those to be of its own."""
        return DataflowGraph(self.registry, self.published)

    def unknown(self, current: QueryFlow) -> str | None:
        """The first stream that it reads to which nobody ever published, and no other query does."""
        return next((each for each in current.reads or () if not self._is_known(each, current.id)), None)

    def check(self, current: QueryFlow) -> None:
        """Raises InvalidField for one that would read what it publishes; the way there is in its words."""
        way = None if current.into is None else self._way(current.into, current.reads)
        if way is not None:
            hint = "; name the streams that it reads" if current.reads is None else ""
            raise InvalidField("into", f"the query would read what it publishes: {way}{hint}")

    def _is_known(self, stream: str, but: str) -> bool:
        return self.published(stream) or any(each.id != but for each in self._into(stream))

    def _way(self, goal: str, reads: StreamsRead) -> str | None:
        """How what is published into a stream comes to a query that reads others, found against the current; None if it
        does not."""
        passed, ahead = {goal}, [(reads, "this query")]
        while ahead:
            reads, way = ahead.pop()
            if reads is None or goal in reads:
                return f"{goal} → {way} → {goal}"
            fresh = [each for each in reads if each not in passed]
            passed.update(fresh)
            if len(passed) > QUERY_STREAMS:
                raise InvalidField("into", f"more than {QUERY_STREAMS} streams lead to the query by way of others")
            ahead += [(each.reads, f"query {each.id} → {name} → {way}") for name in fresh for each in self._into(name)]
        return None

    def _into(self, stream: str) -> Iterator[QueryFlow]:
        for change in self.registry.list(queries_publishing_to(stream)):
            reads: Sequence[str] | None = (change.value or {}).get("reads")
            yield QueryFlow(change.key, None if reads is None else tuple(reads), stream)
        yield from (each for each in self.fresh if each.into == stream)


# Admissions: who may ask what across events.
#
# A continuous query is asked of all that is published to the streams that it reads. Whoever does not see all of that,
# by the streams that are granted to them and by the policy, may not ask: what is hidden would be in its answers.


def check_authorized(
    by: Principal, policy: Policy | None, reads: StreamsRead, into: str | None, background: bool
) -> None:
    """Raises Forbidden, in words that tell what would be right."""
    sight = visibility_of(by, Verb.SUBSCRIBE, policy)
    if not _sees_all(sight, reads):
        raise Forbidden(_describe_hidden(by, sight, reads), scope=Verb.SUBSCRIBE.value)
    if background:
        by.require(Verb.QUERY)
        if visibility_of(by, Verb.QUERY, policy) is not None:
            raise Forbidden(f"{by.name} does not see all of history, which the query reads outside of its windows")
    if into is not None:
        by.require(Verb.PUBLISH, into)
        permit = publish_permit_of(by, policy)
        if permit is not None and not _sees_all(permit.scope, (into,)):
            raise Forbidden(f"the policy does not let {by.name} publish whatever a query finds to {into}")


def is_authorized(query: ContinuousQuery, policy: Policy | None) -> bool:
    """Whether its owner may still ask it."""
    windows = plan_windows(query.text) if query.windowed else None
    reads, background = (query.streams, False) if windows is None else (windows.streams, windows.background)
    try:
        check_authorized(principal_of(query.owner), policy, reads, query.into, background)
    except Forbidden:
        return False
    return True


def _sees_all(sight: Visibility | None, reads: StreamsRead) -> bool:
    if sight is None:
        return True
    whole = sight.leaves_events and sight.graphs.is_all
    return whole and reads is not None and all(each in sight.streams for each in reads)


def _describe_hidden(by: Principal, sight: Visibility | None, reads: StreamsRead) -> str:
    asked = "a continuous query is asked of all that is published"
    if sight is not None and (not sight.leaves_events or not sight.graphs.is_all):
        return f"{asked}, and the policy hides some of it from {by.name}"
    if reads is None:
        return f"{asked} to any stream, and {by.name} does not see all streams: name those that it reads"
    unseen = next(each for each in reads if sight is not None and each not in sight.streams)
    return f"{asked} to the streams that it reads, and {by.name} does not see {unseen}"
