"""Access keys: the hash under which a group is found, the key table with its Bloom filter, and a sketch of key
frequencies.

The sketch counts the keys of a sample of events in counters of fixed number; it tells which of a group's keys is the
most selective.
"""

from __future__ import annotations

import numpy as np

from triplewire.kernels.compiler import compiled, inlined
from triplewire.kernels.words import double_bits, hash_pair
from triplewire.matching.index.arrays import IndexArrays, MatchScratch
from triplewire.matching.index.relations import RELATIONS

PREDICATE_OBJECT, SUBJECT_PREDICATE, PREDICATE, OBJECT, SUBJECT, HEADER, EVERYTHING, PREFIX = range(8)
"""Kinds of key: what of a quad they are of; or of a header; or of anything; or of a predicate and how the object
begins."""

PAIRS = 8
"""The first of four kinds of key that are of two quads: one half and the other are each `PREDICATE_OBJECT` or
`SUBJECT_PREDICATE`."""
FIRST, SECOND = 12, 13
"""Kinds of the halves of such a pair: only what is a first and what is a second half is paired at all. Where an event
has too many quads for that, groups are found by the first alone."""
VALUE = 14
"""The kind of key of a predicate and the number that the object is."""
HAS_PREFIX, HAS_RELATION, HAS_VALUE = 15, 16, 17
"""Kinds of keys that mark predicates: how their objects begin is a key, what is in a relation with them, or which
number they are."""
RELATED = 18
"""The first of the kinds of key of a predicate and what is in a relation with the object, one for each relation."""
KINDS = RELATED + len(RELATIONS)
PAIRED_QUADS = 32
"""Quads of an event up to which all pairs are tried."""
LONGEST_PREFIX = 32
"""Bytes of a beginning that count. Which lengths there are is told behind the kinds that are in use."""

UNREAD_NUMBER = np.uint64(1)
"""In place of a number that is not read here: the bits of one that no event and no subscription is likely to hold."""

_BITS = np.uint64(63)
_ONE = np.uint64(1)
_SHIFT, _SIEVED = np.uint64(7), np.uint64(20)


@inlined
def key_of(kind: int, one: np.uint64, other: np.uint64) -> np.uint64:
    """The access key of two hashes."""
    return hash_pair(one, other, np.uint64(kind + 1))


@inlined
def value_key(predicate: np.uint64, value: float) -> np.uint64:
    """The access key of a number, in whichever way it is written."""
    return key_of(VALUE, predicate, double_bits(value + 0.0))  # type: ignore[call-arg]


@inlined
def pair_kind(one: int, other: int) -> int:
    """The kind of key for two halves of these kinds."""
    return PAIRS + 2 * one + other


@inlined
def bit_of(key: np.uint64) -> np.uint64:
    """The bit of a signature that a key sets."""
    return _ONE << (key & _BITS)


@inlined
def find_key(index: IndexArrays, key: np.uint64) -> int:
    """Where a key is in the table, or where it would be."""
    mask = len(index.keys) - 1
    place = int(np.int64(key >> _SHIFT)) & mask
    while index.keys[place].head >= 0 and index.keys[place].key != key:
        place = (place + 1) & mask
    return place


@inlined
def may_contain(index: IndexArrays, key: np.uint64) -> bool:
    """May the key be there?"""
    word = np.int64(key >> _SIEVED) & (len(index.sieve) - 1)
    return (index.sieve[word] >> (key & _BITS)) & _ONE == _ONE


@inlined
def add_to_filter(index: IndexArrays, key: np.uint64) -> None:
    """Let the sieve know a key."""
    word = np.int64(key >> _SIEVED) & (len(index.sieve) - 1)
    index.sieve[word] |= _ONE << (key & _BITS)


# Samples: how often events have a key, counted for one event in some, in a sketch of fixed size. Compiled.

COUNTERS = 1 << 14
SAMPLE_EVERY = 32
"""Of so many events one is counted."""
_OLD = 1 << 20
"""Events after which what was counted counts half, so that old habits are forgotten."""
_KEYS = 5
"""Of a quad."""
_MASK = np.uint64(COUNTERS - 1)
_MILLION = 1_000_000


@compiled
def count_keys(quads: int, index: IndexArrays, scratch: MatchScratch) -> None:
    """Count the keys of the event at hand. Others may count at the same time: it need not be exact."""
    index.sampled[0] += 1
    index.sampled[1] += _KEYS * quads
    for quad in range(quads):
        subject, predicate = scratch.terms[3 * quad].hash, scratch.terms[3 * quad + 1].hash
        object_ = scratch.terms[3 * quad + 2].hash
        index.sample[scratch.halves[2 * quad] & _MASK] += 1
        index.sample[scratch.halves[2 * quad + 1] & _MASK] += 1
        index.sample[key_of(PREDICATE, predicate, predicate) & _MASK] += 1
        index.sample[key_of(OBJECT, object_, object_) & _MASK] += 1
        index.sample[key_of(SUBJECT, subject, subject) & _MASK] += 1


@compiled
def estimate_frequency(index: IndexArrays, key: np.uint64) -> int:
    """How many events of a million have a key, or a little more. Keys share counters: what each of these has on the
    average is not counted, twice over."""
    count = int(index.sample[key & _MASK]) - 2 * (index.sampled[1] // COUNTERS)
    return 1 + max(0, count) * _MILLION // max(1, index.sampled[0])


def age_counters(index: IndexArrays) -> None:
    """Let what was counted long ago count less."""
    if index.sampled[0] > _OLD:
        index.sample[:] //= 2
        index.sampled[:] //= 2
