"""The oracle of windows: what a query with windows tells, recomputed window by window from the definitions.

Events stay in lists, every instant is looked at, contents are filtered anew for each, and an engine that we did not
write answers. Nothing is shared with what is tested but the parser of registrations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyoxigraph as ox

from tests.oracle import Solution, bag_of
from triplewire.continuous.state import BatchContext
from triplewire.continuous.windows.watermarks import REVISED_WINDOWS, WINDOW_GRACE_SECONDS, WINDOW_IDLE_SECONDS
from triplewire.model.subscriptions import ContinuousQuery, LatePolicy, ReportStrategy, TimeDomain
from triplewire.sparql import WindowClause, parse_registration

SECOND = 1_000_000
Instant: TypeAlias = tuple[int, int]
"""A moment, and a position or 0."""
Rows: TypeAlias = Counter[Solution]


@dataclass(frozen=True)
class Published:
    """An event, and when it happened and was received."""

    position: int
    stream: str
    triples: tuple[str, ...]
    """Each as a line of an event."""
    time: int
    received: int


@dataclass(frozen=True)
class Told:
    """What is told at an instant."""

    instant: Instant
    revision: int
    rows: tuple[tuple[Solution, int], ...]


@dataclass
class _Known:
    """An event by the query's clock."""

    event: Published
    moment: int
    counted: bool = True
    """In the window that goes by order, if there is one: was it in time?"""

    @property
    def instant(self) -> Instant:
        return self.moment, self.event.position


