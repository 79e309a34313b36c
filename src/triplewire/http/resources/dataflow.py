"""The dataflow graph of continuous queries, and who may register a query in it.

A query must not read its own output, neither directly nor through other queries: it would never come to rest. It reads
everything that is published to its streams, so its owner must be allowed to see all of that: otherwise its answers
would show what is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from triplewire.continuous.windows.plans import plan_windows
from triplewire.model.errors import Forbidden, InvalidField
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.security import Policy, Principal, Verb, Visibility, publish_permit_of, visibility_of
from triplewire.security.principals import principal_of
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import queries_publishing_to

QUERY_STREAMS: Final = 10_000
"""Streams that a continuous query reads through other queries. Each costs some 50 µs when the query is registered,
since a query must not read what it publishes."""

StreamsRead = tuple[str, ...] | None
"""Names of streams; None means all streams."""


@dataclass(frozen=True)
class QueryFlow:
    """The streams that one query reads, and the stream that it publishes into, if it does."""

    id: str
    reads: StreamsRead
    into: str | None = None


@dataclass(frozen=True)
class DataflowGraph:
    """The flows of all registered queries, and of drafts that are about to be registered. It blocks."""

    registry: Registry
    published: Callable[[str], bool]
    """Whether a stream ever had events."""

    def find_unknown(self, flow: QueryFlow, drafts: Sequence[QueryFlow] = ()) -> str | None:
        """The first stream that it reads that never had events, and into which no other query publishes."""
        return next((each for each in flow.reads or () if not self._is_known(each, flow.id, drafts)), None)

    def check(self, flow: QueryFlow, drafts: Sequence[QueryFlow] = ()) -> None:
        """Raises InvalidField, with the cycle, for a query that would read what it publishes."""
        cycle = None if flow.into is None else self._find_cycle(flow.into, flow.reads, drafts)
        if cycle is not None:
            hint = "; name the streams that it reads" if flow.reads is None else ""
            raise InvalidField("into", f"the query would read what it publishes: {cycle}{hint}")

    def _is_known(self, stream: str, id: str, drafts: Sequence[QueryFlow]) -> bool:
        return self.published(stream) or any(each.id != id for each in self._publishers(stream, drafts))

    def _find_cycle(self, goal: str, reads: StreamsRead, drafts: Sequence[QueryFlow]) -> str | None:
        """The path from a stream through other queries to one that reads `reads`, searched backwards; None without."""
        passed, ahead = {goal}, [(reads, "this query")]
        while ahead:
            reads, path = ahead.pop()
            if reads is None or goal in reads:
                return f"{goal} → {path} → {goal}"
            fresh = [each for each in reads if each not in passed]
            passed.update(fresh)
            if len(passed) > QUERY_STREAMS:
                raise InvalidField("into", f"the query reads more than {QUERY_STREAMS} streams through other queries")
            publishers = ((name, each) for name in fresh for each in self._publishers(name, drafts))
            ahead += [(each.reads, f"query {each.id} → {name} → {path}") for name, each in publishers]
        return None

    def _publishers(self, stream: str, drafts: Sequence[QueryFlow]) -> Iterator[QueryFlow]:
        for change in self.registry.list(queries_publishing_to(stream)):
            reads: Sequence[str] | None = (change.value or {}).get("reads")
            yield QueryFlow(change.key, None if reads is None else tuple(reads), stream)
        yield from (each for each in drafts if each.into == stream)


def check_authorized(
    by: Principal, policy: Policy | None, reads: StreamsRead, into: str | None, background: bool
) -> None:
    """Raises Forbidden, with what would be right."""
    visibility = visibility_of(by, Verb.SUBSCRIBE, policy)
    if not _sees_all(visibility, reads):
        raise Forbidden(_describe_hidden(by, visibility, reads), scope=Verb.SUBSCRIBE.value)
    if background:
        by.require(Verb.QUERY)
        if visibility_of(by, Verb.QUERY, policy) is not None:
            raise Forbidden(f"{by.name} may not see all of history, which the query reads outside of its windows")
    if into is not None:
        by.require(Verb.PUBLISH, into)
        permit = publish_permit_of(by, policy)
        if permit is not None and not _sees_all(permit.scope, (into,)):
            raise Forbidden(f"the policy does not let {by.name} publish all answers of a query to {into}")


def is_authorized(query: ContinuousQuery, policy: Policy | None) -> bool:
    """Whether its owner may still have this query."""
    windows = plan_windows(query.text) if query.windowed else None
    reads, background = (query.streams, False) if windows is None else (windows.streams, windows.reads_static)
    try:
        check_authorized(principal_of(query.owner), policy, reads, query.into, background)
    except Forbidden:
        return False
    return True


def _sees_all(visibility: Visibility | None, reads: StreamsRead) -> bool:
    if visibility is None:
        return True
    whole = visibility.leaves_events and visibility.graphs.is_all
    return whole and reads is not None and all(each in visibility.streams for each in reads)


def _describe_hidden(by: Principal, visibility: Visibility | None, reads: StreamsRead) -> str:
    asked = "a continuous query reads all that is published"
    if visibility is not None and (not visibility.leaves_events or not visibility.graphs.is_all):
        return f"{asked}, and the policy hides some of it from {by.name}"
    if reads is None:
        return f"{asked} to any stream, and {by.name} may not see all streams: name those that it reads"
    unseen = next(each for each in reads if visibility is not None and each not in visibility.streams)
    return f"{asked} to the streams that it reads, and {by.name} may not see {unseen}"
