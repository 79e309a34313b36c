"""Subscriptions match single events; continuous queries are evaluated across events.

Both are standing queries that hold from the position at which they were registered to the one at which they ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from triplewire.model.events import END, START

Names: TypeAlias = str | tuple[str, ...] | None
"""One, any of several, or whatever there is."""


class Kind(StrEnum):
    """How much of a match is delivered."""

    SIGNAL = "signal"
    """That it happened."""
    BINDINGS = "bindings"
    """Every solution, in the shape of SPARQL JSON results."""
    EVENT = "event"
    """The whole event."""


@dataclass(frozen=True)
class Owner:
    """Who made a subscription, with what was granted to them then, and the roles that they had."""

    name: str
    grants: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subscription:
    """A standing question, from the position at which it was made to the one at which it ended.

    It sees the events at positions p with `since < p < until`, and those from `begins` on that came before it was made.
    One that follows ontologies has a version for each of theirs, and one whose owner comes to see more or less has
    another from there on; each begins where the one before it ends, and the first was made at `made`. `shape` is the
    key of its shape, `constants` the terms that fill the shape's parameters; together they say all that matching needs.
    """

    id: str
    sparql: str | None
    """None where every event is meant that the fields below let through."""
    kind: Kind
    shape: str
    constants: tuple[str, ...]
    stream: Names = None
    """Only events of this stream, or of one of these; None means every stream. Likewise for what follows."""
    source: Names = None
    application: Names = None
    vocabulary: Names = None
    """How the IRI of some predicate or class of the event begins."""
    template: tuple[str, int] | None = None
    """Of which the text is, and its version."""
    values: tuple[tuple[str, str], ...] = ()
    """The terms of the template's parameters."""
    filter: str | None = None
    """The filters that stand in the place of a query, as JSON."""
    ttl: float | None = None
    """The seconds after which it ends if nobody listens to it; None for one that stays."""
    entailment: str | None = None
    """`rdfs` where what follows from the ontologies counts, too."""
    begins: int | None = None
    """The first position of the past that it asks for; None for one that does not look back."""
    ontologies: tuple[int, ...] = ()
    """Where those were loaded by which the past is matched."""
    earlier: tuple[int, ...] = ()
    """Where its earlier versions began, the last of them, in order."""
    first: int | None = None
    """Where its first version began; None for that itself."""
    owner: Owner | None = None
    """Who alone may see it, listen to it and end it; None for everyone."""
    sight: str | None = None
    """The name of what its owner sees of events; None for everything."""
    created: int = 0
    since: int = 0
    until: int = END

    @property
    def made(self) -> int:
        """The position at which it was made."""
        return self.since if self.first is None else self.first

    @property
    def floor(self) -> int:
        """The position after which it sees events, those of the past among them."""
        return self.made if self.begins is None else min(self.made, max(START, self.begins - 1))


# Continuous queries: standing questions across events.

ANSWER = "urn:triplewire:answer:"
"""The ids of events that are answers begin so; then come the id of the query and a colon."""


class ReportStrategy(StrEnum):
    """What of a window's answer is told."""

    ALL = "rstream"
    """The whole answer, window after window."""
    NEW = "istream"
    """What the window before did not have."""
    OLD = "dstream"
    """What the window before had, and this one has no more."""


class TimeDomain(StrEnum):
    """By which clock windows go."""

    EVENT = "event"
    """When events happened, as their publishers say; windows close behind a watermark."""
    ARRIVAL = "arrival"
    """When they were taken in."""


class LatePolicy(StrEnum):
    """What becomes of an event whose windows are closed."""

    DROP = "drop"
    """It counts for no window, and is counted as dropped."""
    REVISE = "revise"
    """Windows that it belongs to are told again, while their contents are still kept."""


class QueryState(StrEnum):
    """What becomes of a continuous query."""

    ON = "on"
    SUSPENDED = "suspended"
    """It held more than it may; nothing of it is kept, and nothing is told."""


@dataclass(frozen=True)
class ContinuousQuery:
    """A question across events, from the position at which it was registered to the one at which it ended.

    Without windows it is *unbounded*: it is told of every combination of triples published at positions p with
    `since < p < until` that answers it, once, when the last of them arrives. With windows it is told what its windows
    hold whenever one of them closes.
    """

    id: str
    text: str
    """SPARQL, or RSP-QL with its windows."""
    name: str | None = None
    """As its owner calls it."""
    group: int | None = None
    """Of an unbounded one: queries of one group differ in nothing but where they were registered. Answers are kept by
    group; each is for those members that were registered before the oldest triple in it."""
    structure: str | None = None
    """Likewise, the key of what is left of it when its constants are lifted out."""
    constants: tuple[str, ...] = ()
    """And these."""
    variables: tuple[str, ...] = ()
    """The names of what is told, in order; none where triples are made of it."""
    distinct: bool = False
    """Of an unbounded one: each answer is told once, and not once for every combination that gives it."""
    into: str | None = None
    """The stream to which answers are published as events: always so of windows and of CONSTRUCT."""
    streams: tuple[str, ...] | None = None
    """Of an unbounded one: only events of these; None means of every stream."""
    within: float | None = None
    """The seconds within which all pieces of an answer must have arrived; older ones are forgotten."""
    span: int | None = None
    """Likewise, the number of positions."""
    time: TimeDomain = TimeDomain.ARRIVAL
    lateness: float = 0.0
    """By how many seconds events may be late before their windows close."""
    late: LatePolicy = LatePolicy.DROP
    begins: int | None = None
    """The first position of the past that counts, too; None for one that does not look back."""
    state: QueryState = QueryState.ON
    owner: Owner | None = None
    """Who alone may see it, listen to it and end it; None for everyone."""
    created: int = 0
    since: int = 0
    until: int = END

    @property
    def made(self) -> int:
        """It has one version, which begins where it was registered."""
        return self.since

    @property
    def after(self) -> int:
        """Of an answer, every piece lies after it: where it was registered, or as far back as it looks."""
        return self.since if self.begins is None else self.begins - 1

    @property
    def windowed(self) -> bool:
        return self.group is None


def query_to_value(query: ContinuousQuery) -> dict[str, Any]:
    """As JSON, without what follows from where it is kept."""
    kept = {name: value for name, value in vars(query).items() if name not in ("id", "since", "until", "owner")}
    owner = {} if query.owner is None else {"owner": vars(query.owner)}
    return {name: value for name, value in kept.items() if value is not None} | owner
