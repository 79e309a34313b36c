"""The kernel: one pass over a batch of events, compiled.

Each event is cut into terms and hashed; each of its quads is looked up under the kinds of access key that are in use;
a group that is found this way, and whose signature the event covers, is tried by backtracking over the event's few
quads. Texts decide in the end, not hashes.
"""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Bytes, Events, Found, Index, Int64, Scratch, UInt64
from triplewire.matching.index.compiled import compiled, inlined
from triplewire.matching.index.hashes import hashed
from triplewire.matching.index.keys import (
    ALONE,
    EVERYTHING,
    HEADER,
    MIDDLE,
    OBJECT,
    PAIRED_QUADS,
    PAIRS,
    PREDICATE,
    PREDICATE_OBJECT,
    SHORT,
    SUBJECT_PREDICATE,
    bit_of,
    key_of,
    pair_kind,
    place_of,
    sieved,
)
from triplewire.matching.index.machine import FAIL, PASS, UNKNOWN, at_threshold, beats, constant_of, passes, same
from triplewire.matching.index.programs import Slot

HEADERS = 3
"""Headers that patterns can name: stream, source and application."""

_VARIABLE = int(Slot.VARIABLE)
_TAB, _LINE = 9, 10
_TRIES = 20_000
"""Rows that are moved on for one group and event, before somebody slower takes over."""


@compiled
def longest(text: Bytes, start: Int64) -> int:
    """Terms of the event that has most."""
    most = 3
    for event in range(len(start) - 1):
        lines = 1
        for place in range(start[event], start[event + 1]):
            if text[place] == _LINE:
                lines += 1
        most = max(most, 3 * lines)
    return most


@compiled
def match(events: Events, first: int, index: Index, scratch: Scratch, found: Found) -> tuple[int, int, int]:
    """Match events from the first on, as long as there is room for what is found; the event to go on with, how many
    rows were found, and how many pairs of event and program are for somebody slower."""
    rows, slow = 0, 0
    terms, uses = scratch.terms, index.uses
    for event in range(first, len(events.start) - 1):
        before, slow_before = rows, slow
        quads = _cut(events, event, scratch)
        signature = _signature(quads, scratch)
        for quad in range(-HEADERS, quads):
            for kind in range(PAIRS):
                # most keys of most quads are nobody's: that must be told quickly
                if uses[kind] == 0 or (quad < 0) != (kind == HEADER):
                    continue
                if kind == PREDICATE_OBJECT:
                    key = key_of(kind, terms[3 * quad + 1].hash, terms[3 * quad + 2].hash)
                elif kind == SUBJECT_PREDICATE:
                    key = key_of(kind, terms[3 * quad].hash, terms[3 * quad + 1].hash)
                elif kind == HEADER:
                    literal = events.header[event * HEADERS - quad - 1]
                    key = key_of(kind, np.uint64(-quad), events.literal_hash[literal] if literal >= 0 else np.uint64(0))
                elif kind == EVERYTHING:
                    key = key_of(kind, np.uint64(0), np.uint64(0))
                elif kind >= SHORT:
                    length = 4 if kind == SHORT else 8 if kind == MIDDLE else 16
                    first_byte = terms[3 * quad + 2].start + 1
                    if first_byte + length >= terms[3 * quad + 2].stop:
                        continue
                    key = key_of(kind, terms[3 * quad + 1].hash, hashed(events.text, first_byte, first_byte + length))
                else:
                    term = 3 * quad + (1 if kind == PREDICATE else 2 if kind == OBJECT else 0)
                    key = key_of(kind, terms[term].hash, terms[term].hash)
                if sieved(index, key):
                    rows, slow = _tried(key, quad, event, quads, signature, events, index, scratch, found, rows, slow)
                    if rows < 0:
                        return event, before, slow_before
        if uses[ALONE]:
            rows, slow = _paired(event, quads, signature, events, index, scratch, found, rows, slow)
            if rows < 0:
                return event, before, slow_before
    return len(events.start) - 1, rows, slow


