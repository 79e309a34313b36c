"""Routing: what becomes of the triples of events when they come in.

A triple is sent, by each port that takes it, to where those are that may wait for it. Where it begins a chain it is
a
partial result at once, and that is sent on. What no query can use goes nowhere.
"""

from __future__ import annotations

import numpy as np

from triplewire.kernels.compiler import Bytes, compiled, inlined
from triplewire.kernels.words import hash_bytes, hash_pair, same_bytes
from triplewire.ongoing.network.arrays import PROBE, SPREAD, TRIPLE, Entries, Out, Plan
from triplewire.ongoing.network.emitting import LIFT, NEW, SAME, address_of, copied, told, with_slot
from triplewire.ongoing.network.tables import has, slot_of, some

_TAB, _LINE = np.uint8(9), np.uint8(10)


@compiled
def routed(plan: Plan, entries: Entries, first: int, out: Out) -> int:
    """Route events from a number on until there is no more room; the number of the first that was not routed."""
    for each in range(first, len(entries.position)):
        rows, size, answers, said = out.counts[0], out.counts[1], out.counts[2], out.counts[3]
        if not _event(plan, entries, each, out):
            out.counts[0], out.counts[1], out.counts[2], out.counts[3] = rows, size, answers, said
            return each
    return len(entries.position)


@compiled
def _event(plan: Plan, entries: Entries, event: int, out: Out) -> bool:
    text, place, stop = entries.text, entries.start[event], entries.start[event + 1]
    while place < stop:
        one = _end(text, place, stop)
        two = _end(text, one + 1, stop)
        three = _end(text, two + 1, stop)
        if not _triple(plan, entries, event, out, place, one, two, three):
            return False
        place = three + 1
    return True


@inlined
def _end(text: Bytes, place: int, stop: int) -> int:
    """Where the term ends that begins at a place."""
    while place < stop and text[place] != _TAB and text[place] != _LINE:
        place += 1
    return place


@compiled
def _triple(plan: Plan, entries: Entries, event: int, out: Out, start: int, one: int, two: int, three: int) -> bool:
    """The triple between `start` and `three`, with a tab at `one` and one at `two`."""
    text = entries.text
    predicate = hash_bytes(text, one + 1, two)
    found = plan.by_predicate[slot_of(plan.by_predicate, some(predicate))]
    if found.key == 0 and plan.anywhere[1] == 0:
        return True
    hashes = (hash_bytes(text, start, one), predicate, hash_bytes(text, two + 1, three))
    if found.key != 0:
        for port in range(found.head, found.head + found.count):
            record = plan.ports[port]
            named = same_bytes(text, one + 1, two, plan.pool, record.predicate_start, record.predicate_length)
            if named and not _entered(plan, entries, event, out, port, hashes, start, one, two, three):
                return False
    for port in range(plan.anywhere[0], plan.anywhere[0] + plan.anywhere[1]):
        if not _entered(plan, entries, event, out, port, hashes, start, one, two, three):
            return False
    return True


@compiled
def _entered(
    plan: Plan,
    entries: Entries,
    event: int,
    out: Out,
    port: int,
    hashes: tuple[np.uint64, np.uint64, np.uint64],
    start: int,
    one: int,
    two: int,
    three: int,
) -> bool:
    """By one port."""
    record = plan.ports[port]
    if not entries.scopes[event, record.scope]:
        return True
    out.seen[port] += 1
    if not _is_wanted(plan, port, hashes):
        return True
    if record.roots >= 0:
        for each in range(record.first_root, record.first_root + record.roots):
            if not _begun(plan, entries, event, out, plan.roots[each], start, one, two, three):
                return False
        return True
    key = record.id
    for place in range(3):
        if record.joins >> place & 1:
            key = hash_pair(key, hashes[place], np.uint64(place))
    home = address_of(plan, key, record.id)
    if not has(plan.heavy, some(key)):
        return _sent(entries, event, out, key, record.id, home, TRIPLE, start, three)
    whole = hash_pair(hash_pair(hashes[0], hashes[1], key), hashes[2], key)
    away = address_of(plan, whole, whole)
    return _sent(entries, event, out, key, record.id, away, SPREAD, start, three) and _sent(
        entries, event, out, key, record.id, home, PROBE, start, three
    )


@compiled
def _sent(
    entries: Entries,
    event: int,
    out: Out,
    key: np.uint64,
    port: np.uint64,
    address: int,
    kind: int,
    start: int,
    stop: int,
) -> bool:
    """A triple, to where it is to be met. False where there is no room."""
    count, base = out.counts[0], out.counts[1]
    if count == len(out.rows) or base + stop - start > len(out.text):
        return False
    row = out.rows[count]
    row.key, row.id, row.kind, row.address = key, port, kind, address
    row.oldest = row.newest = entries.position[event]
    row.began = row.ended = entries.time[event]
    row.start, row.length = base, stop - start
    out.counts[0] = count + 1
    out.counts[1] = copied(entries.text, start, stop, out.text, base)
    return True


@inlined
def _is_wanted(plan: Plan, port: int, hashes: tuple[np.uint64, np.uint64, np.uint64]) -> bool:
    """Has some query the constants that stand where constants are asked for?"""
    record = plan.ports[port]
    if record.lifts == 0:
        return True
    key = record.id
    for place in range(3):
        if record.lifts >> place & 1:
            key = hash_pair(key, hashes[place], np.uint64(place))
    return has(plan.wanted, some(key))


@compiled
def _begun(
    plan: Plan, entries: Entries, event: int, out: Out, node: int, start: int, one: int, two: int, three: int
) -> bool:
    """A chain, with the triple as its first."""
    text = entries.text
    begins, ends = (start, one + 1, two + 1), (one, two, three)
    base = out.counts[1]
    if base + three - start + 3 > len(out.text):
        return False
    end, count = base, 0
    for place in range(3):
        role, reference = plan.roles[3 * node + place], plan.references[3 * node + place]
        if role == SAME:
            length = ends[reference] - begins[reference]
            if not same_bytes(text, begins[place], ends[place], text, begins[reference], length):
                return True
        elif role in (NEW, LIFT):
            end = with_slot(out, base, end, count, text, begins[place], ends[place])
            count += 1
    at, time = entries.position[event], entries.time[event]
    return told(plan, out, node, base, end, at, at, time, time)
