"""Tables of hashes with open addressing, as compiled code reads them."""

from __future__ import annotations

import numpy as np

from triplewire.kernels.compiler import Int32, Records, UInt64, compiled, inlined
from triplewire.ongoing.network.arrays import SLOT

_ONE = np.uint64(1)
_TURN = np.uint64(29)


@inlined
def some(key: np.uint64) -> np.uint64:
    """The key, or another one in the place of zero, which is none."""
    return key if key != 0 else _ONE


@inlined
def slot_of(index: Records, key: np.uint64) -> int:
    """Where a key is, or would be."""
    mask = np.uint64(len(index) - 1)
    place = (key ^ (key >> _TURN)) & mask
    while index[place].key != 0 and index[place].key != key:
        place = (place + _ONE) & mask
    return place  # type: ignore[return-value]


@compiled
def linked(index: Records, following: Int32, keys: UInt64, first: int) -> None:
    """Put rows under their keys, the newest first. The first of them has the number `first`; there must be room."""
    for each in range(len(keys)):
        key = some(keys[each])
        slot = index[slot_of(index, key)]
        if slot.key == 0:
            slot.key = key
            slot.head = -1
        following[first + each] = slot.head
        slot.head = first + each
        slot.count += 1


@compiled
def added(found: UInt64, keys: UInt64) -> None:
    """Put keys into a set."""
    mask = np.uint64(len(found) - 1)
    for each in range(len(keys)):
        key = some(keys[each])
        place = (key ^ (key >> _TURN)) & mask
        while found[place] != 0 and found[place] != key:
            place = (place + _ONE) & mask
        found[place] = key


@inlined
def has(found: UInt64, key: np.uint64) -> bool:
    """Is it in a set?"""
    mask = np.uint64(len(found) - 1)
    place = (key ^ (key >> _TURN)) & mask
    while found[place] != 0 and found[place] != key:
        place = (place + _ONE) & mask
    return found[place] == key


def roomy(count: int) -> int:
    """The size of a table for so many keys: a power of two, at most half full."""
    return 1 << max(4, (2 * count).bit_length())


def index_for(count: int) -> Records:
    """An empty index for so many rows."""
    return np.zeros(roomy(count), SLOT)
