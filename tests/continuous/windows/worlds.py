"""Queries with windows, events that they meet, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyoxigraph as ox
from hypothesis import strategies as st

from tests.continuous.windows.brute import SECOND, Published, Told
from tests.oracle import Solution, bag
from triplewire.continuous.state import BatchContext
from triplewire.continuous.windows.evaluation import INPUTS
from triplewire.model.subscriptions import ContinuousQuery, LatePolicy, TimeDomain
from triplewire.model.terms import XSD
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, query_to_value

BASE = 1_700_000_000 * SECOND
HALF = SECOND // 2
EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
NEAR = (0, 5, 1, 6, 3, 0, 8, 4)
FAR = (0, 0, 0, 1, 2, 3, 4, 6, 8, 30, -2)
"""By how many halves of a second events may be late."""
REPORTS = ("RSTREAM", "ISTREAM", "DSTREAM")

ONE = (
    "SELECT ?s ?v {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v }} }}",
    "SELECT ?v {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v . ?s :in ?r }} }}",
    "SELECT ?s ?r {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v OPTIONAL {{ ?s :in ?r }} }} }}",
    "SELECT ?s {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v FILTER NOT EXISTS {{ ?s :in ?r }} }} }}",
    "SELECT ?x {windows} WHERE {{ WINDOW <urn:w0> {{ {{ ?x :v ?v }} UNION {{ ?x :in ?r }} }} }}",
    "SELECT (COUNT(*) AS ?n) {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v }} }}",
    "SELECT ?r (SUM(?v) AS ?t) {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v ; :in ?r }} }}"
    " GROUP BY ?r HAVING(COUNT(?v) > 1)",
    "SELECT ?s ?w {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v BIND(?v * 2 AS ?w) FILTER(?w > 2) }} }}",
    "CONSTRUCT {{ ?s :has ?v . ?r :of ?s }} {windows}"
    " WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v OPTIONAL {{ ?s :in ?r }} }} }}",
)
TWO = (
    "SELECT ?s ?v ?r {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v }} WINDOW <urn:w1> {{ ?s :in ?r }} }}",
    "SELECT ?s ?r {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v }} OPTIONAL {{ WINDOW <urn:w1> {{ ?s :in ?r }} }} }}",
    "SELECT ?s {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v }}"
    " FILTER NOT EXISTS {{ WINDOW <urn:w1> {{ ?s :in ?r }} }} }}",
    "CONSTRUCT {{ ?s :is ?r }} {windows} WHERE {{ WINDOW <urn:w0> {{ ?s :v ?v }} WINDOW <urn:w1> {{ ?s :in ?r }} }}",
)
TIMES = ("RANGE PT4S STEP PT2S", "RANGE PT3S STEP PT1S", "RANGE PT2S", "RANGE PT1S STEP PT3S", "RANGE PT5S STEP PT3S")
COUNTS = ("RANGE TRIPLES 3 STEP 2", "RANGE TRIPLES 4", "RANGE TRIPLES 2 STEP 5")
SESSIONS = ("SESSION PT2S",)


def registered(query: ContinuousQuery) -> RegistryChange:
    """The change that registers a query, where it says that it was."""
    return RegistryChange(query.since, QUERY, query.id, orjson.loads(orjson.dumps(query_to_value(query))))


def entries(events: Sequence[Published]) -> pa.Table:
    """What a place is given of events."""
    rows = [
        {
            "position": each.position,
            "stream": each.stream,
            "event": f"{EX}e{each.position}",
            "text": "\n".join(each.triples),
            "time": each.time,
            "received": each.received,
        }
        for each in events
    ]
    return pa.Table.from_pylist(rows, schema=INPUTS)


def told(results: pa.Table) -> list[Told]:
    """What the rows of a query say."""
    return [Told((row["end"], row["at"]), row["revision"], _rows(row)) for row in results.to_pylist()]


def _rows(row: Mapping[str, Any]) -> tuple[tuple[Solution, int], ...]:
    if row["kind"] == "select":
        return tuple(sorted(bag(orjson.loads(row["payload"])).items()))
    assert row["kind"] == "construct", row
    found = ox.parse(row["payload"].encode(), format=ox.RdfFormat.N_TRIPLES)
    return tuple(sorted(Counter(tuple(zip("spo", map(str, each.triple), strict=True)) for each in found).items()))


@dataclass(frozen=True)
class World:
    """Turns, each with the events that it brings, and queries that are registered before some of them."""

    queries: tuple[ContinuousQuery, ...]
    turns: tuple[tuple[BatchContext, tuple[Published, ...]], ...]

    def learned(self, number: int) -> list[RegistryChange]:
        """What changed in the registry in a turn."""
        after = self.turns[number - 1][0].position if number else -1
        return [registered(each) for each in self.queries if after < each.since <= self.turns[number][0].position]


def text(report: str, pattern: str, windows: Sequence[tuple[str, str]]) -> str:
    declared = " ".join(f"FROM NAMED WINDOW <urn:w{n}> ON <{s}> [{extent}]" for n, (s, extent) in enumerate(windows))
    return f"{PREFIX}REGISTER {report} <out> AS {pattern.format(windows=declared)}"


_VALUES = [f'<{EX}{name}>\t<{EX}v>\t"{value}"^^<{XSD}integer>' for name in "abc" for value in (1, 2, 3)]
_PLACES = [f"<{EX}{name}>\t<{EX}in>\t<{EX}{place}>" for name in "abc" for place in "xy"]
_triples = st.sampled_from((*_VALUES, *_PLACES))


@st.composite
def texts(draw: st.DrawFn, extents: Sequence[str]) -> str:
    """Of every report, over one or two windows, one of which has any of these extents."""
    windows = [("a", draw(st.sampled_from(extents)))]
    if not draw(st.booleans()):
        return text(draw(st.sampled_from(REPORTS)), draw(st.sampled_from(ONE)), windows)
    windows.append((draw(st.sampled_from("ab")), draw(st.sampled_from(TIMES))))
    return text(draw(st.sampled_from(REPORTS)), draw(st.sampled_from(TWO)), windows)


@st.composite
def worlds(draw: st.DrawFn, queries: int = 1, *, revised: bool = False) -> World:
    """Batches as a log gives them, some of them empty: event times go to and fro, some far in the past or the future;
    the clock, as a rule, goes on. Queries are registered before the first batch, or between some. If `revised`, all of
    them tell their windows again."""
    now = BASE + draw(st.integers(0, 12)) * HALF
    asked = tuple(draw(_queries(number, now, revised)) for number in range(queries))
    position, turns = 0, []
    for batch in range(draw(st.integers(6 if revised else 3, 12))):
        events = []
        for _ in range(draw(st.integers(1 if revised else 0, 4))):
            now += draw(st.sampled_from((0, 1, 1, 2))) * HALF
            position = _free(position + 1, asked)
            events.append(draw(_events(position, now, NEAR if revised else FAR)))
        now += draw(st.sampled_from((0, 1, 1, 1) if revised else (0, 1, 1, 1, 2, 4, 15))) * HALF
        position = _free(position + 1, asked) - 1
        turns.append((BatchContext(batch, position, now), tuple(events)))
    return World(asked, tuple(turns))


def _free(position: int, asked: Sequence[ContinuousQuery]) -> int:
    """The next position that no registration has."""
    while any(each.since == position for each in asked):
        position += 1
    return position


@st.composite
def _events(draw: st.DrawFn, position: int, now: int, late: Sequence[int]) -> Published:
    time = now - draw(st.sampled_from(late)) * HALF
    received = now - draw(st.sampled_from((0,) * 9 + (3,))) * HALF
    triples = tuple(draw(st.lists(_triples, min_size=1, max_size=3, unique=True)))
    return Published(position, draw(st.sampled_from("aab")), triples, time, received)


@st.composite
def _queries(draw: st.DrawFn, number: int, now: int, revised: bool) -> ContinuousQuery:
    return ContinuousQuery(
        id=f"q{number}",
        text=draw(texts(TIMES if revised else (*TIMES, *COUNTS, *SESSIONS))),
        into="out",
        time=TimeDomain.EVENT if revised else draw(st.sampled_from(TimeDomain)),
        lateness=draw(st.sampled_from((0.0, 0.0, 1.0) if revised else (0.0, 0.0, 1.0, 2.5))),
        late=LatePolicy.REVISE if revised else draw(st.sampled_from(LatePolicy)),
        created=draw(st.sampled_from((0, now, now + SECOND))),
        since=draw(st.sampled_from((0, 0, 3 + number, (0 if revised else 7) + number))),
    )
