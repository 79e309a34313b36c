"""Probing: the access keys that an event has and under which there may be groups. Compiled.

Most keys of most quads are nobody's: that must be told quickly, so only kinds that are in use are made, and a sieve is
asked before the table.
"""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Events, Index, Scratch
from triplewire.matching.index.keys import (
    BEGINNING,
    BEGUN,
    EVERYTHING,
    FIRST,
    HEADER,
    KINDS,
    LONGEST,
    NAMED,
    OBJECT,
    PAIRED_QUADS,
    PREDICATE,
    PREDICATE_OBJECT,
    RELATED,
    SECOND,
    SUBJECT,
    SUBJECT_PREDICATE,
    UNCLEAR,
    VALUE,
    VALUED,
    bit_of,
    key_of,
    pair_kind,
    sieved,
    value_key,
)
from triplewire.matching.index.machine import measured
from triplewire.matching.index.numbers import DECIDED, UNDECIDED
from triplewire.matching.index.relations import REFLEXIVE, number_of, span
from triplewire.matching.index.solving import HEADERS
from triplewire.native.arrays import UInt64
from triplewire.native.functions import compiled, inlined, unfolded
from triplewire.native.hashes import hashed

_REFLEXIVE = np.array(REFLEXIVE)


@unfolded
def probed(event: int, quads: int, events: Events, index: Index, scratch: Scratch) -> tuple[int, np.uint64]:
    """Fill in the probes of an event, as far as there is room; how many there are, and its signature."""
    count, signature = 0, np.uint64(0)
    uses, terms, halves = index.uses, scratch.terms, scratch.halves
    for quad in range(quads):
        subject, predicate, object_ = terms[3 * quad].hash, terms[3 * quad + 1].hash, terms[3 * quad + 2].hash
        told = key_of(PREDICATE_OBJECT, predicate, object_)
        of = key_of(SUBJECT_PREDICATE, subject, predicate)
        named = key_of(PREDICATE, predicate, predicate)
        halves[2 * quad + PREDICATE_OBJECT] = told
        halves[2 * quad + SUBJECT_PREDICATE] = of
        signature |= bit_of(told) | bit_of(of) | bit_of(named)
        if uses[PREDICATE_OBJECT]:
            count = _noted(told, quad, index, scratch, count)
        if uses[SUBJECT_PREDICATE]:
            count = _noted(of, quad, index, scratch, count)
        if uses[PREDICATE]:
            count = _noted(named, quad, index, scratch, count)
        if uses[OBJECT]:
            count = _noted(key_of(OBJECT, object_, object_), quad, index, scratch, count)
        if uses[SUBJECT]:
            count = _noted(key_of(SUBJECT, subject, subject), quad, index, scratch, count)
        if uses[EVERYTHING]:
            count = _noted(key_of(EVERYTHING, np.uint64(0), np.uint64(0)), quad, index, scratch, count)
        if uses[BEGUN] and sieved(index, key_of(BEGUN, predicate, predicate)):
            count = _begun(quad, events, index, scratch, count)
        if uses[VALUED] and sieved(index, key_of(VALUED, predicate, predicate)):
            count = _valued(quad, events, index, scratch, count)
        if uses[NAMED]:
            count = _named(quad, events, index, scratch, count)
    if uses[HEADER]:
        count = _headed(event, events, index, scratch, count)
    if uses[FIRST]:
        count = _paired(quads, index, scratch, count)
    return count, signature


@inlined
def _noted(key: np.uint64, quad: int, index: Index, scratch: Scratch, count: int) -> int:
    """With one probe more, if the key may be there. Those for which there is no room are counted all the same."""
    if not sieved(index, key):
        return count
    if count < len(scratch.probes):
        scratch.probes[count].key = key
        scratch.probes[count].quad = quad
    return count + 1


@compiled
def _begun(quad: int, events: Events, index: Index, scratch: Scratch, count: int) -> int:
    """Keys of how the object of a quad begins."""
    object_, predicate = scratch.terms[3 * quad + 2], scratch.terms[3 * quad + 1].hash
    first = object_.start + 1
    for length in range(1, min(LONGEST + 1, object_.stop - first)):
        if index.uses[KINDS + length]:
            beginning = hashed(events.text, first, first + length)
            count = _noted(key_of(BEGINNING, predicate, beginning), quad, index, scratch, count)
    return count


@compiled
def _valued(quad: int, events: Events, index: Index, scratch: Scratch, count: int) -> int:
    """The key of the number that the object of a quad is."""
    predicate = scratch.terms[3 * quad + 1].hash
    state, value = measured(events.text, 3 * quad + 2, 0, scratch)
    if state == DECIDED:
        return _noted(value_key(predicate, value), quad, index, scratch, count)
    if state == UNDECIDED:
        return _noted(key_of(VALUE, predicate, UNCLEAR), quad, index, scratch, count)
    return count


@compiled
def _named(quad: int, events: Events, index: Index, scratch: Scratch, count: int) -> int:
    """Keys of what is in a relation with the object of a quad."""
    object_, predicate = scratch.terms[3 * quad + 2], scratch.terms[3 * quad + 1].hash
    name = -2
    for relation in range(len(REFLEXIVE)):
        kind = RELATED + relation
        if index.uses[kind] == 0 or not sieved(index, key_of(NAMED, predicate, np.uint64(kind))):
            continue
        if name == -2:
            name = number_of(index.relations, object_.hash, events.text, object_.start, object_.stop)
        if _REFLEXIVE[relation]:
            count = _noted(key_of(kind, predicate, object_.hash), quad, index, scratch, count)
        if name >= 0:
            begin, end = span(index.relations, relation, name)
            for place in range(begin, end):
                other = index.relations.names[index.relations.others[place]].hash
                count = _noted(key_of(kind, predicate, other), quad, index, scratch, count)
    return count


@compiled
def _headed(event: int, events: Events, index: Index, scratch: Scratch, count: int) -> int:
    """Keys of stream, source and application."""
    for header in range(-HEADERS, 0):
        literal = events.header[event * HEADERS - header - 1]
        named = events.literal_hash[literal] if literal >= 0 else np.uint64(0)
        count = _noted(key_of(HEADER, np.uint64(-header), named), header, index, scratch, count)
    return count


@compiled
def _paired(quads: int, index: Index, scratch: Scratch, count: int) -> int:
    """Keys of two quads; where there are many quads, of those that may be the first of two."""
    halves = scratch.halves
    for one in range(2 * quads):
        key = key_of(FIRST, halves[one], halves[one])
        if not sieved(index, key):
            continue
        if quads > PAIRED_QUADS:
            count = _noted(key, one // 2, index, scratch, count)
            continue
        for other in range(2 * quads):
            if other == one or not sieved(index, key_of(SECOND, halves[other], halves[other])):
                continue
            both = key_of(pair_kind(one & 1, other & 1), halves[one], halves[other])
            if not _before(halves, other):
                count = _noted(both, one // 2, index, scratch, count)
    return count


@compiled
def _before(halves: UInt64, place: int) -> bool:
    """Has an earlier quad the same half? What it led to is tried for that."""
    for other in range(place & 1, place, 2):  # noqa: SIM110 (numba knows no generators)
        if halves[other] == halves[place]:
            return True
    return False
