"""The kernel: one pass over a batch of events, compiled.

Each event is cut into terms and hashed; the access keys that it has are looked up; a group that is found this way, and
whose signature the event covers, is tried by backtracking over the event's few quads. Texts decide in the end, not
hashes.
"""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Events, Found, Index, Scratch
from triplewire.matching.index.cutting import cut
from triplewire.matching.index.keys import place_of
from triplewire.matching.index.machine import UNKNOWN
from triplewire.matching.index.probing import probed
from triplewire.matching.index.samples import EVERY, sampled
from triplewire.matching.index.solving import solved
from triplewire.native.functions import compiled, unfolded


@compiled
def match(events: Events, first: int, index: Index, scratch: Scratch, found: Found) -> tuple[int, int, int]:
    """Match events from the first on, as long as there is room for their terms, their keys and what is found; the
    event to go on with, how many rows were found, and how many pairs of event and group are for somebody slower."""
    rows, slow = 0, 0
    for event in range(first, len(events.start) - 1):
        before, slow_before = rows, slow
        terms = cut(events.text, events.start[event], events.start[event + 1], scratch.terms)
        if terms < 0:
            return event, rows, slow
        quads = terms // 3
        count, signature = probed(event, quads, events, index, scratch)
        if count > len(scratch.probes):
            return event, rows, slow
        if event % EVERY == 0:
            sampled(quads, index, scratch)
        for probe in range(count):
            rows, slow = _tried(probe, signature, event, quads, events, index, scratch, found, rows, slow)
            if rows < 0:
                return event, before, slow_before
    return len(events.start) - 1, rows, slow


@unfolded
def _tried(
    probe: int,
    signature: np.uint64,
    event: int,
    quads: int,
    events: Events,
    index: Index,
    scratch: Scratch,
    found: Found,
    rows: int,
    slow: int,
) -> tuple[int, int]:
    """Try the groups of an access key that a quad, or a header, has; rows -1 where there is no room for more."""
    quad = scratch.probes[probe].quad
    posting = index.keys[place_of(index, scratch.probes[probe].key)].head
    while posting >= 0:
        group = index.postings[posting].group
        # a group that came after the batch had begun is for the next one
        there = group < len(scratch.seen) and index.groups[group].members > 0
        if there and index.groups[group].signature & ~signature == 0:
            access = index.postings[posting].row
            rows, state = solved(group, access, quad, event, quads, events, index, scratch, found, rows)
            if rows < 0:
                return -1, slow
            if state == UNKNOWN:
                if slow == len(found.slow):
                    return -1, slow
                found.slow[slow].event = event
                found.slow[slow].group = group
                slow += 1
        posting = index.postings[posting].following
    return rows, slow
