"""The index: groups of subscriptions, and what of a batch matches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from triplewire.config.limits import SOLUTIONS
from triplewire.matching.index.arrays import PAIR, PROBE, ROW, TERM, VARIABLE, Found, Int32, Int64, Records, Scratch
from triplewire.matching.index.batches import events_of
from triplewire.matching.index.kernel import match
from triplewire.matching.index.memberships import Membership, Memberships
from triplewire.matching.index.programs import MOST_PATTERNS, Program
from triplewire.matching.index.relations import related
from triplewire.matching.index.store import Column, Store
from triplewire.matching.shapes import lift
from triplewire.model import MATCHES
from triplewire.sparql import parse_query

_ROOM = 1 << 14
_TERMS = 3 << 8
"""Of an event, for which there is room at first."""
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Result:
    """What a batch matched, as `MATCHES`, and the pairs of event (its place in the batch) and program about which the
    index does not decide."""

    matches: pa.Table
    slow: Sequence[tuple[int, int]]
    candidates: Mapping[int, Int32]
    """By guard: the events that it lets through, by their places in the batch."""


@cache
def warm_up() -> None:
    """Have the compiled code at hand: it is read from the disk, or made, which takes half a minute and is kept."""
    query = parse_query("SELECT * { ?s <urn:p> ?o FILTER(?o > 0 && ?o != 7) }")
    lifted = lift(query, solutions=True)
    memberships = Memberships(lifted.shape)
    membership = memberships.of(lifted.constants)
    assert memberships.program is not None, "the index knows comparisons"
    assert membership is not None, "the index knows small numbers"
    index = GroupIndex()
    index.join(index.add_program(memberships.program), [membership])
    text = '<urn:s>\t<urn:p>\t"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    index.match(pa.table({"position": [1], "text": [text], "stream": [""], "source": [""], "application": [""]}))


class GroupIndex:
    """Belongs to one worker. Programs are numbered in the order in which they come."""

    def __init__(self) -> None:
        self._store = Store()
        self._numbers: dict[int, int] = {}
        self._names = Column(np.dtype(np.int64))
        self._above: list[bool] = []
        self._widths: list[int] = []
        self._solutions: list[bool] = []
        self._guards: set[int] = set()
        self._seen = np.zeros(0, np.int32)
        self._terms = _TERMS

    def add_program(self, program: Program, *, guards: bool = False) -> int:
        """What a program that `guards` matches are candidates for somebody else."""
        self._widths.append(len(program.rows))
        self._solutions.append(program.solutions)
        number = self._store.add_program(program)
        if guards:
            self._guards.add(number)
        return number

    def join(self, program: int, memberships: Sequence[Membership]) -> None:
        """Subscriptions of one program come."""
        fresh: dict[int, Membership] = {}
        later = list[Membership]()
        for each in memberships:
            if each.group in self._numbers or each.group in fresh:
                later.append(each)
            else:
                fresh[each.group] = each
        if fresh:
            made = [*fresh.values()]
            bounds = [each.threshold for each in made]
            first = self._store.add_groups(program, [each.constants for each in made], bounds)
            self._numbers.update(zip(fresh, range(first, first + len(made)), strict=True))
            self._names.extend(np.array([*fresh], np.int64))
        for each in later:
            self._store.join(self._numbers[each.group], each.threshold, above=each.above)

    def leave(self, group: int) -> None:
        """A member of a group goes."""
        self._store.leave(self._numbers[group])

    def relate(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Ontologies say this from now on: relation, lower and upper name."""
        self._store.relations = related(rows)

    def match(self, entries: pa.Table) -> Result:
        """What of a batch of `ENTRIES` matches, in order of position."""
        if not self._store.groups or not entries.num_rows:
            return Result(MATCHES.empty_table(), (), {})
        events = events_of(entries)
        index, scratch = self._store.index, self._scratch()
        width = max(self._widths)
        parts, slow, event, room = [], set[tuple[int, int]](), 0, max(_ROOM, 2 * entries.num_rows)
        while event < entries.num_rows:
            found = _found(room, width)
            following, rows, pairs = match(events, event, index, scratch, found)
            parts.append((found, rows))
            slow.update(found.slow[:pairs].tolist())
            if following == event:
                room, self._terms = 4 * room, 4 * self._terms
                scratch = self._scratch()
            event = following
        return self._result(entries, parts, slow)

    def _scratch(self) -> Scratch:
        if len(self._seen) < self._store.groups:
            self._seen = np.zeros(2 * self._store.groups, np.int32)
        return Scratch(
            terms=np.zeros(self._terms, TERM),
            halves=np.zeros(self._terms, np.uint64),
            probes=np.zeros(4 * self._terms, PROBE),
            variables=np.zeros(3 * MOST_PATTERNS, VARIABLE),
            cursor=np.zeros(MOST_PATTERNS + 2, np.int32),
            stack=np.zeros(1 + self._store.steps, np.int8),
            seen=self._seen,
            # Mostly not touched, so that it takes no memory.
            spent=np.zeros(self._store.groups, np.int64),
        )

    def _result(self, entries: pa.Table, parts: list[tuple[Found, int]], slow: set[tuple[int, int]]) -> Result:
        """The rows as matches, without those about which somebody else decides."""
        made = np.concatenate([found.rows[:rows] for found, rows in parts])
        width = len(parts[0][0].quads) // len(parts[0][0].rows)
        quads = np.concatenate([found.quads[: rows * width] for found, rows in parts]).reshape(-1, width)
        program = self._store.index.groups["program"][made["group"]]
        guards = np.fromiter(self._guards, np.int32, len(self._guards))
        kept = ~np.isin(program, guards)
        undecided = [pair for pair in slow if pair[1] in self._guards]
        candidates = _candidates(made["event"][~kept], program[~kept], undecided)
        slow |= _too_many(made, program)
        pairs = np.array([pair for pair in slow if pair[1] not in self._guards], PAIR)
        kept &= ~np.isin(_pair(made["event"], program), _pair(pairs["event"], pairs["program"]))
        found = self._table(entries, made[kept], quads[kept], program[kept])
        return Result(found, sorted(pairs.tolist()), candidates)

    def _table(self, entries: pa.Table, made: Records, quads: Int32, program: Int32) -> pa.Table:
        lengths = np.array(self._widths, np.int64)[program] * np.array(self._solutions, np.int64)[program]
        names = self._names.data[made["group"]]
        position: Int64 = entries["position"].to_numpy()[made["event"]]
        return pa.table(
            {
                "position": position,
                "subscription": pa.nulls(len(made), pa.int64()),
                "group": names,
                "value": made["value"].copy(),
                "solutions": _lists(quads, lengths),
                "terms": pa.nulls(len(made), pa.list_(pa.string())),
                "limit": pa.nulls(len(made), pa.string()),
            },
            schema=MATCHES,
        )


