"""Hashes of terms: 64 bits, the same in every process of a machine. Equal hashes are only a hint; texts decide."""

from __future__ import annotations

import numpy as np

from triplewire.native.arrays import Bytes, Int64, UInt64
from triplewire.native.functions import compiled, inlined
from triplewire.native.words import WIDTH, low, word_at

SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(32)


@compiled
def hashed(data: Bytes, start: int, stop: int) -> np.uint64:
    """Of the bytes from one place to another."""
    found = SEED
    place = start
    while place + WIDTH <= stop:
        found = stirred(found, word_at(data, place))
        place += WIDTH
    if place < stop:
        found = stirred(found, low(word_at(data, place), stop - place))
    return finished(found, stop - start)


@inlined
def stirred(found: np.uint64, word: np.uint64) -> np.uint64:
    """With one word more."""
    found = (found ^ word) * _PRIME
    return found ^ (found >> _HALF)


@inlined
def finished(found: np.uint64, length: int) -> np.uint64:
    """When all words are in; zeros at the end make a difference by the length."""
    value = (found ^ np.uint64(length)) * _FIRST
    value = (value ^ (value >> _HALF)) * _SECOND
    return value ^ (value >> _HALF)


@inlined
def paired(one: np.uint64, other: np.uint64, salt: np.uint64) -> np.uint64:
    """Of two hashes in this order; `salt` tells apart what the pair is of."""
    turned = (other << _HALF) | (other >> _HALF)
    value = ((one + salt * _SECOND) ^ turned) * _FIRST
    return value ^ (value >> _HALF)


def hash_all(text: Bytes, start: Int64) -> UInt64:
    """The hashes of texts that lie one after the other."""
    found = np.zeros(len(start) - 1, np.uint64)
    _hash_into(found, text, start)
    return found


@compiled
def _hash_into(found: UInt64, text: Bytes, start: Int64) -> None:
    for each in range(len(found)):
        found[each] = hashed(text, start[each], start[each + 1])


def hash_of(term: str) -> int:
    """Of a text, as Python's number."""
    data = np.frombuffer(term.encode(), np.uint8)
    return int(hashed(data, 0, len(data)))