@compiled
def _paired(
    event: int,
    quads: int,
    signature: np.uint64,
    events: Events,
    index: Index,
    scratch: Scratch,
    found: Found,
    rows: int,
    slow: int,
) -> tuple[int, int]:
    """Try the groups whose access key is of two quads: by all pairs, or by the first alone where there are many."""
    terms, keys = scratch.terms, scratch.keys
    for quad in range(quads):
        subject, predicate = terms[3 * quad].hash, terms[3 * quad + 1].hash
        keys[2 * quad + PREDICATE_OBJECT] = key_of(PREDICATE_OBJECT, predicate, terms[3 * quad + 2].hash)
        keys[2 * quad + SUBJECT_PREDICATE] = key_of(SUBJECT_PREDICATE, subject, predicate)
    for one in range(2 * quads):
        if quads > PAIRED_QUADS:
            key = key_of(ALONE, keys[one], keys[one])
            if sieved(index, key):
                rows, slow = _tried(key, one // 2, event, quads, signature, events, index, scratch, found, rows, slow)
                if rows < 0:
                    return rows, slow
            continue
        for other in range(2 * quads):
            kind = pair_kind(one & 1, other & 1)
            if one == other or index.uses[kind] == 0:
                continue
            key = key_of(kind, keys[one], keys[other])
            if sieved(index, key) and not _before(keys, other):
                rows, slow = _tried(key, one // 2, event, quads, signature, events, index, scratch, found, rows, slow)
                if rows < 0:
                    return rows, slow
    return rows, slow


@compiled
def _before(keys: UInt64, place: int) -> bool:
    """Has an earlier quad the same key? What it led to was tried then."""
    for other in range(place & 1, place, 2):  # noqa: SIM110 (numba knows no generators)
        if keys[other] == keys[place]:
            return True
    return False


@compiled
def _cut(events: Events, event: int, scratch: Scratch) -> int:
    """Cut an event into terms and hash them; how many quads there are."""
    text = events.text
    place, stop = events.start[event], events.start[event + 1]
    term = 0
    while place < stop:
        end = place
        while end < stop and text[end] != _TAB and text[end] != _LINE:
            end += 1
        found = scratch.terms[term]
        found.hash = hashed(text, place, end)
        found.start = place
        found.stop = end
        found.numeric = -1
        found.timely = -1
        term += 1
        place = end + 1
    return term // 3


@compiled
def _signature(quads: int, scratch: Scratch) -> np.uint64:
    """The bits of the keys of an event that signatures of groups are made of."""
    found = np.uint64(0)
    for term in range(0, 3 * quads, 3):
        subject, predicate, object_ = (
            scratch.terms[term].hash,
            scratch.terms[term + 1].hash,
            scratch.terms[term + 2].hash,
        )
        found |= bit_of(key_of(PREDICATE, predicate, predicate))
        found |= bit_of(key_of(PREDICATE_OBJECT, predicate, object_))
        found |= bit_of(key_of(SUBJECT_PREDICATE, subject, predicate))
    return found


@compiled
def _tried(
    key: np.uint64,
    quad: int,
    event: int,
    quads: int,
    signature: np.uint64,
    events: Events,
    index: Index,
    scratch: Scratch,
    found: Found,
    rows: int,
    slow: int,
) -> tuple[int, int]:
    """Try the groups of an access key that a quad, or a header, has; rows -1 where there is no room for more."""
    posting = index.keys[place_of(index, key)].head
    while posting >= 0:
        group = index.postings[posting].group
        if index.groups[group].members > 0 and index.groups[group].signature & ~signature == 0:
            access = index.postings[posting].row
            rows, state = _solved(group, access, quad, event, quads, events, index, scratch, found, rows)
            if rows < 0:
                return -1, slow
            if state == UNKNOWN:
                if slow == len(found.slow):
                    return -1, slow
                found.slow[slow].event = event
                found.slow[slow].program = index.groups[group].program
                slow += 1
        posting = index.postings[posting].following
    return rows, slow


@inlined
def _row_at(depth: int, access: int) -> int:
    """Rows are tried in their order, but for the access row, which comes first."""
    if depth == 0:
        return access
    return depth - 1 if depth <= access else depth


@compiled
def _solved(
    group: int,
    access: int,
    quad: int,
    event: int,
    quads: int,
    events: Events,
    index: Index,
    scratch: Scratch,
    found: Found,
    rows: int,
) -> tuple[int, int]:
    """Write a row for each solution of a group that has its access row at a quad: one for all, where solutions are not
    asked for. Rows -1 where there is no room."""
    program = index.groups[group].program
    count = index.programs[program].rows
    once = index.programs[program].solutions == 0
    decided = index.programs[program].threshold < 0
    if once and decided and _known(group, event, scratch, found, rows) >= 0:
        return rows, PASS
    _unbind(0, program, index, scratch)
    scratch.cursor[0] = quad
    if not _attached(access, quad, 0, event, program, group, events, index, scratch):
        return rows, FAIL
    depth, tries, verdict = 1, 0, FAIL
    scratch.cursor[1] = -1
    while depth > 0:
        if depth == count:
            state, value = _verdict(event, program, group, access, events, index, scratch)
            if state == UNKNOWN:
                return rows, UNKNOWN
            if state == PASS:
                verdict = PASS
                rows = _written(group, event, value, program, access, index, scratch, found, rows)
                if rows < 0 or (once and decided):
                    return rows, PASS
            depth -= 1
            continue
        tries += 1
        if tries > _TRIES:
            return rows, UNKNOWN
        if _moved(depth, access, event, quads, program, group, events, index, scratch):
            depth += 1
            scratch.cursor[depth] = -1
        else:
            depth -= 1
    return rows, verdict


@inlined
def _known(group: int, event: int, scratch: Scratch, found: Found, rows: int) -> int:
    """The row that the group has for this event; -1 for none."""
    row = scratch.seen[group]
    return row if row < rows and found.rows[row].group == group and found.rows[row].event == event else -1


@compiled
def _moved(
    depth: int,
    access: int,
    event: int,
    quads: int,
    program: int,
    group: int,
    events: Events,
    index: Index,
    scratch: Scratch,
) -> bool:
    """Move the row at a depth on to the next quad that fits what is bound; whether there is one."""
    row = _row_at(depth, access)
    header = index.places[3 * (index.programs[program].first_row + row)].header
    if header < 0:
        first = scratch.cursor[depth] == -1
        scratch.cursor[depth] = 0
        return first and _attached(row, header, depth, event, program, group, events, index, scratch)
    for quad in range(scratch.cursor[depth] + 1, quads):
        _unbind(depth, program, index, scratch)
        if _attached(row, quad, depth, event, program, group, events, index, scratch):
            scratch.cursor[depth] = quad
            return True
    _unbind(depth, program, index, scratch)
    return False


@inlined
def _unbind(depth: int, program: int, index: Index, scratch: Scratch) -> None:
    """Forget what was bound at this depth and below."""
    for variable in range(index.programs[program].variables):
        if scratch.variables[variable].term < 0 or scratch.variables[variable].depth >= depth:
            scratch.variables[variable].term = -1


@inlined
def _attached(
    row: int,
    quad: int,
    depth: int,
    event: int,
    program: int,
    group: int,
    events: Events,
    index: Index,
    scratch: Scratch,
) -> bool:
    """Does a quad fit a row, by hashes? Its variables are then bound."""
    number = index.programs[program].first_row + row
    if quad < 0 or index.places[3 * number].header < 0:
        if index.places[3 * number].header != quad:
            return False
        literal = events.header[event * HEADERS - quad - 1]
        slot, name = index.places[3 * number + 2].slot, index.places[3 * number + 2].number
        constant = constant_of(index, program, group, slot, name)
        return literal >= 0 and index.constants[constant].hash == events.literal_hash[literal]
    for place in range(3):
        slot, name = index.places[3 * number + place].slot, index.places[3 * number + place].number
        term = scratch.terms[3 * quad + place].hash
        if slot != _VARIABLE:
            if index.constants[constant_of(index, program, group, slot, name)].hash != term:
                return False
        elif scratch.variables[name].term < 0:
            scratch.variables[name].term = 3 * quad + place
            scratch.variables[name].depth = depth
        elif scratch.terms[scratch.variables[name].term].hash != term:
            return False
    return True


@compiled
def _verdict(
    event: int, program: int, group: int, access: int, events: Events, index: Index, scratch: Scratch
) -> tuple[int, float]:
    """Is the solution at hand one, by texts and filters, and with which value for the threshold?"""
    state, value = at_threshold(events, program, group, index, scratch)
    if state == FAIL:
        return FAIL, value
    filtered = passes(events, program, group, index, scratch)
    if filtered != PASS and filtered != UNKNOWN:
        return FAIL, value
    if not _verified(event, program, group, access, events, index, scratch):
        return FAIL, value
    return max(state, filtered), value


@compiled
def _verified(
    event: int, program: int, group: int, access: int, events: Events, index: Index, scratch: Scratch
) -> bool:
    """Are the terms the same that have the same hashes?"""
    for depth in range(index.programs[program].rows):
        row = _row_at(depth, access)
        number = index.programs[program].first_row + row
        header = index.places[3 * number].header
        for place in range(2 if header < 0 else 0, 3):
            slot, name = index.places[3 * number + place].slot, index.places[3 * number + place].number
            if header < 0:
                literal = events.header[event * HEADERS - header - 1]
                text, start, stop = (
                    events.literal_text,
                    events.literal_start[literal],
                    events.literal_start[literal + 1],
                )
            else:
                term = 3 * scratch.cursor[depth] + place
                text, start, stop = events.text, scratch.terms[term].start, scratch.terms[term].stop
            if slot == _VARIABLE:
                bound = scratch.terms[scratch.variables[name].term]
                first, length = bound.start, bound.stop - bound.start
                if not same(text, start, stop, events.text, first, length):
                    return False
            else:
                constant = constant_of(index, program, group, slot, name)
                first, length = index.constants[constant].start, index.constants[constant].length
                if not same(text, start, stop, index.pool, first, length):
                    return False
    return True


@compiled
def _written(
    group: int,
    event: int,
    value: float,
    program: int,
    access: int,
    index: Index,
    scratch: Scratch,
    found: Found,
    rows: int,
) -> int:
    """Write a row for the solution at hand, or let it better the one that there is; how many rows there are then."""
    once = index.programs[program].solutions == 0
    known = _known(group, event, scratch, found, rows) if once else -1
    if known >= 0:
        if beats(index.programs[program].direction, value, found.rows[known].value):
            found.rows[known].value = value
        return rows
    if rows == len(found.rows):
        return -1
    row_ = found.rows[rows]
    row_.event = event
    row_.group = group
    row_.value = value
    width = len(found.quads) // len(found.rows)
    for depth in range(index.programs[program].rows):
        row = _row_at(depth, access)
        header = index.places[3 * (index.programs[program].first_row + row)].header
        found.quads[rows * width + row] = header if header < 0 else scratch.cursor[depth]
    scratch.seen[group] = rows
    return rows + 1