def _candidates(event: Int32, program: Int32, undecided: Sequence[tuple[int, int]]) -> dict[int, Int32]:
    """The events of each guard, each once, with those about which it does not know."""
    events = np.concatenate((event, np.array([each for each, _ in undecided], np.int32)))
    programs = np.concatenate((program, np.array([each for _, each in undecided], np.int32)))
    return {int(each): np.unique(events[programs == each]) for each in np.unique(programs)}


def _too_many(made: Records, program: Int32) -> set[tuple[int, int]]:
    """The pairs of event and program of which a group has more solutions than are told. The evaluator counts them for
    each subscription."""
    counts = np.bincount(made["event"], minlength=1)
    among = np.flatnonzero(counts[made["event"]] > SOLUTIONS) if counts.max() > SOLUTIONS else _NO_ROWS
    _, first, count = np.unique(
        _pair(made["event"][among], made["group"][among]), return_index=True, return_counts=True
    )
    rows = among[first[count > SOLUTIONS]]
    return set(zip(made["event"][rows].tolist(), program[rows].tolist(), strict=True))


def _pair(event: Int32, program: Int32) -> Int64:
    return event.astype(np.int64) << 32 | program.astype(np.int64)


def _lists(quads: np.ndarray, lengths: Int64) -> pa.ListArray:
    """The first numbers of each row as a list; null where no number is wanted."""
    wanted = np.arange(quads.shape[1])[None, :] < lengths[:, None]
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = pa.array(lengths == 0)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(quads[wanted], pa.int32()), mask=mask)


def _found(room: int, width: int) -> Found:
    return Found(np.zeros(room, ROW), np.zeros(room * width, np.int32), np.zeros(room, PAIR))
