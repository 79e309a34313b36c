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
from triplewire.matching.index.programs import RELATIONS

PREDICATE_OBJECT, SUBJECT_PREDICATE, PREDICATE, OBJECT, SUBJECT, HEADER, EVERYTHING, PREFIX = range(8)
"""Kinds of key: parts of a quad; a header; any event; a predicate with a prefix of the object."""

PAIRS = 8
"""The first of four kinds of key of two quads, whose halves are each `PREDICATE_OBJECT` or `SUBJECT_PREDICATE`."""
FIRST, SECOND = 12, 13
"""Kinds of key that mark halves of such pairs: only marked ones are paired. If an event has too many quads to pair,
groups are looked up by the first half alone."""
VALUE = 14
"""The kind of key of a predicate and the number that the object is."""
HAS_PREFIX, HAS_RELATION, HAS_VALUE, HAS_SUFFIX = 15, 16, 17, 18
"""Kinds of key that mark predicates: those of whose objects prefixes, related names, numbers, or suffixes are keys."""
SUFFIX = 19
"""The kind of key of a predicate with a suffix of the object."""
RELATED = 20
"""The first of the kinds of key of a predicate and a name related to the object, one for each relation."""
KINDS = RELATED + len(RELATIONS)
PAIRED_QUADS = 32
"""The most quads of an event of which all pairs are tried."""
LONGEST_AFFIX = 32
"""The most bytes of a prefix or suffix that a key covers. The lengths in use are flagged in `uses` behind the kinds."""
PREFIX_LENGTHS = KINDS
SUFFIX_LENGTHS = PREFIX_LENGTHS + LONGEST_AFFIX + 1
USES = SUFFIX_LENGTHS + LONGEST_AFFIX + 1
"""The size of `uses`."""

UNREAD_NUMBER = np.uint64(1)
"""The bits that stand for all numbers that are not parsed here; no event and no subscription is likely to have them."""

_BITS = np.uint64(63)
_ONE = np.uint64(1)
_SHIFT, _FILTER_SHIFT = np.uint64(7), np.uint64(20)


@inlined
def key_of(kind: int, one: np.uint64, other: np.uint64) -> np.uint64:
    return hash_pair(one, other, np.uint64(kind + 1))


@inlined
def value_key(predicate: np.uint64, value: float) -> np.uint64:
    """The access key of a number, whatever its lexical form."""
    return key_of(VALUE, predicate, double_bits(value + 0.0))  # type: ignore[call-arg]


@inlined
def pair_kind(one: int, other: int) -> int:
    return PAIRS + 2 * one + other


@inlined
def bit_of(key: np.uint64) -> np.uint64:
    """The bit of a signature that a key sets."""
    return _ONE << (key & _BITS)


@inlined
def find_key(index: IndexArrays, key: np.uint64) -> int:
    """The slot of a key in the table, or the free slot where it would be."""
    mask = len(index.keys) - 1
    slot = int(np.int64(key >> _SHIFT)) & mask
    while index.keys[slot].head >= 0 and index.keys[slot].key != key:
        slot = (slot + 1) & mask
    return slot


@inlined
def may_contain(index: IndexArrays, key: np.uint64) -> bool:
    """May the table have the key?"""
    word = np.int64(key >> _FILTER_SHIFT) & (len(index.bloom) - 1)
    return (index.bloom[word] >> (key & _BITS)) & _ONE == _ONE


@inlined
def add_to_filter(index: IndexArrays, key: np.uint64) -> None:
    word = np.int64(key >> _FILTER_SHIFT) & (len(index.bloom) - 1)
    index.bloom[word] |= _ONE << (key & _BITS)


COUNTERS = 1 << 14
SAMPLE_EVERY = 32
"""One event of so many is counted."""
_OLD = 1 << 20
"""Events after which the counters are halved, so that old frequencies fade."""
_KEYS = 5
"""Keys of each quad that are counted."""
_MASK = np.uint64(COUNTERS - 1)
_MILLION = 1_000_000


@compiled
def count_keys(quads: int, index: IndexArrays, scratch: MatchScratch) -> None:
    """Count the keys of the current event. Other processes may count at the same time: counts need not be exact."""
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
    """The number of events in a million that have a key, or a little more. Keys share counters, so twice the average
    counter is subtracted."""
    count = int(index.sample[key & _MASK]) - 2 * (index.sampled[1] // COUNTERS)
    return 1 + max(0, count) * _MILLION // max(1, index.sampled[0])


def age_counters(index: IndexArrays) -> None:
    """Halve the counters when many events were counted."""
    if index.sampled[0] > _OLD:
        index.sample[:] //= 2
        index.sampled[:] //= 2
