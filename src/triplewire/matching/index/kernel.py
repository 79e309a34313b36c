"""The kernel: one pass over a batch of events, compiled.

Each event is cut into terms and hashed; each of its quads is looked up under the kinds of access key that are in use;
a group that is found this way, and whose signature the event covers, is tried by backtracking over the event's few
quads. Texts decide in the end, not hashes.
"""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Bytes, Events, Found, Index, Int64, Scratch, UInt64
from triplewire.matching.index.compiled import compiled
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
from triplewire.matching.index.machine import UNKNOWN
from triplewire.matching.index.solving import HEADERS, solved

_TAB, _LINE = 9, 10


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
            rows, state = solved(group, access, quad, event, quads, events, index, scratch, found, rows)
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
