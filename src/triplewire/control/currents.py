"""Currents: which streams continuous queries read, and which they publish into.

A query must not read what it publishes itself, neither directly nor by way of others: it would never come to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from triplewire.config import limits
from triplewire.model.errors import InvalidField
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import queries_publishing_to

Reads = tuple[str, ...] | None
"""Names of streams; None is all of them."""


@dataclass(frozen=True)
class Current:
    """Of one query: what it reads, and into what it publishes, if it does."""

    id: str
    reads: Reads
    into: str | None = None


@dataclass(frozen=True)
class Currents:
    """Those of all queries that the registry has, and of some that are about to be there. It blocks."""

    registry: Registry
    published: Callable[[str], bool]
    """Whether anything was ever published to a stream."""
    fresh: list[Current] = field(default_factory=list)

    def beside(self) -> Currents:
        """The same, with a list of those to be of its own."""
        return Currents(self.registry, self.published)

    def unknown(self, current: Current) -> str | None:
        """The first stream that it reads to which nobody ever published, and no other query does."""
        return next((each for each in current.reads or () if not self._is_known(each, current.id)), None)

    def check(self, current: Current) -> None:
        """Raises Unfit for one that would read what it publishes; the way there is in its words."""
        way = None if current.into is None else self._way(current.into, current.reads)
        if way is not None:
            hint = "; name the streams that it reads" if current.reads is None else ""
            raise InvalidField("into", f"the query would read what it publishes: {way}{hint}")

    def _is_known(self, stream: str, but: str) -> bool:
        return self.published(stream) or any(each.id != but for each in self._into(stream))

    def _way(self, goal: str, reads: Reads) -> str | None:
        """How what is published into a stream comes to a query that reads others, found against the current; None if it
        does not."""
        passed, ahead = {goal}, [(reads, "this query")]
        while ahead:
            reads, way = ahead.pop()
            if reads is None or goal in reads:
                return f"{goal} → {way} → {goal}"
            fresh = [each for each in reads if each not in passed]
            passed.update(fresh)
            if len(passed) > limits.QUERY_STREAMS:
                raise InvalidField(
                    "into", f"more than {limits.QUERY_STREAMS} streams lead to the query by way of others"
                )
            ahead += [(each.reads, f"query {each.id} → {name} → {way}") for name in fresh for each in self._into(name)]
        return None

    def _into(self, stream: str) -> Iterator[Current]:
        for change in self.registry.list(queries_publishing_to(stream)):
            reads: Sequence[str] | None = (change.value or {}).get("reads")
            yield Current(change.key, None if reads is None else tuple(reads), stream)
        yield from (each for each in self.fresh if each.into == stream)
