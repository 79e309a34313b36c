"""Entering: groups into the table of access keys, and what it costs to be found there. Compiled."""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Index
from triplewire.matching.index.fences import fence
from triplewire.matching.index.keys import (
    BEGINNING,
    EVERYTHING,
    HEADER,
    OBJECT,
    PREDICATE,
    PREDICATE_OBJECT,
    RELATED,
    SUBJECT,
    place_of,
    sift,
)
from triplewire.matching.index.machine import constant_of
from triplewire.matching.index.samples import often
from triplewire.native.arrays import Records
from triplewire.native.functions import compiled
from triplewire.native.hashes import hashed

_CLASS = np.frombuffer(b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", np.uint8)
_CLASSES = np.uint64(hashed(_CLASS, 0, len(_CLASS)))
_ENOUGH = 256
"""Events of which a sample tells more than the kind of a key."""


@compiled
def enter(index: Index, kind: int, key: np.uint64, group: int, row: int, posted: int) -> int:
    """Put a group in front of those that have its key; how many postings there are then."""
    place = index.keys[place_of(index, key)]
    posting = index.postings[posted]
    posting.group = group
    posting.row = row
    posting.following = place.head
    place.key = key
    fence()  # who reads meanwhile, in another process, finds a posting only when it is whole
    place.head = posted
    place.count += 1
    index.uses[kind] = 1
    sift(index, key)
    return posted + 1


@compiled
def mark(index: Index, kind: int, key: np.uint64, group: int, posted: int) -> int:
    """Have a key in the table, if only for its own sake."""
    if index.keys[place_of(index, key)].head >= 0:
        return posted
    return enter(index, kind, key, group, 0, posted)


@compiled
def entered(index: Index, group: int, key: np.uint64) -> bool:
    """Is the group, the last that came, under the key already? An IN may name one constant twice."""
    place = index.keys[place_of(index, key)]
    return place.head >= 0 and index.postings[place.head].group == group


@compiled
def cost_of(index: Index, kind: int, key: np.uint64, one: np.uint64) -> int:
    """What it costs to be found under a key: how often events have it, and who is there already."""
    place = index.keys[place_of(index, key)]
    crowd = int(place.count) if place.head >= 0 else 0
    if kind <= SUBJECT and index.sampled[0] >= _ENOUGH:
        return often(index, key) * (crowd + 1)
    frequency = 1
    if kind == PREDICATE_OBJECT and one == _CLASSES:
        frequency = 1_000
    elif kind in (PREDICATE, OBJECT, SUBJECT):
        frequency = 10_000
    elif kind == BEGINNING or kind >= RELATED:
        frequency = 10
    elif kind == HEADER:
        frequency = 100_000
    elif kind == EVERYTHING:
        frequency = 1_000_000
    return frequency * (crowd + 1)


@compiled
def hash_at(index: Index, program: int, group: int, row: int, place: int) -> np.uint64:
    slot, name = index.places[3 * row + place].slot, index.places[3 * row + place].number
    return index.constants[constant_of(index, program, group, slot, name)].hash


@compiled
def rehash(index: Index, old: Records) -> None:
    """Put the keys of an old table into a new one."""
    for place in range(len(old)):
        if old[place].head >= 0:
            key = old[place].key
            there = index.keys[place_of(index, key)]
            there.key = key
            there.head = old[place].head
            there.count = old[place].count
            sift(index, key)