@dataclass
class Brute:
    """One query. `background` is what there is outside of windows."""

    query: ContinuousQuery
    background: tuple[str, ...] = ()
    dropped: int = 0
    _known: list[_Known] = field(default_factory=list)
    _begun: Instant | None = None
    _frontier: Instant | None = None
    _first: int | None = None
    _arrival: int | None = None
    _watermark: int | None = None
    _turns: list[tuple[Instant, int]] = field(default_factory=list)
    """Up to where windows had closed, and up to which position events were known then."""
    _revisions: Counter[Instant] = field(default_factory=Counter)
    _looked: dict[Instant, int] = field(default_factory=dict)
    """Of what was looked at again, up to which position events were known the last time."""
    _told: dict[Instant, Rows] = field(default_factory=dict)
    _over: dict[str, list[list[_Known]]] = field(default_factory=dict)
    """The sessions of each window that were told."""

    def __post_init__(self) -> None:
        registration = parse_registration(self.query.text)
        self._windows = registration.windows
        assert registration.report is not None
        self._report = registration.report
        self._revising = self.query.late is LatePolicy.REVISE and all(each.kind == "time" for each in self._windows)
        steps, widths = [each.step for each in self._windows], [each.range for each in self._windows]
        self._spare = min(max(widths), REVISED_WINDOWS * min(steps)) if self._revising else 0

    def take(self, events: Sequence[Published], turn: BatchContext) -> list[Told]:
        streams = {each.stream for each in self._windows}
        here = [_Known(each, self._moment(each)) for each in events if each.stream in streams]
        new = [each for each in here if each.event.position > self.query.since]
        fresh = [each.event for each in new]
        reached = self._advance(fresh, turn)
        if self.query.time is TimeDomain.ARRIVAL and self._frontier is None:
            begun = min([self.query.created or turn.now, turn.now, *(each.moment for each in new)])
            self._begun = self._frontier = (begun, self.query.since)
        late = [each for each in new if self._frontier is not None and each.moment < self._frontier[0]]
        for each in new:
            self._receive(each)
        self._known += new
        told = self._revised(late, turn)
        if reached is not None:
            told += self._closed(reached, turn)
        if self._frontier is not None:
            self._turns.append((self._frontier, turn.position))
        return told

    # Clocks

    def wait(self, turn: BatchContext) -> None:
        """A turn before the query is known. Time goes on."""
        if self.query.time is TimeDomain.ARRIVAL:
            self._advance((), turn)

    def _moment(self, event: Published) -> int:
        if self.query.time is TimeDomain.EVENT:
            return event.time
        self._arrival = event.received if self._arrival is None else max(self._arrival, event.received)
        return self._arrival

    def _advance(self, fresh: Sequence[Published], turn: BatchContext) -> Instant | None:
        if self.query.time is TimeDomain.ARRIVAL:
            settled = turn.now - int(WINDOW_GRACE_SECONDS * SECOND)
            self._arrival = settled if self._arrival is None else max(self._arrival, settled)
            return self._arrival, turn.position
        found = self._marked([each.event for each in self._known] + list(fresh), turn.now)
        if found is not None:
            self._watermark = found if self._watermark is None else max(self._watermark, found)
        return None if self._watermark is None else (self._watermark, 0)

    def _marked(self, seen: Sequence[Published], now: int) -> int | None:
        lateness, idle = int(self.query.lateness * SECOND), int(WINDOW_IDLE_SECONDS * SECOND)
        begun = self._registered(now)
        busy, quiet = list[int | None](), list[int]()
        for stream in {each.stream for each in self._windows}:
            here = [each for each in seen if each.stream == stream]
            greatest = max((min(each.time, each.received) for each in here), default=None)
            last = max((each.received for each in here), default=begun)
            if now - last <= idle:
                busy.append(greatest)
            elif greatest is not None:
                quiet.append(greatest + (now - last - idle))
        if busy:
            known = [each for each in busy if each is not None]
            return min(known) - lateness if len(known) == len(busy) else None
        return max(quiet) - lateness if quiet else None

    def _registered(self, now: int) -> int:
        if self._first is None:
            self._first = min(self.query.created or now, now)
        return self._first

    # What is late

    def _receive(self, new: _Known) -> None:
        """Count it as dropped if no window is left that it could count for."""
        windows = [each for each in self._windows if each.stream == new.event.stream]
        fates = [self._fate(new, each) for each in windows]
        if "lost" in fates and "counts" not in fates:
            self.dropped += 1
        if any(window.kind != "time" and fate == "lost" for window, fate in zip(windows, fates, strict=True)):
            assert len([each for each in windows if each.kind != "time"]) == 1, "the oracle knows one of them"
            new.counted = False

    def _fate(self, new: _Known, window: WindowClause) -> str:
        closed = self._frontier
        if window.kind == "count":
            return "lost" if closed is not None and new.instant <= closed else "counts"
        if window.kind == "session":
            return "lost" if closed is not None and new.moment + window.range <= closed[0] else "counts"
        ends = _ends(window, new.moment)
        if not ends:
            return "gap"
        return "lost" if closed is not None and max(ends) <= closed[0] - self._spare else "counts"

    # Windows

    def _closed(self, reached: Instant, turn: BatchContext) -> list[Told]:
        if self._frontier is None:
            first = min((each.moment for each in self._known), default=None)
            if first is None or first >= reached[0]:
                return []
            self._begun = self._frontier = (first, 0)
        told = []
        for instant in self._instants(self._frontier, reached):
            now = self._answer(instant, turn.position)
            before = self._previous(turn.position)
            self._told[instant] = now
            rows = _reported(self._report, now, before)
            if rows:
                told.append(Told(instant, 0, _frozen(rows)))
        self._frontier = max(reached, self._frontier)
        return told

    def _previous(self, position: int) -> Rows:
        """The answer at the last instant so far; of all that is known by now, where windows are told again."""
        if not self._told:
            return Counter()
        last = max(self._told)
        return self._answer(last, position) if self._revising else self._told[last]

    def _instants(self, after: Instant, position: Instant) -> list[Instant]:
        found = set[Instant]()
        for window in self._windows:
            if window.kind == "time":
                ends = range((after[0] // window.step + 1) * window.step, position[0] + 1, window.step)
                found |= {(end, 0) for end in ends}
            elif window.kind == "count":
                found |= {instant for instant, _ in self._countings(window)}
            else:
                self._settle(window, position)
                found |= {(each[-1].moment + window.range, 0) for each in self._over[window.name]}
        return sorted(each for each in found if after < each <= position)

    def _ordered(self, window: WindowClause) -> list[_Known]:
        here = [each for each in self._known if each.event.stream == window.stream and each.counted]
        return sorted(here, key=lambda each: each.instant)

    def _countings(self, window: WindowClause) -> list[tuple[Instant, list[_Known]]]:
        """Every window of triples that closes, and what is in it."""
        found, triples = [], list[_Known]()
        for each in self._ordered(window):
            before = len(triples) // window.step
            triples += [each] * len(each.event.triples)
            if len(triples) // window.step > before:
                found.append((each.instant, triples[-window.range :]))
        return found

    def _settle(self, window: WindowClause, position: Instant) -> None:
        """Sessions that are over by now, of what was in none before."""
        over = self._over.setdefault(window.name, [])
        gone = {each.event.position for session in over for each in session}
        session = list[_Known]()
        for each in [each for each in self._ordered(window) if each.event.position not in gone]:
            if session and each.moment >= session[-1].moment + window.range:
                over.append(session)
                session = []
            session.append(each)
        over += [session] if session else []
        over[:] = [each for each in over if each[-1].moment + window.range <= position[0]]

    def _content(self, window: WindowClause, instant: Instant, position: int) -> list[_Known]:
        if window.kind == "count":
            closed = [held for at, held in self._countings(window) if at <= instant]
            return closed[-1] if closed else []
        if window.kind == "session":
            ended = [each for each in self._over.get(window.name, []) if each[-1].moment + window.range <= instant[0]]
            return max(ended, key=lambda each: each[-1].moment, default=[])
        end = instant[0] // window.step * window.step
        known = position if self._revising else min(position, self._known_at(end, position))
        return [
            each
            for each in self._known
            if each.event.stream == window.stream
            and end - window.range <= each.moment < end
            and each.event.position <= known
        ]

    def _known_at(self, end: int, position: int) -> int:
        """Up to which position events were known when a window closed."""
        return next((position for frontier, position in self._turns if frontier >= (end, 0)), position)

    # Windows that are told again

    def _revised(self, late: Sequence[_Known], turn: BatchContext) -> list[Told]:
        if not self._revising or self._frontier is None or self._begun is None:
            return []
        least = max(self._begun, (self._frontier[0] - self._spare, 0))
        told = []
        for instant in self._instants(self._begun, self._frontier):
            before = max((each for each in self._instants(self._begun, self._frontier) if each < instant), default=None)
            looked = [instant] if self._report is ReportStrategy.ALL or before is None else [instant, before]
            if instant <= least or not any(self._holds(each, one) for each in looked for one in late):
                continue
            known = self._looked.get(instant, self._known_at(instant[0], turn.position))
            self._revisions[instant] += 1
            self._looked[instant] = turn.position
            now, was = (self._rows(instant, before, position) for position in (turn.position, known))
            self._told[instant] = self._answer(instant, turn.position)
            if now != was:
                told.append(Told(instant, self._revisions[instant], _frozen(now)))
        return told

    def _rows(self, instant: Instant, before: Instant | None, position: int) -> Rows:
        earlier: Rows = Counter() if before is None else self._answer(before, position)
        return _reported(self._report, self._answer(instant, position), earlier)

    def _holds(self, instant: Instant, event: _Known) -> bool:
        return any(event in self._content(window, instant, event.event.position) for window in self._windows)

    # Answers

    def _answer(self, instant: Instant, position: int) -> Rows:
        store = ox.Store()
        for line in self.background:
            store.add(_quad(line, None))
        for window in self._windows:
            for each in self._content(window, instant, position):
                for line in each.event.triples:
                    store.add(_quad(line, window.name))
        found = store.query(as_graphs(self.query.text), prefixes={"": "http://example.org/"})
        if isinstance(found, ox.QuerySolutions):
            return bag_of(found)
        assert isinstance(found, ox.QueryTriples)
        return Counter({tuple(zip("spo", map(str, each), strict=True)): 1 for each in found})


def as_graphs(text: str) -> str:
    """The query over named graphs, one for each window."""
    text = re.sub(r"REGISTER \w+ <\w+> AS ", "", text)
    text = re.sub(r"FROM NAMED WINDOW <[^>]+> ON <\w+> \[[^\]]+\]", "", text)
    return re.sub(r"FROM <[^>]+>", "", text).replace("WINDOW <", "GRAPH <")


def _quad(line: str, graph: str | None) -> ox.Quad:
    (found,) = ox.parse(f"{line.replace(chr(9), ' ')} .".encode(), format=ox.RdfFormat.N_TRIPLES)
    name = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
    return ox.Quad(found.subject, found.predicate, found.object, name)


def _ends(window: WindowClause, moment: int) -> list[int]:
    around = range(moment // window.step * window.step, moment + window.range + window.step, window.step)
    return [end for end in around if end - window.range <= moment < end]


def _reported(report: ReportStrategy, now: Rows, before: Rows) -> Rows:
    return {ReportStrategy.ALL: now, ReportStrategy.NEW: now - before, ReportStrategy.OLD: before - now}[report]


def _frozen(rows: Rows) -> tuple[tuple[Solution, int], ...]:
    return tuple(sorted(rows.items()))
