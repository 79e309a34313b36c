"""The group index: matches a batch of events against groups of subscriptions.

It returns the matches that it decides, the pairs of event and group that it leaves to the evaluator, and the
candidates that guards let through.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from subprocess import Popen

import numpy as np
import pyarrow as pa

from triplewire.kernels.arrays import Flags, Int32, Int64, Records
from triplewire.kernels.cache import mark_compiled
from triplewire.kernels.nquads import split_canonical
from triplewire.matching.index import arrays
from triplewire.matching.index.columns import CALL
from triplewire.matching.index.files import IndexFiles
from triplewire.matching.index.kernel import match_events
from triplewire.matching.index.keys import age_counters
from triplewire.matching.index.memberships import Memberships
from triplewire.matching.index.programs import MOST_PATTERNS
from triplewire.matching.index.relations import build_relations, no_relations
from triplewire.matching.index.store import IndexGenerations, ProgramAddition
from triplewire.matching.plans import SOLUTIONS
from triplewire.matching.shapes import lift
from triplewire.model import ENTRIES, MATCHES, no_matches
from triplewire.sparql import parse_query

_ROOM = 1 << 14
_TERMS = 3 << 8
"""Terms of an event for which there is room at first."""
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Candidates:
    """Pairs of event (its index in the batch) and guard group that the guards let through, each once, with the
    program of the guard."""

    event: Int32
    group: Int64
    program: Int32

    def select(self, program: int) -> Candidates:
        """The candidates of one guard."""
        its = self.program == program
        return Candidates(self.event[its], self.group[its], self.program[its])


_NOBODY = Candidates(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int32))


@dataclass(frozen=True)
class VisibilityMask:
    """Events in which groups of some programs may match something that is hidden from their subscribers."""

    programs: Sequence[int]
    events: Flags


@dataclass(frozen=True)
class IndexResult:
    """The matches of a batch as `MATCHES`, the undecided pairs of event (its index in the batch) and group, and the
    candidates of guards."""

    matches: pa.Table
    slow: Records
    candidates: Candidates


@cache
def warm_up() -> None:
    """Load the compiled code from its cache, or compile it, which takes half a minute."""
    text = '<urn:s>\t<urn:p>\t"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    with tempfile.TemporaryDirectory(prefix="triplewire-index-") as directory:
        GroupIndex(_build_sample(Path(directory))).match(
            pa.table({"position": [1], "text": [text], "stream": [""], "source": [""], "application": [""]})
        )
    mark_compiled()


def compile_kernels() -> None:
    """Do what `warm_up` does, in less time where nothing is compiled: two processes compile half of the code each."""
    matching = Popen([sys.executable, "-c", f"from {__name__} import compile_matching; compile_matching()"])
    with tempfile.TemporaryDirectory(prefix="triplewire-index-") as directory:
        _build_sample(Path(directory))
    split_canonical(b"<urn:s> <urn:p> <urn:o> <urn:g> .\n")
    matching.wait()
    warm_up()


def compile_matching() -> None:
    """Compile the code that matches, and not the code that builds an index."""
    with tempfile.TemporaryDirectory(prefix="triplewire-index-") as directory:
        GroupIndex(IndexGenerations(Path(directory)).files).compile()


def _build_sample(directory: Path) -> IndexFiles:
    """Build an index with one subscription."""
    query = parse_query("SELECT * { ?s <urn:p> ?o FILTER(?o > 0 && ?o != 7) }")
    lifted = lift(query, solutions=True)
    memberships = Memberships(lifted.shape)
    membership = memberships.of(lifted.constants)
    assert memberships.program is not None, "the index knows comparisons"
    assert membership is not None, "the index knows small numbers"
    generations = IndexGenerations(directory)
    with generations.locked() as store:
        store.reserve([ProgramAddition(memberships.program, 1, guards=False)], [membership] * _ROOM, _ROOM)
        store.reserve_members(_ROOM)
        store.join(store.add_program(ProgramAddition(memberships.program, 1, guards=False)), [membership])
        store.enroll(np.zeros(1, CALL))
        store.forget(1)
        store.files.publish()
    return generations.files


class GroupIndex:
    """One worker's view of the files of a generation. A batch does not see what other processes write meanwhile."""

    def __init__(self, files: IndexFiles) -> None:
        self._files = files
        self._seen = np.zeros(0, np.int32)
        self._terms = _TERMS
        self._relations = no_relations()

    def relate(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Replace the ontologies: rows of relation, lower and upper name."""
        self._relations = build_relations(rows)

    def match(self, entries: pa.Table, masks: Sequence[VisibilityMask] = ()) -> IndexResult:
        """The matches of a batch of `ENTRIES`, in order of position. Matches behind a mask are left undecided."""
        groups = self._files.size("groups")
        if not groups or not entries.num_rows:
            return IndexResult(no_matches(), np.zeros(0, arrays.PAIR), _NOBODY)
        self._files.follow()
        events = arrays.read_events(entries)
        index, scratch = self._files.arrays(self._relations), self._scratch(groups)
        age_counters(index)
        width = int(self._files.filled("programs")["rows"].max())
        parts, event, room = [], 0, max(_ROOM, 2 * entries.num_rows)
        while event < entries.num_rows:
            found = _new_buffer(room, width)
            following, rows, pairs = match_events(events, event, index, scratch, found)
            parts.append((found, rows, pairs))
            if following == event:
                room, self._terms = 4 * room, 4 * self._terms
                scratch = self._scratch(groups)
            event = following
        return self._result(entries, parts, masks)

    def compile(self) -> None:
        """Compile the code that matches, by a call without an event."""
        events = arrays.read_events(ENTRIES.empty_table())
        match_events(events, 0, self._files.arrays(self._relations), self._scratch(0), _new_buffer(0, 1))

    def _scratch(self, groups: int) -> arrays.MatchScratch:
        if len(self._seen) < groups:
            self._seen = np.zeros(groups + groups // 4, np.int32)
        return arrays.MatchScratch(
            terms=np.zeros(self._terms, arrays.TERM),
            halves=np.zeros(self._terms, np.uint64),
            probes=np.zeros(4 * self._terms, arrays.PROBE),
            variables=np.zeros(3 * MOST_PATTERNS, arrays.VARIABLE),
            cursor=np.zeros(MOST_PATTERNS + 2, np.int32),
            stack=np.zeros(1 + self._files.size("steps"), np.int8),
            seen=self._seen[:groups],
            # Mostly untouched, so that it takes no memory.
            spent=np.zeros(groups, np.int64),
        )

    def _result(
        self, entries: pa.Table, parts: list[tuple[arrays.MatchBuffer, int, int]], masks: Sequence[VisibilityMask]
    ) -> IndexResult:
        """Turn the rows into matches, without those that are left to the evaluator."""
        made = np.concatenate([found.rows[:rows] for found, rows, _ in parts])
        width = len(parts[0][0].quads) // len(parts[0][0].rows)
        quads = np.concatenate([found.quads[: rows * width] for found, rows, _ in parts]).reshape(-1, width)
        slow = np.unique(np.concatenate([found.slow[:pairs] for found, _, pairs in parts]))
        program, guarded = self._programs(made["group"])
        _, slow_guarded = self._programs(slow["group"])
        candidates = self._candidates(np.concatenate((_pair_numbers(made[guarded]), _pair_numbers(slow[slow_guarded]))))
        decided = made[~guarded]
        behind = decided[_masked_rows(decided["event"], program[~guarded], masks)]
        slow = np.unique(np.concatenate((slow[~slow_guarded], _find_excess(decided), _pairs(behind))))
        kept = ~guarded & ~np.isin(_pair_numbers(made), _pair_numbers(slow))
        return IndexResult(self._table(entries, made[kept], quads[kept], program[kept]), slow, candidates)

    def _candidates(self, pairs: Int64) -> Candidates:
        both = np.unique(pairs)
        group = (both & 0xFFFFFFFF).astype(np.int32)
        program, _ = self._programs(group)
        return Candidates((both >> 32).astype(np.int32), self._files.columns["names"].data[group], program)

    def _programs(self, groups: Int32) -> tuple[Int32, np.ndarray]:
        """The program of each group, and whether that is a guard."""
        program: Int32 = self._files.columns["groups"].data["program"][groups]
        return program, self._files.columns["programs"].data["guards"][program] == 1

    def _table(self, entries: pa.Table, made: Records, quads: Int32, program: Int32) -> pa.Table:
        programs = self._files.columns["programs"].data[program]
        lengths = programs["rows"].astype(np.int64) * programs["solutions"]
        position: Int64 = entries["position"].to_numpy()[made["event"]]
        return pa.table(
            {
                "position": position,
                "subscription": pa.nulls(len(made), pa.int64()),
                "group": self._files.columns["names"].data[made["group"]],
                "value": made["value"].copy(),
                "solutions": _lists(quads, lengths),
                "terms": pa.nulls(len(made), pa.list_(pa.string())),
                "limit": pa.nulls(len(made), pa.string()),
            },
            schema=MATCHES,
        )


def _find_excess(made: Records) -> Records:
    """The pairs of event and group with more than `SOLUTIONS` solutions. The evaluator counts them for each
    subscription."""
    counts = np.bincount(made["event"], minlength=1)
    among = np.flatnonzero(counts[made["event"]] > SOLUTIONS) if counts.max() > SOLUTIONS else _NO_ROWS
    _, first, count = np.unique(_pair_numbers(made[among]), return_index=True, return_counts=True)
    return _pairs(made[among[first[count > SOLUTIONS]]])


def _masked_rows(event: Int32, program: Int32, masks: Sequence[VisibilityMask]) -> Flags:
    found = np.zeros(len(event), np.bool_)
    for each in masks:
        found |= each.events[event] & np.isin(program, each.programs)
    return found


def _pairs(rows: Records) -> Records:
    found = np.zeros(len(rows), arrays.PAIR)
    found["event"], found["group"] = rows["event"], rows["group"]
    return found


def pair_numbers(event: np.ndarray, group: np.ndarray) -> Int64:
    """A number for each pair of an event's index and a group's number."""
    joined: Int64 = event.astype(np.int64) << 32 | group.astype(np.int64)
    return joined


def _pair_numbers(pairs: Records) -> Int64:
    return pair_numbers(pairs["event"], pairs["group"])


def _lists(quads: np.ndarray, lengths: Int64) -> pa.ListArray:
    """The first numbers of each row as a list; null for length 0."""
    wanted = np.arange(quads.shape[1])[None, :] < lengths[:, None]
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = pa.array(lengths == 0)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(quads[wanted], pa.int32()), mask=mask)


def _new_buffer(room: int, width: int) -> arrays.MatchBuffer:
    return arrays.MatchBuffer(
        np.zeros(room, arrays.MATCH_ROW), np.zeros(room * width, np.int32), np.zeros(room, arrays.PAIR)
    )
