"""Access keys: under what a group is found, and the table that they are in."""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Index
from triplewire.matching.index.relations import RELATIONS
from triplewire.native.functions import inlined
from triplewire.native.hashes import paired
from triplewire.native.words import bits_of

PREDICATE_OBJECT, SUBJECT_PREDICATE, PREDICATE, OBJECT, SUBJECT, HEADER, EVERYTHING, BEGINNING = range(8)
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
BEGUN, NAMED, VALUED = 15, 16, 17
"""Kinds of keys that mark predicates: how their objects begin is a key, what is in a relation with them, or which
number they are."""
RELATED = 18
"""The first of the kinds of key of a predicate and what is in a relation with the object, one for each relation."""
KINDS = RELATED + len(RELATIONS)
PAIRED_QUADS = 32
"""Quads of an event up to which all pairs are tried."""
LONGEST = 32
"""Bytes of a beginning that count. Which lengths there are is told behind the kinds that are in use."""

UNCLEAR = np.uint64(1)
"""In place of a number that is not read here: the bits of one that no event and no subscription is likely to hold."""

_BITS = np.uint64(63)
_ONE = np.uint64(1)
_SHIFT, _SIEVED = np.uint64(7), np.uint64(20)


@inlined
def key_of(kind: int, one: np.uint64, other: np.uint64) -> np.uint64:
    """The access key of two hashes."""
    return paired(one, other, np.uint64(kind + 1))


@inlined
def value_key(predicate: np.uint64, value: float) -> np.uint64:
    """The access key of a number, in whichever way it is written."""
    return key_of(VALUE, predicate, bits_of(value + 0.0))  # type: ignore[call-arg]


@inlined
def pair_kind(one: int, other: int) -> int:
    """The kind of key for two halves of these kinds."""
    return PAIRS + 2 * one + other


@inlined
def bit_of(key: np.uint64) -> np.uint64:
    """The bit of a signature that a key sets."""
    return _ONE << (key & _BITS)


@inlined
def place_of(index: Index, key: np.uint64) -> int:
    """Where a key is in the table, or where it would be."""
    mask = len(index.keys) - 1
    place = int(np.int64(key >> _SHIFT)) & mask
    while index.keys[place].head >= 0 and index.keys[place].key != key:
        place = (place + 1) & mask
    return place


@inlined
def sieved(index: Index, key: np.uint64) -> bool:
    """May the key be there?"""
    word = np.int64(key >> _SIEVED) & (len(index.sieve) - 1)
    return (index.sieve[word] >> (key & _BITS)) & _ONE == _ONE


@inlined
def sift(index: Index, key: np.uint64) -> None:
    """Let the sieve know a key."""
    word = np.int64(key >> _SIEVED) & (len(index.sieve) - 1)
    index.sieve[word] |= _ONE << (key & _BITS)
