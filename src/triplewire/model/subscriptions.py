"""Subscriptions match single events; continuous queries are evaluated across events.

Both are standing queries that hold from the position at which they were registered to the one at which they ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from triplewire.model.positions import END, START

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
    """The principal that made a subscription, with the grants and roles that it had then."""

    name: str
    grants: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subscription:
    """A standing query over single events, from the position at which it was made to the one at which it ended.

    It sees the events at positions p with `since < p < until`, and those from `begins` on that came before it was made.
    One that follows ontologies has a version for each of theirs, and one whose owner comes to see more or less has
    another from there on; each begins where the one before it ends, and the first was made at `made`. `shape` is the
    key of its shape, `constants` the terms that fill the shape's parameters; together they say all that matching needs.
    """

    id: str
    sparql: str | None
    """None if it matches every event that the fields below let through."""
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
    """The name and version of the template that the text is from."""
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
    """The only principal that may see it, consume it and end it; None for everyone."""
    visibility: str | None = None
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


ANSWER = "urn:triplewire:answer:"
"""The ids of events that are answers begin so; then come the id of the query and a colon."""


class ReportStrategy(StrEnum):
    """The part of a window's answer that is delivered."""

    ALL = "rstream"
    """The whole answer, window after window."""
    NEW = "istream"
    """Solutions that the window before did not have."""
    OLD = "dstream"
    """Solutions that the window before had, and this one has not."""


class TimeDomain(StrEnum):
    """The clock of windows."""

    EVENT = "event"
    """The time at which events happened, as their publishers say; windows close behind a watermark."""
    ARRIVAL = "arrival"
    """The time at which the log has stored them."""


class LatePolicy(StrEnum):
    """The treatment of an event whose windows are closed."""

    DROP = "drop"
    """It counts for no window, and is counted as dropped."""
    REVISE = "revise"
    """Windows that it belongs to are told again, while their contents are still kept."""


class QueryState(StrEnum):
    """The state of a continuous query."""

    ON = "on"
    SUSPENDED = "suspended"
    """It exceeded its limit of state; no state is kept, and nothing is delivered."""


@dataclass(frozen=True)
class ContinuousQuery:
    """A standing query across events, from the position at which it was registered to the one at which it ended.

    Without windows it is *unbounded*: it is told of every combination of triples published at positions p with
    `since < p < until` that answers it, once, when the last of them arrives. With windows it is told what its windows
    hold whenever one of them closes.
    """

    id: str
    text: str
    """SPARQL, or RSP-QL with its windows."""
    name: str | None = None
    """The name that its owner gave it."""
    group: int | None = None
    """Unbounded queries only: queries of one group differ only in the position at which they were registered. Answers
    are stored by group; each is for the members that were registered before its oldest triple."""
    structure: str | None = None
    """Unbounded queries only: the key of the query without its constants."""
    constants: tuple[str, ...] = ()
    """The constants that fill the structure."""
    variables: tuple[str, ...] = ()
    """The variables of answers, in order; none for CONSTRUCT."""
    distinct: bool = False
    """Unbounded queries only: each answer is delivered once, not once per combination of triples that gives it."""
    into: str | None = None
    """The stream to which answers are published as events: always so of windows and of CONSTRUCT."""
    streams: tuple[str, ...] | None = None
    """Unbounded queries only: the streams whose events count; None is all."""
    within: float | None = None
    """The seconds within which all pieces of an answer must have arrived; older ones are forgotten."""
    span: int | None = None
    """The number of positions within which all triples of an answer must lie."""
    time: TimeDomain = TimeDomain.ARRIVAL
    lateness: float = 0.0
    """By how many seconds events may be late before their windows close."""
    late: LatePolicy = LatePolicy.DROP
    begins: int | None = None
    """The first position of the past that counts, too; None for one that does not look back."""
    state: QueryState = QueryState.ON
    owner: Owner | None = None
    """The only principal that may see it, consume it and end it; None for everyone."""
    created: int = 0
    since: int = 0
    until: int = END

    @property
    def made(self) -> int:
        """The position at which it was registered: a query has one version."""
        return self.since

    @property
    def after(self) -> int:
        """The position after which all triples of an answer lie: its registration, or the start of its backfill."""
        return self.since if self.begins is None else self.begins - 1

    @property
    def windowed(self) -> bool:
        return self.group is None
