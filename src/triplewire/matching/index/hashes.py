"""Hashes of terms: 64 bits, the same in every process. Equal hashes are only a hint; texts decide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from triplewire.matching.index.compiled import compiled, inlined

Bytes = npt.NDArray[np.uint8]

_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(33)


@compiled
def hashed(data: Bytes, start: int, stop: int) -> np.uint64:
    """Of the bytes from one place to another."""
    found = _SEED
    for place in range(start, stop):
        found = (found ^ np.uint64(data[place])) * _PRIME
    return mixed(found)


@inlined
def mixed(value: np.uint64) -> np.uint64:
    """The same bits, well shuffled."""
    value = (value ^ (value >> _HALF)) * _FIRST
    value = (value ^ (value >> _HALF)) * _SECOND
    return value ^ (value >> _HALF)


@inlined
def paired(one: np.uint64, other: np.uint64, salt: np.uint64) -> np.uint64:
    """Of two hashes in this order; `salt` tells apart what the pair is of."""
    return mixed(one * _PRIME + mixed(other + salt) * _FIRST + salt)


def hash_of(term: str) -> int:
    """Of a text, as Python's number."""
    data = np.frombuffer(term.encode(), np.uint8)
    return int(hashed(data, 0, len(data)))
